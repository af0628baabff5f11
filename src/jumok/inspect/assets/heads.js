"use strict";
// All layers and heads of one sentence: small maps to choose from, one large map, and the words, on canvases.
// Weights come as bytes (canvas.py says how); text only ever goes in as text.
(async () => {
  const began = performance.now();
  const data = JSON.parse(document.getElementById("heads-data").textContent);
  const root = document.getElementById("heads");
  const { unpacked, grouped, single, weightsOf, number } = headWeights;
  const { LABELLED } = mapLabels;
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  if (typeof DecompressionStream === "undefined") {
    root.append(make("p", "missing", "This browser cannot unpack the weights (DecompressionStream): a newer one can."));
    return;
  }

  // ------------------------------------------------------------ weights

  const groups = data.groups.filter((group) => group.maps.length).map((group, number) => {
    const block = document.getElementById(`maps-${data.groups.indexOf(group)}`);
    const texts = block.textContent.split("\n");
    block.remove();
    const units = {
      words: { keys: grouped(group.keys), queries: grouped(group.queries) },
      tokens: { keys: single(group.keys), queries: single(group.queries) },
    };
    return { ...group, number, texts, units, ready: [] };
  });
  if (!groups.length) {
    root.append(make("p", "quiet", "There is no attention to show."));
    return;
  }
  const mapOf = async (group, index) => {
    group.ready[index] ??= unpacked(group.texts[index], group.queries.tokens.length);
    const map = await group.ready[index];
    group.texts[index] = null;
    return map;
  };
  // ------------------------------------------------------------ the page

  const style = () => getComputedStyle(document.documentElement);
  const bar = make("div", "bar");
  const segmented = (title, names, chosen, act) => {
    const box = make("div", "segments");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", title);
    const buttons = names.map((name, index) => {
      const button = make("button", "", name);
      button.type = "button";
      button.setAttribute("aria-pressed", String(index === chosen));
      button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        act(index);
      });
      return button;
    });
    box.append(...buttons);
    if (names.length > 1) bar.append(box);
    return buttons;
  };
  const state = {
    group: groups.find((group) => group.kind === data.first[0]) ?? groups[0],
    index: 0, unit: "words", cell: 0, at: null, pinned: null, shown: null,
  };
  const asked = (group) => {
    const layers = [...new Set(group.maps.map(([layer]) => layer))];
    const layer = data.first[1] ?? layers[Math.max(0, layers.length - 2)];
    const head = data.first[2] ?? -1;
    const found = group.maps.findIndex(([one, other]) => one === layer && other === head);
    return found < 0 ? Math.max(0, group.maps.findIndex(([one]) => one === layer)) : found;
  };
  const nameOf = (group, [layer, head]) => {
    if (!group.heads) return `${group.kind} attention`;
    return `${group.kind} attention, layer ${layer}, ${head < 0 ? `mean of ${group.heads} heads` : `head ${head}`}`;
  };
  const titles = {
    cross: "cross: output at source", self: "self: source at itself", causal: "causal: output at its past",
  };
  segmented("Which attention", groups.map((group) => titles[group.kind] ?? group.kind), groups.indexOf(state.group),
    (index) => { choose(groups[index], asked(groups[index])); thumbnails(); });
  const differ = groups.some((group) => ["keys", "queries"].some((side) => (
    group.units.words[side].starts.length !== group.units.tokens[side].starts.length)));
  segmented("Unit", differ ? ["words", "tokens"] : ["tokens"], 0, (index) => {
    state.unit = ["words", "tokens"][index];
    choose(state.group, state.index);
  });
  if (!differ) state.unit = "words"; // the words' own text where there is one
  const brighten = make("label", "check");
  const box = make("input");
  box.type = "checkbox";
  brighten.append(box, " brighten faint weights (√)");
  bar.append(brighten);

  const legend = make("div", "legend");
  const scale = make("canvas");
  scale.width = 256;
  scale.height = 1;
  const ticks = make("span", "ticks");
  legend.append(make("span", "", "attention weight"), make("div", "scale"));
  legend.lastChild.append(scale, ticks);
  const drawLegend = () => {
    const pen = scale.getContext("2d");
    for (let x = 0; x < 256; x += 1) {
      pen.fillStyle = `rgb(${cividis.mixed(x / 255).join(",")})`;
      pen.fillRect(x, 0, 1, 1);
    }
    ticks.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((weight) => {
      const tick = make("span", "", String(weight));
      tick.style.left = `${100 * cividis.place(weight)}%`;
      return tick;
    }));
  };

  const grid = make("div", "grid");
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", "Layers and heads: arrow keys move");
  const heading = make("h2");
  const readout = make("p", "readout");
  readout.setAttribute("aria-live", "polite");
  const frame = make("div", "frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", "The map: arrow keys move, Enter pins a row, Escape lets go, plus and minus zoom");
  const canvas = make("canvas");
  const spread = make("div", "spread");
  frame.append(canvas, spread);
  const zoom = make("div", "zoom");
  const [less, more, fit] = [["−", "smaller"], ["+", "larger"], ["fit", "the whole map"]].map(([sign, title]) => {
    const button = make("button", "", sign);
    button.type = "button";
    button.setAttribute("aria-label", title);
    zoom.append(button);
    return button;
  });
  const top = make("div", "top");
  top.append(heading, zoom);
  const lines = make("div", "lines");
  const help = make("p", "quiet help");
  help.append("Point at a cell for its number; click, or ", make("kbd", "", "Enter"), ", pins a row. ",
    make("kbd", "", "Tab"), " to the maps, arrows to move, ", make("kbd", "", "+"), " ", make("kbd", "", "−"),
    " zoom, ", make("kbd", "", "Esc"), " lets go. A weight is stored as one byte between 0 and the largest of its row;"
    + " ± says how far the number may be from the model's own.");
  const about = make("p", "about");
  root.append(about, bar, legend, grid, top, readout, frame, lines, help);
  drawLegend();

  // ------------------------------------------------------------ small maps to choose from

  let smalls = [];
  const thumbnails = async () => {
    const { group } = state;
    smalls = [];
    grid.replaceChildren();
    grid.hidden = group.maps.length < 2;
    if (grid.hidden) return;
    const columns = [...new Set(group.maps.map(([, head]) => head))].sort((a, b) => a - b);
    grid.style.gridTemplateColumns = `auto repeat(${columns.length}, minmax(2.1rem, 6rem))`;
    grid.append(make("span", "corner", "layer ↓ head →"));
    grid.append(...columns.map((head) => make("span", "column", head < 0 ? "mean" : String(head))));
    const layers = [...new Set(group.maps.map(([layer]) => layer))].sort((a, b) => a - b);
    for (const layer of layers) {
      grid.append(make("span", "row", String(layer)));
      for (const head of columns) {
        const index = group.maps.findIndex(([one, other]) => one === layer && other === head);
        if (index < 0) {
          grid.append(make("span", "gone", "·"));
        } else {
          const button = make("button");
          button.type = "button";
          button.setAttribute("aria-label", nameOf(group, group.maps[index]));
          button.title = nameOf(group, group.maps[index]);
          const small = make("canvas");
          const shape = group.keys.tokens.length / group.queries.tokens.length;
          small.style.aspectRatio = String(Math.min(Math.max(shape, 0.5), 2));
          button.append(small);
          button.addEventListener("click", () => choose(group, index));
          button.addEventListener("keydown", (event) => walk(event, layers.indexOf(layer), columns.indexOf(head)));
          grid.append(button);
          smalls.push({ button, small, index, row: layers.indexOf(layer), column: columns.indexOf(head) });
        }
      }
    }
    mark();
    await Promise.all(smalls.map(async ({ small, index }) => drawSmall(small, await mapOf(group, index), group)));
  };
  const walk = (event, row, column) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const away = (one) => (step[0] ? (one.row - row) * step[0] : (one.column - column) * step[1]);
    const [next] = smalls // maps that were not kept are passed over
      .filter((one) => (step[0] ? one.column === column : one.row === row) && away(one) > 0)
      .sort((a, b) => away(a) - away(b));
    if (!next) return;
    next.button.focus();
    choose(state.group, next.index);
  };
  const mark = () => smalls.forEach(({ button, index }) => {
    button.setAttribute("aria-pressed", String(index === state.index));
    button.tabIndex = index === state.index ? 0 : -1;
  });

  // ------------------------------------------------------------ the large map

  const sheet = document.createElement("canvas"); // one pixel for each weight
  const paint = () => {
    const { weights, rows, columns } = state.shown;
    [sheet.width, sheet.height] = [columns, rows];
    const pen = sheet.getContext("2d");
    const image = pen.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let index = 0; index < pixels.length; index += 1) {
      const weight = weights[index];
      pixels[index] = Number.isNaN(weight) ? 0 : cividis.pixel(weight);
    }
    pen.putImageData(image, 0, 0);
  };
  const layout = () => {
    const { rows, columns, keys, queries } = state.shown;
    const pen = canvas.getContext("2d");
    const width = root.clientWidth - 2;
    const longest = (names) => Math.max(20, ...names.map((name) => pen.measureText(name).width));
    pen.font = `13px ${style().getPropertyValue("--text")}`;
    const margins = (cell) => (cell >= LABELLED
      ? [Math.min(longest(queries.names) + 22, width * 0.36), Math.min(longest(keys.names) + 22, 130)] : [44, 30]);
    let cell = state.cell;
    let [left, top] = margins(cell || LABELLED);
    if (!cell) {
      cell = Math.min((width - left - 4) / columns, 38);
      if (cell < LABELLED) {
        [left, top] = margins(0);
        cell = Math.min((width - left - 4) / columns, LABELLED - 0.1);
      }
      cell = Math.max(cell, 1 / (window.devicePixelRatio || 1));
    }
    const tallest = Math.max(260, window.innerHeight * 0.8);
    const height = Math.min(top + rows * cell + 4, tallest);
    return { cell, left, top, width, height, wide: left + columns * cell + 4, tall: top + rows * cell + 4 };
  };
  let seen = null;
  const draw = () => {
    if (!state.shown) return;
    const { rows, columns, keys, queries } = state.shown;
    seen = layout();
    const { cell, left, top, width, height } = seen;
    const ratio = window.devicePixelRatio || 1;
    frame.style.height = `${height + 2}px`;
    frame.style.width = seen.wide < width ? `${seen.wide + 2}px` : "";
    spread.style.width = `${seen.wide}px`;
    spread.style.height = `${seen.tall}px`;
    spread.style.marginTop = `${-height}px`; // the canvas stays while this scrolls
    const view = [frame.clientWidth, Math.min(frame.clientHeight, height)];
    [canvas.width, canvas.height] = view.map((side) => Math.round(side * ratio));
    [canvas.style.width, canvas.style.height] = view.map((side) => `${side}px`);
    const [x0, y0] = [left - frame.scrollLeft, top - frame.scrollTop];
    const paper = style().getPropertyValue("--raised");
    const [ink, quiet, accent] = ["--ink", "--quiet", "--accent"].map((name) => style().getPropertyValue(name));
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = paper;
    pen.fillRect(0, 0, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, view[0] - left, view[1] - top);
    pen.clip();
    pen.imageSmoothingEnabled = cell * ratio < 1;
    pen.drawImage(sheet, x0, y0, columns * cell, rows * cell);
    if (cell >= 6) {
      pen.strokeStyle = paper;
      pen.lineWidth = cell >= 16 ? 2 : 1;
      pen.beginPath();
      for (let s = 0; s <= columns; s += 1) { pen.moveTo(x0 + s * cell, y0); pen.lineTo(x0 + s * cell, y0 + rows * cell); }
      for (let t = 0; t <= rows; t += 1) { pen.moveTo(x0, y0 + t * cell); pen.lineTo(x0 + columns * cell, y0 + t * cell); }
      pen.stroke();
    }
    const row = state.at ? state.at[0] : state.pinned;
    if (state.pinned !== null) {
      pen.globalAlpha = cell >= LABELLED ? 0.66 : 0.3; // without room for words the rest is the way to find the place
      pen.fillStyle = paper;
      pen.fillRect(x0, y0, columns * cell, state.pinned * cell);
      pen.fillRect(x0, y0 + (state.pinned + 1) * cell, columns * cell, rows * cell);
      pen.globalAlpha = 1;
    }
    if (row !== null) {
      pen.strokeStyle = accent;
      pen.lineWidth = 2;
      pen.strokeRect(x0 - 1, y0 + row * cell - 1, columns * cell + 2, cell + 2);
      if (state.at && state.at[1] !== null) {
        pen.strokeRect(x0 + state.at[1] * cell - 1, y0 - 1, cell + 2, rows * cell + 2);
      }
    }
    pen.restore();
    pen.fillStyle = paper;
    pen.fillRect(0, 0, left, top);
    const column = state.at ? state.at[1] : null;
    const font = style().getPropertyValue("--text");
    const colours = { font, ink, quiet, accent };
    mapLabels.draw(pen, { ...colours, cell, left, top, x0, y0, row, column, view, rows, columns, keys, queries });
  };
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };

  // ------------------------------------------------------------ the words, coloured by what is looked at

  let chips = { keys: [], queries: [] };
  const words = () => {
    const sides = { keys: state.shown.keys.names, queries: state.shown.queries.names };
    lines.replaceChildren();
    for (const [role, which] of [["queries", 1], ["keys", 0]]) {
      const side = state.group.sides[which];
      const line = make("div", `line ${role}`);
      line.append(make("b", "", `${role === "keys" ? "keys" : "queries"}: ${["source", "output"][side]}`));
      const text = make("div", "text");
      chips[role] = sides[role].map((name, index) => {
        const chip = make("span", "chip", name);
        if (data.languages[side]) chip.lang = data.languages[side];
        chip.dataset.index = index;
        return chip;
      });
      text.append(...chips[role]);
      line.append(text);
      lines.append(line);
      if (role === "queries") {
        text.addEventListener("pointerover", (event) => {
          if (event.target.dataset.index !== undefined) show([Number(event.target.dataset.index), null]);
        });
        text.addEventListener("pointerleave", () => show(null));
        text.addEventListener("click", (event) => {
          if (event.target.dataset.index !== undefined) pin(Number(event.target.dataset.index));
        });
      }
    }
  };
  const colourWords = (row) => {
    const { weights, columns } = state.shown;
    chips.keys.forEach((chip, s) => {
      const weight = row === null ? NaN : weights[row * columns + s];
      const colour = Number.isNaN(weight) ? null : cividis.of(weight);
      chip.style.backgroundColor = colour ? `rgb(${colour.join(",")})` : "";
      chip.style.color = colour ? (colour[0] * 0.3 + colour[1] * 0.6 + colour[2] * 0.1 > 125 ? "#111" : "#fff") : "";
    });
    chips.queries.forEach((chip, t) => chip.classList.toggle("on", t === row));
  };

  // ------------------------------------------------------------ what is pointed at

  const say = () => {
    const { weights, wrong, columns, keys, queries } = state.shown;
    readout.replaceChildren();
    const row = state.at ? state.at[0] : state.pinned;
    if (row === null) {
      readout.textContent = "Point at a cell for its number; click or press Enter to pin a row.";
      return;
    }
    const one = state.at && state.at[1] !== null;
    const chosen = one ? [state.at[1]] : keys.names.map((_, s) => s)
      .sort((a, b) => (weights[row * columns + b] || 0) - (weights[row * columns + a] || 0)).slice(0, 3);
    readout.append(make("strong", "", queries.names[row]), " looks at ");
    chosen.forEach((s, index) => {
      const said = number(weights[row * columns + s], wrong[row] * keys.sizes[s]);
      readout.append(index ? ", " : "", make("strong", "", keys.names[s]), " ", make("span", "number", said));
    });
  };
  let coloured = null;
  const show = (at) => {
    state.at = at;
    const row = at ? at[0] : state.pinned;
    if (row !== coloured) colourWords(row);
    coloured = row;
    say();
    later();
  };
  const pin = (row) => {
    state.pinned = state.pinned === row ? null : row;
    show(state.at);
  };
  const cellAt = (event) => {
    const frameBox = frame.getBoundingClientRect();
    const [x, y] = [event.clientX - frameBox.left - frame.clientLeft, event.clientY - frameBox.top - frame.clientTop];
    const t = Math.floor((y - seen.top + frame.scrollTop) / seen.cell);
    const s = Math.floor((x - seen.left + frame.scrollLeft) / seen.cell);
    if (y < seen.top || t < 0 || t >= state.shown.rows || s >= state.shown.columns) return null;
    return [t, x < seen.left || s < 0 ? null : s];
  };
  frame.addEventListener("pointermove", (event) => { if (seen) show(cellAt(event)); });
  frame.addEventListener("pointerleave", () => { if (seen) show(null); });
  frame.addEventListener("click", (event) => {
    const at = seen && cellAt(event);
    if (at) { show(at); pin(at[0]); }
  });
  frame.addEventListener("scroll", later);
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    const { rows, columns } = state.shown;
    if (step) {
      event.preventDefault();
      const at = state.at ?? [state.pinned ?? 0, null];
      const from = state.at ? at : [at[0] - step[0], at[1]]; // the first key only shows where one is
      const column = step[1] ? (from[1] ?? -1) + step[1] : from[1];
      show([Math.min(Math.max(from[0] + step[0], 0), rows - 1),
        column === null ? null : Math.min(Math.max(column, 0), columns - 1)]);
      reveal();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(state.at ? state.at[0] : state.pinned ?? 0);
    } else if (event.key === "Escape") {
      state.pinned = null;
      show(null);
    } else if (event.key === "+" || event.key === "=") enlarge(1.5);
    else if (event.key === "-") enlarge(1 / 1.5);
  });
  const reveal = () => {
    const [t, s] = state.at;
    const { cell, left, top } = seen;
    const into = (scroll, start, margin, room) => Math.min(Math.max(scroll, start + cell + margin - room), start);
    frame.scrollTop = into(frame.scrollTop, t * cell, top, frame.clientHeight);
    if (s !== null) frame.scrollLeft = into(frame.scrollLeft, s * cell, left, frame.clientWidth);
  };
  const enlarge = (factor) => {
    const [x, y] = [(frame.scrollLeft + frame.clientWidth / 2 - seen.left) / seen.cell,
      (frame.scrollTop + frame.clientHeight / 2 - seen.top) / seen.cell];
    state.cell = factor ? Math.min(Math.max(seen.cell * factor, 1 / (window.devicePixelRatio || 1)), 48) : 0;
    draw();
    [frame.scrollLeft, frame.scrollTop] = [x * seen.cell + seen.left - frame.clientWidth / 2,
      y * seen.cell + seen.top - frame.clientHeight / 2];
    later();
  };
  less.addEventListener("click", () => enlarge(1 / 1.5));
  more.addEventListener("click", () => enlarge(1.5));
  fit.addEventListener("click", () => enlarge(0));

  const choose = async (group, index) => {
    const other = group !== state.group;
    [state.group, state.index] = [group, index];
    mark();
    const map = await mapOf(group, index);
    if (state.group !== group || state.index !== index) return; // another was chosen meanwhile
    const before = state.shown;
    state.shown = weightsOf(map, group, state.unit);
    if (other || !before || before.rows !== state.shown.rows || before.columns !== state.shown.columns) {
      [state.at, state.pinned, state.cell] = [null, null, 0];
      words();
    }
    coloured = undefined;
    about.textContent = `${group.about} A row adds up to 1.`;
    const name = nameOf(group, group.maps[index]);
    heading.replaceChildren(name, make("small", "", "query ↓ looks at key →"));
    canvas.setAttribute("aria-label", `${name}: ${state.shown.rows} queries, ${state.shown.columns} keys`);
    paint();
    show(state.at);
    draw();
  };
  box.addEventListener("change", () => {
    cividis.brighten(box.checked);
    drawLegend();
    paint();
    coloured = undefined;
    show(state.at);
    smalls.forEach(async ({ small, index }) => drawSmall(small, await mapOf(state.group, index), state.group));
  });
  canvas.setAttribute("role", "img");
  new ResizeObserver(later).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);

  await choose(state.group, asked(state.group));
  await thumbnails();
  root.dataset.began = began.toFixed(1); // milliseconds since the page was asked for
  root.dataset.drawn = performance.now().toFixed(1);
})();
