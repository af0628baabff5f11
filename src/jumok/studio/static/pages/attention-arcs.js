// The two lines of words, and lines from each word that looks to those it looks at: the stronger, the thicker.
import { drawnLater } from "../drawing.js";
import { largestOf } from "./attention-sides.js";

const [TOP, HEIGHT, GAP, WIDEST] = [28, 216, 14, 3600];
// weights below are not drawn while everything is
const FAINT = 0.04;
// lines of one word
const MOST = 64;

// point(row or null), pin(row, more). The element has update(part), and point(row, pins).
export const arcsOf = (context, { point, pin }) => {
  const { make, t, css, visible } = context;
  const state = { part: null, row: null, pins: [], seen: null };
  const picture = context.canvas(10, HEIGHT, (pen, width) => { if (state.seen) draw(pen, width); }, t("arcsLabel"));
  const box = make("div", { class: "attention-arcs" }, picture);
  const font = () => `14px ${css("--text")}`;

  // Where the words stand: spread over the width; where they do not fit, only their places.
  const place = () => {
    const { rowNames, columnNames } = state.part;
    const pen = picture.getContext("2d");
    pen.font = font();
    // their words do not fit, whatever they are
    const many = rowNames.length + columnNames.length > 400;
    const sizeOf = (name) => (many ? WIDEST : Math.min(140, pen.measureText(visible(name)).width));
    const lines = [rowNames, columnNames].map((names) => names.map(sizeOf));
    const needed = Math.max(...lines.map((sizes) => sizes.reduce((sum, size) => sum + size + GAP, GAP)));
    const room = box.clientWidth || 640;
    const worded = needed <= Math.max(room, WIDEST);
    const width = worded ? Math.max(needed, Math.min(room, needed * 1.8)) : room;
    const spread = (sizes) => {
      const used = sizes.reduce((sum, size) => sum + size, 0);
      const gap = (width - used) / (sizes.length + 1);
      let x = gap;
      return sizes.map((size) => { const middle = x + size / 2; x += size + gap; return middle; });
    };
    const even = (count) => Array.from({ length: count }, (_, index) => ((index + 0.5) / count) * width);
    const [top, bottom] = worded ? lines.map(spread) : [even(rowNames.length), even(columnNames.length)];
    return { width, worded, top, bottom, sizes: lines };
  };

  const curve = (pen, from, to) => {
    const [y0, y1] = [TOP + 6, HEIGHT - TOP - 6];
    pen.beginPath();
    pen.moveTo(from, y0);
    pen.bezierCurveTo(from, y0 + (y1 - y0) * 0.55, to, y0 + (y1 - y0) * 0.45, to, y1);
    pen.stroke();
  };
  const strongest = (row) => {
    const { data, columns } = state.part;
    const start = row * columns.length;
    const all = columns.map((_, s) => s).filter((s) => data[start + s] > 0.004);
    return all.length <= MOST ? all : all.sort((a, b) => data[start + b] - data[start + a]).slice(0, MOST);
  };
  // Of too many words: where some of them look most.
  const overview = (pen) => {
    const { part: { data, rows, columns }, seen: { top, bottom } } = state;
    [pen.strokeStyle, pen.lineWidth] = [css("--accent"), 1];
    for (let row = 0; row < rows.length; row += Math.ceil(rows.length / 128)) {
      const best = largestOf(data, columns.length, row);
      pen.globalAlpha = 0.1 + 0.6 * data[row * columns.length + best];
      curve(pen, top[row], bottom[best]);
    }
    pen.globalAlpha = 1;
  };
  const draw = (pen, width) => {
    if (!state.seen) return;
    const { part: { data, rows, columns, rowNames, columnNames }, seen: { top, bottom, worded }, pins } = state;
    const chosen = state.row !== null ? [[state.row, "--accent"]] : pins.map((row, index) => [row, index ? "--second" : "--accent"]);
    const lines = (row, ink, least) => {
      pen.strokeStyle = ink;
      for (const s of strongest(row)) {
        const weight = data[row * columns.length + s];
        if (weight < least) continue;
        pen.globalAlpha = Math.min(1, 0.1 + 0.9 * weight);
        pen.lineWidth = 0.75 + 5 * weight;
        curve(pen, top[row], bottom[s]);
      }
      pen.globalAlpha = 1;
    };
    if (!chosen.length && worded && rows.length <= 96) rows.forEach((_, row) => lines(row, css("--accent"), FAINT));
    else if (!chosen.length) overview(pen);
    for (const [row, ink] of chosen) lines(row, css(ink), 0);
    const looked = new Map();
    for (const [row] of chosen) for (const s of columns.keys()) looked.set(s, Math.max(looked.get(s) ?? 0, data[row * columns.length + s]));
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    pen.font = font();
    const word = (name, x, y, on, share) => {
      const text = visible(name);
      const size = Math.min(140, pen.measureText(text).width);
      if (share > 0.01) {
        pen.fillStyle = css("--tint");
        pen.globalAlpha = Math.min(1, share * 2);
        pen.beginPath();
        pen.roundRect(x - size / 2 - 5, y - 11, size + 10, 22, 6);
        pen.fill();
        pen.globalAlpha = 1;
      }
      pen.fillStyle = css(on ? "--accent" : "--ink");
      pen.fillText(text, x, y, 140);
    };
    if (worded) {
      rowNames.forEach((name, row) => word(name, top[row], TOP / 2, chosen.some(([one]) => one === row), 0));
      columnNames.forEach((name, s) => word(name, bottom[s], HEIGHT - TOP / 2, looked.get(s) > 0.1, looked.get(s) ?? 0));
      return;
    }
    // no room for words: a tick for each, and the words that matter
    pen.fillStyle = css("--edge");
    top.forEach((x) => pen.fillRect(x, TOP - 2, 1, 5));
    bottom.forEach((x) => pen.fillRect(x, HEIGHT - TOP - 3, 1, 5));
    const inside = (x, text) => Math.min(Math.max(x, pen.measureText(text).width / 2 + 2), width - pen.measureText(text).width / 2 - 2);
    for (const [row] of chosen.slice(0, 1)) {
      word(rowNames[row], inside(top[row], rowNames[row]), TOP / 2, true, 0);
      const taken = [];
      for (const s of [...looked.keys()].sort((a, b) => looked.get(b) - looked.get(a)).slice(0, 24)) {
        const half = pen.measureText(visible(columnNames[s])).width / 2 + 6;
        const x = inside(bottom[s], columnNames[s]);
        if (taken.every(([left, right]) => x + half < left || x - half > right)) {
          taken.push([x - half, x + half]);
          word(columnNames[s], x, HEIGHT - TOP / 2, true, looked.get(s));
        }
      }
    }
  };

  const layout = () => {
    if (!state.part || !box.isConnected) return;
    state.seen = place();
    picture.resize(state.seen.width, HEIGHT);
  };
  let laid = null;
  box.update = (part) => {
    const names = JSON.stringify([part.rowNames, part.columnNames]);
    state.part = part;
    if (names === laid && state.seen) { later(); return; }
    laid = names;
    [state.row, state.seen] = [null, null];
    layout();
  };
  box.point = (row, pins = state.pins) => {
    if (row === state.row && pins === state.pins) return;
    [state.row, state.pins] = [row, pins];
    later();
  };

  const rowAt = (event) => {
    if (!state.seen?.top.length) return null;
    const area = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    if (y > TOP + 24) return null;
    let best = 0;
    state.seen.top.forEach((middle, row) => { if (Math.abs(middle - x) < Math.abs(state.seen.top[best] - x)) best = row; });
    return best;
  };
  picture.addEventListener("pointermove", (event) => point(rowAt(event)));
  picture.addEventListener("pointerleave", () => point(null));
  picture.addEventListener("click", (event) => {
    const row = rowAt(event);
    if (row !== null) pin(row, event.shiftKey);
  });
  const later = drawnLater(box, layout, context.signal);
  return box;
};
