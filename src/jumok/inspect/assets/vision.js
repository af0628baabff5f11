"use strict";
// One image: press a patch, and every head of the chosen layer shows where it looks from there, on canvases.
// Weights come as bytes (vision_page.py says how); text only ever goes in as text.
(async () => {
  const data = JSON.parse(document.getElementById("vision-data").textContent);
  const root = document.getElementById("vision");
  const source = document.getElementById("vision-image");
  const texts = document.getElementById("vision-maps").textContent.split("\n");
  const [down, across] = data.grid;
  const [width, height] = data.size;
  const patches = down * across;
  const MARK = "#ff5a36", FAINT = 0.66, STRONG = 0.9; // how much of the image is covered, as in vision_picture.py
  const fine = Math.max(1, Math.round(480 / Math.max(width, height))); // canvas pixels for one of the image
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
  await source.decode();

  // ------------------------------------------------------------ the image, in its colours and in grey

  const sheet = (paint) => {
    const canvas = make("canvas");
    [canvas.width, canvas.height] = [width, height];
    paint(canvas.getContext("2d"));
    return canvas;
  };
  const plain = sheet((pen) => pen.drawImage(source, 0, 0));
  const grey = sheet((pen) => {
    pen.drawImage(source, 0, 0);
    const image = pen.getImageData(0, 0, width, height), bytes = image.data;
    for (let at = 0; at < bytes.length; at += 4) {
      bytes[at] = bytes[at + 1] = bytes[at + 2] = (bytes[at] + bytes[at + 1] + bytes[at + 2]) / 3;
    }
    pen.putImageData(image, 0, 0);
  });

  // ------------------------------------------------------------ weights

  const firsts = data.layers.map((_, layer) => data.layers.slice(0, layer).reduce((sum, one) => sum + one.heads, 0));
  const ready = [];
  const unpacked = (layer, head) => {
    const index = firsts[layer] + head;
    ready[index] ??= headWeights.unpacked(texts[index], data.rows);
    return ready[index];
  };
  // of one head, or with -1 the mean of all: where it looks from a row (0: what stands for the image), by patch
  const seenFrom = async (layer, head, row) => {
    const { heads } = data.layers[layer];
    const chosen = head >= 0 ? [head] : Array.from({ length: heads }, (_, each) => each);
    const values = new Float32Array(patches);
    let wrong = 0, elsewhere = 0;
    for (const each of chosen) {
      const map = await unpacked(layer, each);
      const step = map.steps[row] / chosen.length;
      wrong += step / 2;
      for (let patch = 0; patch < patches; patch += 1) values[patch] += map.bytes[row * patches + patch] * step;
      elsewhere += map.bytes[data.rows * patches + row] / 255 / chosen.length;
    }
    return { values, wrong, elsewhere, most: values.reduce((a, b) => Math.max(a, b), 0) };
  };

  // ------------------------------------------------------------ drawing

  const [tall, wide] = [(height * fine) / down, (width * fine) / across];
  const frame = (pen, place, colour, thick) => {
    const [x, y] = [(place % across) * wide, Math.floor(place / across) * tall];
    pen.lineWidth = thick; pen.strokeStyle = colour;
    pen.strokeRect(x + thick / 2, y + thick / 2, wide - thick, tall - thick);
  };
  const paint = (canvas, seen, place, share = 90) => { // share: how much of the width a frame is
    [canvas.width, canvas.height] = [width * fine, height * fine];
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(seen ? grey : plain, 0, 0, canvas.width, canvas.height);
    if (seen) {
      seen.values.forEach((weight, patch) => {
        const [x, y] = [(patch % across) * wide, Math.floor(patch / across) * tall];
        const bright = seen.most > 0 ? weight / seen.most : 0;
        pen.globalAlpha = FAINT + (STRONG - FAINT) * cividis.place(bright);
        pen.fillStyle = `rgb(${cividis.of(bright).join(",")})`;
        const [left, top] = [Math.round(x), Math.round(y)];
        pen.fillRect(left, top, Math.round(x + wide) - left, Math.round(y + tall) - top);
      });
      pen.globalAlpha = 1;
    }
    if (place >= 0) {
      const thick = Math.max(3, canvas.width / share);
      frame(pen, place, "#ffffff", thick);
      frame(pen, place, MARK, thick * 0.6);
    }
  };

  // ------------------------------------------------------------ the page

  const state = { layer: data.first[0], head: data.first[1], place: data.first[2], shown: [] };
  let large = state.head >= 0; // whether the chosen map lies over the large image
  const pressed = (button, is) => button.setAttribute("aria-pressed", String(is));
  const bar = make("div", "bar");
  const layers = make("div", "segments");
  layers.setAttribute("role", "group");
  layers.setAttribute("aria-label", "Layer");
  const layerButtons = data.layers.map((one, index) => {
    const button = make("button", "", one.name);
    button.type = "button";
    button.title = one.about;
    button.addEventListener("click", () => { state.layer = index; state.head = -1; large = false; update(); });
    layers.append(button);
    return button;
  });
  const start = make("button", "start", `from the ${data.whole}`);
  start.type = "button";
  start.hidden = data.rows === 1;
  start.addEventListener("click", () => { state.place = -1; update(); });
  const check = make("label", "check"), box = make("input");
  box.type = "checkbox";
  box.addEventListener("change", () => { cividis.brighten(box.checked); update(); });
  check.append(box, " brighten faint weights (√)");
  bar.append(make("span", "", "layer"), layers, start, check);
  const readout = make("p", "readout");
  readout.setAttribute("aria-live", "polite");
  const stage = make("div", "stage"), left = make("div", "large"), maps = make("div", "maps");
  const canvas = make("canvas"), said = make("p");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  left.append(canvas, said);
  stage.append(left, maps);
  root.append(bar, readout, stage);
  left.classList.toggle("fixed", data.rows === 1);

  const rowAndColumn = (place) => `row ${Math.floor(place / across)}, column ${place % across}`;
  const named = (place) => (place < 0 ? `the ${data.whole}` : `patch ${place} (${rowAndColumn(place)})`);
  const headName = (head) => (data.layers[state.layer].heads === 1 && state.layer === data.layers.length - 1
    ? "rollout" : head < 0 ? "mean" : `head ${head}`);
  const patchAt = (event, over) => {
    const area = over.getBoundingClientRect();
    const column = Math.floor(((event.clientX - area.left) / area.width) * across);
    const row = Math.floor(((event.clientY - area.top) / area.height) * down);
    return Math.min(Math.max(row, 0), down - 1) * across + Math.min(Math.max(column, 0), across - 1);
  };
  const tell = (strong, rest = "") => readout.replaceChildren(make("strong", "", strong), document.createTextNode(rest));
  const quiet = () => tell(`Seen from ${named(state.place)}`, `, ${data.layers[state.layer].about}. Point at a map for its numbers.`);
  const number = (value) => (value >= 0.001 || value === 0 ? Number(value.toPrecision(2)).toString() : value.toExponential(0));

  let round = 0;
  const update = async () => {
    const mine = ++round, row = state.place + 1;
    const { heads } = data.layers[state.layer];
    const wanted = heads === 1 ? [0] : Array.from({ length: heads + 1 }, (_, head) => head - 1);
    const found = await Promise.all(wanted.map((head) => seenFrom(state.layer, head, row)));
    if (mine !== round) return; // something else was pressed meanwhile
    layerButtons.forEach((button, index) => pressed(button, index === state.layer));
    pressed(start, state.place < 0);
    if (maps.children.length !== wanted.length) maps.replaceChildren(...wanted.map(() => tile()));
    maps.classList.toggle("many", wanted.length > 9);
    state.shown = wanted.map((head, index) => ({ head, ...found[index] }));
    state.shown.forEach((seen, index) => {
      const button = maps.children[index], [name, drawn, below] = button.children;
      name.textContent = headName(seen.head);
      paint(drawn, seen, state.place, 36);
      const times = (seen.most * patches) / (seen.values.reduce((a, b) => a + b, 0) || 1);
      const told = [`up to ${number(seen.most)} · ${times.toFixed(times < 10 ? 1 : 0)}×`];
      if (data.added) told.push(`${(100 * seen.elsewhere).toFixed(0)} % to no patch`);
      below.replaceChildren(told[0], ...told.slice(1).flatMap((line) => [make("br"), line]));
      button.setAttribute("aria-label", `${headName(seen.head)}: ${told.join(", ")}`);
      pressed(button, large && seen.head === state.head);
    });
    paintLarge();
    quiet();
  };
  const paintLarge = () => {
    const seen = large ? state.shown.find((one) => one.head === state.head) : undefined;
    paint(canvas, seen, state.place);
    canvas.setAttribute("aria-label", `The image, ${down} rows of ${across} patches; seen from ${named(state.place)}`);
    const how = data.rows > 1 ? "Press a patch, or move with the arrow keys." : "";
    said.textContent = seen ? `${headName(seen.head)} over the image. ${how}` : `The image. ${how}`;
  };
  const tile = () => {
    const button = make("button"), drawn = make("canvas");
    button.type = "button";
    button.append(make("b"), drawn, make("small"));
    const own = () => state.shown[[...maps.children].indexOf(button)];
    button.addEventListener("click", () => {
      const { head } = own();
      large = !(large && state.head === head);
      state.head = head;
      [...maps.children].forEach((one, index) => pressed(one, large && state.shown[index].head === head));
      paintLarge();
    });
    drawn.addEventListener("pointermove", (event) => {
      const seen = own(), patch = patchAt(event, drawn);
      tell(headWeights.number(seen.values[patch], seen.wrong),
        ` · ${headName(seen.head)}, ${data.layers[state.layer].about}: from ${named(state.place)} to ${rowAndColumn(patch)}`);
    });
    drawn.addEventListener("pointerleave", quiet);
    return button;
  };
  const choose = (place) => { if (data.rows > 1) { state.place = place; update(); } };
  canvas.addEventListener("click", (event) => choose(patchAt(event, canvas)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (event.key === "Escape") choose(-1);
    if (!step) return;
    event.preventDefault();
    const from = Math.max(state.place, 0);
    const row = Math.min(Math.max(Math.floor(from / across) + (state.place < 0 ? 0 : step[0]), 0), down - 1);
    const column = Math.min(Math.max((from % across) + (state.place < 0 ? 0 : step[1]), 0), across - 1);
    choose(row * across + column);
  });
  await update();
  root.dataset.ready = "yes";
})();
