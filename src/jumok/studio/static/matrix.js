// A heat map on a canvas: labels stay in sight, hover tells the number, click pins, shift-click adds a second pin.
// The picture is painted once, one pixel a number, and drawn larger; pointing only draws again what is in sight.
import { clamp, css, cut, drawnLater, penOf, scaleBar, sheetOf, STEPS } from "./drawing.js";
import { bidi, make, shown, visible } from "./text.js";

// cells of this size have room for words beside them
const LABELLED = 12;
const LARGEST = 40;

export const scaleOf = (data, signed) => {
  let most = 0;
  for (let index = 0; index < data.length; index += 1) {
    const size = signed ? Math.abs(data[index]) : data[index];
    if (size > most) most = size;
  }
  return !signed && most <= 1 ? 1 : most || 1;
};

// A map as small as a stamp: each pixel is the largest number of its patch, so that nothing strong is lost.
export const stamp = (data, rows, columns, { signed = false, scale, bright = false, most = 96 } = {}) => {
  const [height, width] = [Math.min(rows, most), Math.min(columns, most)];
  const small = new Float32Array(height * width);
  for (let t = 0; t < rows; t += 1) {
    const start = Math.floor((t * height) / rows) * width;
    for (let s = 0; s < columns; s += 1) {
      const at = start + Math.floor((s * width) / columns);
      const value = data[t * columns + s];
      if (signed ? Math.abs(value) > Math.abs(small[at]) : value > small[at]) small[at] = value;
    }
  }
  const canvas = sheetOf(small, height, width, { signed, scale: scale ?? scaleOf(data, signed), bright });
  canvas.className = "stamp";
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
};

// options: {label, rows: [text], columns: [text], data (row by row), signed, scale, bright,
//           pins: [[row, column], …], onPin(pins), onHover([row, column] or null), say(row, column, value), height}
// The element has update(options), which changes some of them, and point([row, column] or null).
export const matrix = (given, { t, signal }) => {
  const state = { at: null, pins: given.pins ?? [], zoom: 0, options: {}, sheet: null, seen: null };
  const canvas = make("canvas", { "aria-hidden": true });
  const spread = make("div", { class: "spread" });
  const frame = make("div", { class: "frame", tabindex: 0, role: "group" }, canvas, spread);
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const bar = scaleBar();
  const zoom = make("div", { class: "zoom" }, [["−", "smaller", 1 / 1.5], ["+", "larger", 1.5], ["⤢", "fit", 0]].map(
    ([sign, word, factor]) => make("button", {
      class: "small", "aria-label": t(word), title: t(word), text: sign, onclick: () => enlarge(factor),
    })));
  const under = make("div", { class: "under" }, readout, bar, zoom);
  const box = make("div", { class: "matrix" }, frame, under);

  // ------------------------------------------------------------ what there is

  const inside = ([row, column]) => row >= 0 && column >= 0 && row < state.options.rows.length && column < state.options.columns.length;
  box.update = (more) => {
    const before = state.options;
    const options = { signed: false, bright: false, height: 560, ...before, ...more };
    options.scale = more.scale ?? (more.data || !before.scale ? scaleOf(options.data, options.signed) : before.scale);
    if (more.pins) state.pins = more.pins;
    state.options = options;
    state.pins = state.pins.filter(inside);
    if (state.at && !inside(state.at)) state.at = null;
    frame.setAttribute("aria-label", `${options.label}. ${options.rows.length} × ${options.columns.length}. ${t("matrixKeys")}`);
    bar.update(options);
    state.sheet = null;
    measure();
    say();
    later();
  };
  const value = ([row, column]) => state.options.data[row * state.options.columns.length + column];

  // the room that labels need
  const measure = () => {
    const pen = canvas.getContext("2d");
    pen.font = `13px ${css("--text")}`;
    const widest = (names, most) => names.slice(0, 200).reduce(
      (room, name) => Math.max(room, Math.min(most, pen.measureText(visible(name)).width)), 0);
    state.words = [Math.ceil(widest(state.options.rows, 128)) + 14, Math.ceil(widest(state.options.columns, 96)) + 14];
  };

  // ------------------------------------------------------------ drawing

  const place = () => {
    const { rows, columns, height } = state.options;
    const room = frame.clientWidth || 320;
    const [wide, high] = [Math.min(state.words[0], room * 0.4), state.words[1]];
    const fit = (left, top) => Math.min(LARGEST, (room - left) / columns.length, (height - top) / rows.length);
    const least = 1 / (devicePixelRatio || 1);
    let cell = state.zoom || Math.max(least, fit(wide, high));
    const labelled = cell >= LABELLED;
    const [left, top] = labelled ? [wide, high] : [40, 24];
    if (!labelled && !state.zoom) cell = clamp(fit(left, top), least, LABELLED - 0.01);
    return { cell, left, top, labelled, width: columns.length * cell, height: rows.length * cell };
  };

  const draw = () => {
    if (!state.options.data || !frame.isConnected) return;
    const seen = place();
    state.seen = seen;
    const whole = [seen.left + seen.width, seen.top + seen.height];
    frame.style.height = `${Math.ceil(Math.min(whole[1], Math.max(state.options.height, 120))) + 2}px`;
    under.style.maxWidth = `${Math.max(440, Math.ceil(whole[0]))}px`;
    [spread.style.width, spread.style.height] = whole.map((size) => `${Math.ceil(size)}px`);
    const view = [Math.min(frame.clientWidth, Math.ceil(whole[0])), Math.min(frame.clientHeight, Math.ceil(whole[1]))];
    const pen = penOf(canvas, ...view);
    const { data, rows, columns } = state.options;
    state.sheet ??= sheetOf(data, rows.length, columns.length, state.options);
    const [x0, y0] = [seen.left - frame.scrollLeft, seen.top - frame.scrollTop];
    pen.save();
    pen.beginPath();
    pen.rect(seen.left, seen.top, view[0], view[1]);
    pen.clip();
    pen.imageSmoothingEnabled = false;
    pen.drawImage(state.sheet, x0, y0, seen.width, seen.height);
    if (seen.cell >= LABELLED) grid(pen, seen, x0, y0, view);
    outline(pen, seen, x0, y0);
    pen.restore();
    labels(pen, seen, x0, y0, view);
  };
  const grid = (pen, { cell, left, top }, x0, y0, view) => {
    pen.strokeStyle = css("--paper");
    pen.lineWidth = 1;
    pen.beginPath();
    for (let x = x0 + cell * Math.ceil((left - x0) / cell); x <= view[0]; x += cell) { pen.moveTo(x, top); pen.lineTo(x, view[1]); }
    for (let y = y0 + cell * Math.ceil((top - y0) / cell); y <= view[1]; y += cell) { pen.moveTo(left, y); pen.lineTo(view[0], y); }
    pen.stroke();
  };
  const outline = (pen, { cell }, x0, y0) => {
    const mark = ([row, column], ink, width) => {
      const size = Math.max(cell, 5);
      const shift = (size - cell) / 2;
      pen.strokeStyle = ink;
      pen.lineWidth = width;
      pen.strokeRect(x0 + column * cell - shift, y0 + row * cell - shift, size, size);
    };
    state.pins.forEach((pin, index) => { mark(pin, css("--paper"), 5); mark(pin, css(index ? "--second" : "--accent"), 3); });
    if (state.at) { mark(state.at, css("--paper"), 4); mark(state.at, css("--ink"), 2); }
  };
  const labels = (pen, { cell, left, top, labelled }, x0, y0, view) => {
    const { rows, columns } = state.options;
    const font = css("--text");
    const every = labelled ? 1 : [5, 10, 20, 25, 50, 100, 200, 500, 1000].find((step) => step * cell >= 40) ?? 2000;
    pen.textBaseline = "middle";
    for (const across of [false, true]) {
      const [names, start, from, until] = across ? [columns, x0, left, view[0]] : [rows, y0, top, view[1]];
      const marked = new Set([...state.pins, ...(state.at ? [state.at] : [])].map((one) => one[across ? 1 : 0]));
      for (let index = Math.max(0, Math.floor((from - start) / cell)); index < names.length; index += 1) {
        const middle = start + (index + 0.5) * cell;
        if (middle > until + 1) break;
        if (middle < from - 1 || (index % every && !marked.has(index))) continue;
        const on = marked.has(index);
        if (!labelled && !on && [...marked].some((one) => Math.abs(one - index) * cell < 30)) continue;
        pen.fillStyle = css(on ? "--accent" : labelled ? "--ink" : "--quiet");
        pen.font = `${on ? "600 " : ""}${labelled ? 13 : 11}px ${font}`;
        const text = labelled ? cut(pen, visible(names[index]), (across ? top : left) - 12) : String(index);
        pen.save();
        if (across && labelled) {
          pen.translate(middle, top - 8);
          pen.rotate(-Math.PI / 2);
          pen.fillText(text, 0, 0);
        } else {
          pen.textAlign = across ? "center" : "right";
          pen.fillText(text, across ? middle : left - 8, across ? top - 10 : middle);
        }
        pen.restore();
      }
    }
  };

  // ------------------------------------------------------------ what is pointed at

  const said = (cell) => {
    const { rows, columns, say: own } = state.options;
    if (own) return own(cell[0], cell[1], value(cell));
    return [bidi(rows[cell[0]]), " → ", bidi(columns[cell[1]]), " ", make("b", { class: "number", text: shown(value(cell)) })];
  };
  const say = () => {
    const lines = [];
    if (state.at) lines.push(make("span", { class: "at" }, said(state.at)));
    state.pins.forEach((pin, index) => lines.push(make("span", { class: `pin pin-${index}` }, said(pin))));
    readout.replaceChildren(...(lines.length ? lines : [make("span", { quiet: t("nowhere") })]));
  };
  box.point = (asked) => {
    const at = asked && inside(asked) ? asked : null;
    if (String(at) === String(state.at)) return;
    state.at = at;
    state.options.onHover?.(at);
    say();
    later();
  };
  const pin = (at, more) => {
    const same = (one) => one[0] === at[0] && one[1] === at[1];
    if (state.pins.some(same)) state.pins = state.pins.filter((one) => !same(one));
    else state.pins = more ? [...state.pins.slice(-1), at] : [at];
    state.options.onPin?.(state.pins);
    say();
    later();
  };
  const cellAt = (event) => {
    const area = frame.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left - frame.clientLeft, event.clientY - area.top - frame.clientTop];
    const { left, top, cell } = state.seen;
    const at = [Math.floor((y - top + frame.scrollTop) / cell), Math.floor((x - left + frame.scrollLeft) / cell)];
    return x >= left && y >= top && inside(at) ? at : null;
  };
  frame.addEventListener("pointermove", (event) => state.seen && box.point(cellAt(event)));
  frame.addEventListener("pointerleave", () => box.point(null));
  frame.addEventListener("click", (event) => {
    const at = state.seen && cellAt(event);
    if (at) pin(at, event.shiftKey);
  });
  frame.addEventListener("scroll", () => later());
  frame.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const { rows, columns } = state.options;
    if (step) {
      const from = state.at ?? state.pins[0] ?? [-Math.abs(step[0]) || 0, -Math.abs(step[1]) || 0];
      box.point([clamp(from[0] + step[0], 0, rows.length - 1), clamp(from[1] + step[1], 0, columns.length - 1)]);
      reveal();
    } else if (event.key === "Enter" || event.key === " ") {
      if (state.at) pin(state.at, event.shiftKey);
    } else if (event.key === "Escape") {
      state.pins = [];
      state.options.onPin?.([]);
      box.point(null);
      say();
      later();
    } else if (event.key === "+" || event.key === "=") enlarge(1.5);
    else if (event.key === "-") enlarge(1 / 1.5);
    else return;
    event.preventDefault();
  });
  const reveal = () => {
    if (!state.at) return;
    const { cell, left, top } = state.seen;
    const into = (scroll, start, margin, room) => clamp(scroll, start + cell + margin - room, start);
    frame.scrollTop = into(frame.scrollTop, state.at[0] * cell, top, frame.clientHeight);
    frame.scrollLeft = into(frame.scrollLeft, state.at[1] * cell, left, frame.clientWidth);
  };
  const enlarge = (factor) => {
    state.zoom = factor ? clamp(state.seen.cell * factor, 1 / (devicePixelRatio || 1), 64) : 0;
    draw();
    later();
  };
  const later = drawnLater(box, draw, signal, () => {
    state.sheet = null;
    bar.update(state.options);
  });
  box.update(given);
  return box;
};
