"use strict";
(() => {
  const data = JSON.parse(document.getElementById("positions-data").textContent);
  const SIDES = [["in training", "#0072b2", []], ["beyond training", "#d55e00", [6, 3]]];

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const number = (value, digits = 3) => value.toFixed(digits).replace("-", "−");
  const colour = cividis.mixed;
  const clamp = (value, most) => Math.min(Math.max(value, 0), most);

  // a map of bytes: 0 is nothing, 1 to 255 is −reach to reach
  function map(place, caption, packed, first, edges, both, tell) {
    const figure = element("figure"), stage = element("div", "stage"), canvas = element("canvas", "map");
    const bytes = Uint8Array.from(atob(packed.bytes), (character) => character.charCodeAt(0));
    const { rows, columns, reach } = packed;
    canvas.width = columns; canvas.height = rows; canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", caption);
    const pen = canvas.getContext("2d"), image = pen.createImageData(columns, rows);
    bytes.forEach((byte, index) => { if (byte) image.data.set([...colour((byte - 1) / 254), 255], 4 * index); });
    pen.putImageData(image, 0, 0);
    stage.append(canvas);
    for (const share of edges.map((row) => (row - first) / rows).filter((part) => part > 0 && part < 1)) {
      const edge = element("div", "edge");
      Object.assign(edge.style, { left: 0, right: 0, top: `${100 * share}%`, borderTopWidth: "2px" });
      stage.append(edge);
      if (both) {
        const other = element("div", "edge");
        Object.assign(other.style, { top: 0, bottom: 0, left: `${100 * share}%`, borderLeftWidth: "2px" });
        stage.append(other);
      }
    }
    const scale = element("div", "scale"), strip = element("canvas"), ink = (strip.width = 64, strip.height = 1, strip.getContext("2d"));
    const line = ink.createImageData(64, 1);
    for (let x = 0; x < 64; x++) line.data.set([...colour(x / 63), 255], 4 * x);
    ink.putImageData(line, 0, 0);
    scale.append(element("span", "", number(-reach, 2)), strip, element("span", "", number(reach, 2)));
    figure.append(element("figcaption", "", caption), stage, scale);
    place.append(figure);

    let at = null, pinned = false;
    const say = () => {
      if (at === null) { tell(null); return; }
      const byte = bytes[at.y * columns + at.x];
      tell({ row: first + at.y, column: at.x, value: byte ? ((byte - 1) / 127 - 1) * reach : null, step: reach / 254, pinned });
    };
    const find = (event) => {
      const box = canvas.getBoundingClientRect();
      return {
        x: clamp(Math.floor((event.clientX - box.left) / box.width * columns), columns - 1),
        y: clamp(Math.floor((event.clientY - box.top) / box.height * rows), rows - 1),
      };
    };
    canvas.addEventListener("pointermove", (event) => { if (!pinned) { at = find(event); say(); } });
    canvas.addEventListener("pointerleave", () => { if (!pinned) { at = null; say(); } });
    canvas.addEventListener("click", (event) => { pinned = !pinned; at = find(event); say(); });
    canvas.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (event.key === "Escape") { at = null; pinned = false; }
      else if (event.key === "Enter") { pinned = !pinned; at = at || { x: 0, y: 0 }; }
      else if (move) at = at ? { x: clamp(at.x + move[0], columns - 1), y: clamp(at.y + move[1], rows - 1) } : { x: 0, y: 0 };
      else return;
      event.preventDefault();
      say();
    });
  }

  function curve(place, one, tell) {
    const figure = element("figure", "wide"), canvas = element("canvas", "curve"), all = one.alike.flat();
    figure.append(element("figcaption", "", one.relative ? "added to the score, by distance key − query" : "cosine of positions t and t + k, by k"), canvas);
    place.append(figure);
    if (!all.length) return;
    const lowest = Math.min(...all.map((a) => a[0])), highest = Math.max(...all.map((a) => a[0]), lowest + 1);
    const bottom = Math.min(0, ...all.map((a) => a[2])), top = Math.max(...all.map((a) => a[3]), bottom + 1e-6);
    let at = null;
    const LEFT = 44, BOTTOM = 24, TOP = 8, RIGHT = 8;
    function paint() {
      const box = canvas.getBoundingClientRect(), dense = window.devicePixelRatio || 1;
      canvas.width = Math.max(1, Math.round(box.width * dense)); canvas.height = Math.max(1, Math.round(box.height * dense));
      const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
      pen.scale(dense, dense);
      pen.font = `12px ${style.getPropertyValue("--text")}`;
      const x = (k) => LEFT + (k - lowest) / (highest - lowest) * (box.width - LEFT - RIGHT);
      const y = (value) => TOP + (top - value) / (top - bottom) * (box.height - TOP - BOTTOM);
      for (let tick = 0; tick <= 4; tick++) {
        const value = bottom + (top - bottom) * tick / 4, k = Math.round(lowest + (highest - lowest) * tick / 4);
        pen.strokeStyle = style.getPropertyValue("--line"); pen.fillStyle = style.getPropertyValue("--quiet");
        pen.beginPath(); pen.moveTo(LEFT, y(value)); pen.lineTo(box.width - RIGHT, y(value)); pen.stroke();
        pen.textAlign = "right"; pen.fillText(number(value, 2), LEFT - 6, y(value) + 4);
        pen.textAlign = tick === 4 ? "right" : "center"; pen.fillText(String(k).replace("-", "−"), x(k), box.height - 6);
      }
      one.alike.forEach((side, index) => {
        if (!side.length) return;
        const [, shade, dashes] = SIDES[index];
        pen.globalAlpha = .2; pen.fillStyle = shade; pen.beginPath();
        side.forEach((a, i) => pen[i ? "lineTo" : "moveTo"](x(a[0]), y(a[3])));
        [...side].reverse().forEach((a) => pen.lineTo(x(a[0]), y(a[2])));
        pen.fill();
        pen.globalAlpha = 1; pen.strokeStyle = shade; pen.lineWidth = 1.75; pen.setLineDash(dashes); pen.beginPath();
        side.forEach((a, i) => pen[i ? "lineTo" : "moveTo"](x(a[0]), y(a[1])));
        pen.stroke();
        pen.setLineDash([]); pen.lineWidth = 1;
      });
      if (at !== null) {
        pen.strokeStyle = style.getPropertyValue("--quiet"); pen.setLineDash([2, 3]);
        pen.beginPath(); pen.moveTo(x(at), TOP); pen.lineTo(x(at), box.height - BOTTOM); pen.stroke(); pen.setLineDash([]);
      }
    }
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      at = Math.round(lowest + (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT) * (highest - lowest));
      at = Math.min(Math.max(at, lowest), highest);
      paint();
      tell(at);
    });
    canvas.addEventListener("pointerleave", () => { at = null; paint(); tell(null); });
    new ResizeObserver(paint).observe(canvas);
  }

  document.querySelectorAll("section.positions").forEach((section) => {
    const one = data[Number(section.dataset.index)], readout = element("p", "readout"), maps = element("div", "maps");
    readout.setAttribute("aria-live", "polite");
    section.append(readout, maps);
    const quiet = "point at a picture for its numbers";
    const write = (strong, rest) => readout.replaceChildren(element("strong", "", strong), document.createTextNode(rest));
    const cell = (name, where) => (seen) => {
      if (seen === null) { readout.textContent = quiet; return; }
      if (seen.value === null) { write("none", ` · ${where(seen)}: there is no such position`); return; }
      const digits = Math.max(3, Math.ceil(-Math.log10(seen.step)));
      write(`${name} ${number(seen.value, digits)}`, ` (±${seen.step.toPrecision(1)}) · ${where(seen)}${seen.pinned ? " · pinned" : ""}`);
    };
    readout.textContent = quiet;
    const seenRow = (row) => `${one.relative ? "distance" : "position"} ${String(row).replace("-", "−")}${one.trained !== null && (one.relative ? Math.abs(row) : row) >= one.trained ? " (beyond training)" : ""}`;
    const edges = one.trained === null ? [] : [one.trained]; // a distance has two directions
    map(maps, one.relative ? "distance ↓, head →" : "position ↓, dimension →", one.table, one.first, one.relative ? edges.flatMap((n) => [n, 1 - n]) : edges, false,
      cell("value", (seen) => `${seenRow(seen.row)}, ${one.relative ? "head" : "dimension"} ${seen.column}`));
    map(maps, one.relative ? "query ↓, key →" : "position ↓, position →", one.pairs, 0, edges, true,
      cell(one.relative ? "added" : "cosine", (seen) => `positions ${seen.row} and ${seen.column}, ${Math.abs(seen.row - seen.column)} apart`));
    curve(section, one, (k) => {
      if (k === null) { readout.textContent = quiet; return; }
      const told = one.alike.map((side, index) => [side.find((a) => a[0] === k), SIDES[index][0]]).filter(([found]) => found);
      write(`${String(k).replace("-", "−")} apart`, told.map(([a, name]) => ` · ${name}: ${number(a[1])} (${number(a[2])} to ${number(a[3])})`).join(""));
    });
  });
})();
