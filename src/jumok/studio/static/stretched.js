// A heat map whose cells are as wide and as high as there is room: units over time, positions and dimensions.
import { clamp, css, cut, drawnLater, penOf, scaleBar, sheetOf, STEPS } from "./drawing.js";
import { make, visible } from "./text.js";

// pixels that a word across needs
const READABLE = 15;

// options: {label, keys, data (row by row), rows, columns (how many), order: [row, …], signed, scale, height,
//           names: [of each column], first: [number of the first row, of the first column], titles: [down, across],
//           marks: {rows: [edge, …], columns: […]}, ticks (false: rows have no numbers), at: [row, column] or null,
//           onMove(at, how)}   how: "hover", "leave", "pin". `at` is in rows of the data, wherever `order` puts them.
// The element has update(options) and point(at); `numbers` is the data that is drawn.
export const stretched = (given, { signal }) => {
  const state = { options: {}, at: null, sheet: null, seen: null };
  const canvas = make("canvas", { "aria-hidden": true });
  const frame = make("div", { class: "stretched-frame", tabindex: 0, role: "group" }, canvas);
  const bar = scaleBar();
  const box = make("div", { class: "stretched" }, frame, bar);

  box.update = (more) => {
    const options = { height: 220, order: null, first: [0, 0], titles: ["", ""], marks: {}, signed: false, scale: 1, ...state.options, ...more };
    state.options = options;
    if ("at" in more) state.at = more.at;
    box.numbers = options.data;
    state.back = null;
    if (options.order) {
      state.back = new Int32Array(options.rows);
      options.order.forEach((row, index) => { state.back[row] = index; });
    }
    if (!more.at || Object.keys(more).length > 1) state.sheet = null;
    frame.setAttribute("aria-label", `${options.label}. ${options.rows} × ${options.columns}. ${options.keys ?? ""}`);
    bar.update(options);
    later();
  };
  const painted = ({ data, rows, columns, order, signed, scale }) => {
    const placed = order ? new Float32Array(rows * columns) : data;
    order?.forEach((row, index) => placed.set(data.subarray(row * columns, (row + 1) * columns), index * columns));
    return sheetOf(placed, rows, columns, { signed, scale });
  };

  // ------------------------------------------------------------ drawing

  const place = () => {
    const { rows, columns, names, height, titles, ticks } = state.options;
    const pen = canvas.getContext("2d");
    pen.font = `12px ${css("--text")}`;
    const [left, right] = [(ticks === false ? 8 : 40) + (titles[0] ? 16 : 0), 6];
    const width = Math.max(40, frame.clientWidth - left - right);
    const worded = names && width / columns >= READABLE;
    const words = worded ? Math.min(96, Math.max(...names.map((name) => pen.measureText(visible(name)).width))) + 12 : 20;
    return { left, top: 6, width, height, right, worded, below: words + (titles[1] ? 18 : 0), wide: width / columns, high: height / rows };
  };
  const draw = () => {
    if (!frame.isConnected || !state.options.data) return;
    const seen = place();
    state.seen = seen;
    const pen = penOf(canvas, frame.clientWidth, seen.top + seen.height + seen.below);
    hatch(pen, seen);
    pen.imageSmoothingEnabled = false;
    state.sheet ??= painted(state.options);
    pen.drawImage(state.sheet, seen.left, seen.top, seen.width, seen.height);
    edges(pen, seen);
    labels(pen, seen);
    if (state.at) cursor(pen, seen);
  };
  // shows where there is no number
  const hatch = (pen, { left, top, width, height }) => {
    pen.save();
    pen.beginPath(); pen.rect(left, top, width, height); pen.clip();
    Object.assign(pen, { strokeStyle: css("--line"), lineWidth: 1 });
    pen.beginPath();
    for (let x = -height; x < width; x += 7) { pen.moveTo(left + x, top + height); pen.lineTo(left + x + height, top); }
    pen.stroke();
    pen.restore();
  };
  const edges = (pen, { left, top, width, height, wide, high }) => {
    const { marks, rows, columns } = state.options;
    const stroke = (ink, thick, dash) => {
      Object.assign(pen, { strokeStyle: css(ink), lineWidth: thick });
      pen.setLineDash(dash);
      pen.beginPath();
      for (const edge of marks.rows ?? []) {
        if (edge > 0 && edge < rows) { pen.moveTo(left, top + edge * high); pen.lineTo(left + width, top + edge * high); }
      }
      for (const edge of marks.columns ?? []) {
        if (edge > 0 && edge < columns) { pen.moveTo(left + edge * wide, top); pen.lineTo(left + edge * wide, top + height); }
      }
      pen.stroke();
    };
    pen.save();
    stroke("--paper", 4, []);
    stroke("--second", 2, [6, 3]);
    pen.restore();
  };
  const labels = (pen, seen) => {
    const { rows, columns, names, first, titles, ticks } = state.options;
    const { left, top, width, height, wide, high, worded } = seen;
    Object.assign(pen, { font: `12px ${css("--text")}`, fillStyle: css("--quiet"), textBaseline: "middle" });
    const every = (cell, room) => [1, 2, 5, 10, 20, 25, 50, 100, 200, 500].find((step) => step * cell >= room) ?? 1000;
    const on = state.at ? [state.back ? state.back[state.at[0]] : state.at[0], state.at[1]] : [-1, -1];
    const spread = every(wide, 34);
    for (let column = 0; column < columns; column += 1) {
      const middle = left + (column + 0.5) * wide;
      const marked = column === on[1];
      const crowded = !worded && !marked && on[1] >= 0 && Math.abs(column - on[1]) * wide < 30;
      if (crowded || (!worded && !marked && (column + first[1]) % spread)) continue;
      pen.fillStyle = css(marked ? "--accent" : worded ? "--ink" : "--quiet");
      pen.font = `${marked ? "600 " : ""}12px ${css("--text")}`;
      pen.save();
      pen.translate(middle, top + height + (worded ? 6 : 12));
      if (worded) {
        pen.rotate(-Math.PI / 2);
        pen.textAlign = "right";
        pen.fillText(cut(pen, visible(names[column]), 90), 0, 0);
      } else {
        pen.textAlign = "center";
        pen.fillText(String(column + first[1]).replace("-", "−"), 0, 0);
      }
      pen.restore();
    }
    pen.textAlign = "right";
    const step = every(high, 22);
    for (let row = 0; ticks !== false && row < rows; row += 1) {
      const marked = row === on[0];
      if (!marked && ((row + first[0]) % step || (on[0] >= 0 && Math.abs(row - on[0]) * high < 14))) continue;
      pen.fillStyle = css(marked ? "--accent" : "--quiet");
      pen.font = `${marked ? "600 " : ""}12px ${css("--text")}`;
      const number = state.options.order ? state.options.order[row] : row + first[0];
      pen.fillText(String(number).replace("-", "−"), left - 6, clamp(top + (row + 0.5) * high, top + 5, top + height - 5));
    }
    pen.font = `12px ${css("--text")}`;
    pen.fillStyle = css("--quiet");
    if (titles[1]) pen.fillText(titles[1], left + width, top + height + seen.below - 8);
    if (titles[0]) {
      pen.save();
      pen.translate(8, top);
      pen.rotate(-Math.PI / 2);
      pen.fillText(titles[0], 0, 0);
      pen.restore();
    }
  };
  const cursor = (pen, { left, top, width, height, wide, high }) => {
    const row = state.back ? state.back[state.at[0]] : state.at[0];
    const [x, y] = [left + state.at[1] * wide, top + row * high];
    // a row of a pixel or two could not be seen in its frame
    const thick = Math.max(high, 5);
    const frames = [[x, top, wide, height], [left, y - (thick - high) / 2, width, thick]];
    for (const [ink, thick] of [["--paper", 3], ["--ink", 1]]) {
      Object.assign(pen, { strokeStyle: css(ink), lineWidth: thick, globalAlpha: ink === "--paper" ? 0.7 : 1 });
      for (const one of frames) pen.strokeRect(...one);
    }
    pen.globalAlpha = 1;
  };

  // ------------------------------------------------------------ what is pointed at

  box.point = (at) => {
    if (String(at) === String(state.at)) return;
    state.at = at;
    later();
  };
  const cellAt = (event) => {
    const area = frame.getBoundingClientRect();
    const { left, top, wide, high } = state.seen;
    const [row, column] = [Math.floor((event.clientY - area.top - top) / high), Math.floor((event.clientX - area.left - left) / wide)];
    const { rows, columns, order } = state.options;
    if (row < 0 || column < 0 || row >= rows || column >= columns) return null;
    return [order ? order[row] : row, column];
  };
  const moved = (at, how) => {
    box.point(at ?? state.at);
    state.options.onMove?.(at, how);
  };
  frame.addEventListener("pointermove", (event) => {
    const at = state.seen && cellAt(event);
    if (at && String(at) !== String(state.at)) moved(at, "hover");
  });
  frame.addEventListener("pointerleave", () => moved(null, "leave"));
  frame.addEventListener("click", (event) => {
    const at = state.seen && cellAt(event);
    if (at) moved(at, "pin");
  });
  frame.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    const { rows, columns, order } = state.options;
    const [row, column] = state.at ? [state.back ? state.back[state.at[0]] : state.at[0], state.at[1]] : [-step[0], -step[1]];
    const next = [clamp(row + step[0], 0, rows - 1), clamp(column + step[1], 0, columns - 1)];
    moved([order ? order[next[0]] : next[0], next[1]], "pin");
    event.preventDefault();
    event.stopPropagation();
  });
  const later = drawnLater(box, draw, signal, () => { state.sheet = null; bar.update(state.options); });
  box.update(given);
  return box;
};
