// Lines over a number: axes, one or several series with bands, a mark under the pointer or moved by the arrow keys.
import { make, shown, visible } from "./text.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = { // told apart by everybody (Okabe and Ito), a set for each theme
  light: ["#0072b2", "#c04a00", "#007a5a", "#a3437f", "#8a6500", "#444b57"],
  dark: ["#6cb8f0", "#ff9a5c", "#3ccfa6", "#eba6cf", "#f0c94a", "#c3cad4"],
};
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], []];
export const palette = (index) => {
  const all = PALETTE[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];
  return all[index % all.length];
};
export const dashes = (index) => DASHES[index % DASHES.length];

// A signal that ends with `outer`, or when `element` is filled anew: what was drawn in it before lets go.
export const renewed = (element, outer) => {
  element.ended?.abort();
  element.ended = new AbortController();
  outer.addEventListener("abort", () => element.ended.abort(), { signal: element.ended.signal });
  return element.ended.signal;
};

const nice = (low, high, count) => { // round numbers between two
  const raw = (high - low) / Math.max(1, count) || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * ([1, 2, 5, 10].find((one) => one * size >= raw * 0.999) ?? 10);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
};
const decades = (low, high) => {
  const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
  const every = Math.max(1, Math.ceil((last - first) / 6));
  const found = [];
  for (let power = first; power <= last; power += every) {
    found.push(10 ** power);
    if (last - first <= 3) found.push(2 * 10 ** power, 5 * 10 ** power);
  }
  return found.filter((one) => one >= low * 0.999 && one <= high * 1.001);
};
const tick = (x) => shown(x).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

// options: {label, height, series: [{name, points: [[x, y]], band: [[x, low, high]], colour (number), dots (size), faint,
//           alone (dots and no line)}],
//           x: {title, low, high, whole, names: [of 0, 1, …], bare (no names)}, y: {title, log, low, high}, marks: [{x, text}], at, say(x) -> nodes, onHover(x)}
// The element has update(options) and point(x or null).
export const plot = (given, { signal }) => {
  const state = { options: {}, at: null, seen: null };
  const canvas = make("canvas", { "aria-hidden": "true" });
  const frame = make("div", { class: "plot-frame", tabindex: "0", role: "group" }, canvas);
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const key = make("ul", { class: "plot-key" });
  const box = make("div", { class: "plot" }, key, frame, readout);

  const all = () => state.options.series.flatMap(({ points, band = [] }) => [
    ...points, ...band.flatMap(([x, low, high]) => [[x, low], [x, high]])]);
  box.update = (more) => {
    const options = { height: 240, series: [], x: {}, y: {}, marks: [], ...state.options, ...more };
    state.options = options;
    if ("at" in more) state.at = more.at;
    const numbers = all().filter(([, y]) => Number.isFinite(y) && (!options.y.log || y > 0));
    const [xs, ys] = [0, 1].map((axis) => numbers.map((one) => one[axis]));
    const bounds = (values, axis, fallback) => [
      axis.low ?? values.reduce((a, b) => Math.min(a, b), Infinity), axis.high ?? values.reduce((a, b) => Math.max(a, b), -Infinity),
    ].map((one, index) => (Number.isFinite(one) ? one : fallback[index]));
    let [x, y] = [bounds(xs, options.x, [0, 1]), bounds(ys, options.y, [options.y.log ? 0.1 : 0, 1])];
    if (x[0] === x[1]) x = [x[0] - 0.5, x[1] + 0.5];
    if (y[0] === y[1]) y = options.y.log ? [y[0] / 2, y[1] * 2] : [y[0] - 0.5, y[1] + 0.5];
    if (options.y.log) y = [y[0] / 1.25, y[1] * 1.25];
    else if (options.y.high === undefined) y[1] += (y[1] - y[0]) * 0.05; // no dot lies on the edge
    state.bounds = { x, y };
    state.places = [...new Set(xs)].sort((a, b) => a - b);
    frame.setAttribute("aria-label", `${options.label}. ${options.keys ?? ""}`);
    key.hidden = options.series.filter((one) => one.name).length < 2;
    drawKey();
    say();
    later();
  };
  const drawKey = () => key.replaceChildren(...state.options.series.filter((one) => one.name).map((one) => {
    const line = make("canvas", { "aria-hidden": "true" });
    [line.width, line.height] = [48, 16];
    const pen = line.getContext("2d");
    Object.assign(pen, { strokeStyle: palette(one.colour ?? 0), lineWidth: 4, globalAlpha: one.faint ? 0.5 : 1 });
    pen.setLineDash(dashes(one.colour ?? 0).map((part) => 2 * part));
    pen.beginPath();
    if (one.alone) {
      pen.fillStyle = pen.strokeStyle;
      pen.arc(24, 8, 7, 0, 7);
      pen.fill();
    } else {
      pen.moveTo(0, 8); pen.lineTo(48, 8); pen.stroke();
    }
    return make("li", {}, line, one.name);
  }));

  const place = (width, height) => {
    const { x, y } = state.bounds;
    const { log } = state.options.y;
    const [left, right, top, bottom] = [56, 12, 10, state.options.x.names ? (state.options.x.bare ? 8 : 78) : 42];
    const level = log ? (value) => Math.log(value) : (value) => value;
    const [low, high] = y.map(level);
    return {
      left, right, top, bottom,
      x: (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right),
      y: (value) => top + ((high - level(log ? Math.max(value, y[0]) : value)) / (high - low)) * (height - top - bottom),
      back: (pixel) => x[0] + ((pixel - left) / (width - left - right)) * (x[1] - x[0]),
    };
  };
  const draw = () => {
    if (!frame.isConnected || !state.bounds) return;
    const [width, height] = [Math.max(160, frame.clientWidth), state.options.height];
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const seen = place(width, height);
    state.seen = seen;
    axes(pen, seen, width, height);
    for (const one of [...state.options.series].reverse().sort((a, b) => Number(Boolean(b.faint)) - Number(Boolean(a.faint)))) line(pen, seen, one);
    if (state.at !== null && state.at !== undefined) mark(pen, seen, height);
  };
  const axes = (pen, seen, width, height) => {
    const { x, y, marks } = state.options;
    const [floor, quiet] = [height - seen.bottom, style("--quiet")];
    Object.assign(pen, { font: `12px ${style("--text")}`, fillStyle: quiet, strokeStyle: style("--line"), lineWidth: 1, textBaseline: "middle" });
    for (const value of y.log ? decades(...state.bounds.y) : nice(...state.bounds.y, 4)) {
      const at = Math.round(seen.y(value)) + 0.5;
      pen.beginPath(); pen.moveTo(seen.left, at); pen.lineTo(width - seen.right, at); pen.stroke();
      pen.textAlign = "right";
      pen.fillText(tick(value), seen.left - 8, at);
    }
    if (x.names) {
      if (!x.bare) words(pen, seen, floor, width);
      return;
    }
    const whole = nice(...state.bounds.x, Math.min(8, width / 72)).filter((value) => !x.whole || Number.isInteger(value));
    for (const value of whole) {
      pen.textAlign = "center";
      pen.fillText(tick(value), seen.x(value), floor + 14);
    }
    pen.textAlign = "right";
    pen.fillText(x.title ?? "", width - seen.right, floor + 32);
    drawMarks(pen, seen, width, floor, marks);
  };
  const words = (pen, seen, floor, width) => { // under each place its word, upright
    const { names } = state.options.x;
    const every = Math.ceil(14 / ((width - seen.left - seen.right) / Math.max(1, names.length - 1)));
    names.forEach((name, index) => {
      if (index % every) return;
      pen.save();
      pen.translate(seen.x(index), floor + 8);
      pen.rotate(-Math.PI / 2);
      let text = [...visible(name)];
      while (text.length > 1 && pen.measureText(text.join("")).width > 66) text = [...text.slice(0, -2), "…"];
      pen.fillText(text.join(""), 0, 0);
      pen.restore();
    });
  };
  const drawMarks = (pen, seen, width, floor, marks) => {
    for (const { x: where, text } of marks) {
      const at = seen.x(where);
      if (at < seen.left || at > width - seen.right) continue;
      pen.save();
      Object.assign(pen, { strokeStyle: style("--second"), fillStyle: style("--second"), lineWidth: 1.5 });
      pen.setLineDash([4, 3]);
      pen.beginPath(); pen.moveTo(at, seen.top); pen.lineTo(at, floor); pen.stroke();
      const after = at + 6 + pen.measureText(text).width < width - seen.right;
      pen.textAlign = after ? "left" : "right";
      pen.fillText(text, at + (after ? 6 : -6), seen.top + 8);
      pen.restore();
    }
  };
  const line = (pen, seen, { points, band = [], colour = 0, dots, faint, alone }) => {
    pen.save();
    const ink = palette(colour);
    Object.assign(pen, { strokeStyle: ink, fillStyle: ink, lineWidth: faint ? 1.25 : 2, globalAlpha: 0.18, lineJoin: "round" });
    if (band.length) {
      pen.beginPath();
      band.forEach(([x, , high], index) => pen[index ? "lineTo" : "moveTo"](seen.x(x), seen.y(high)));
      [...band].reverse().forEach(([x, low]) => pen.lineTo(seen.x(x), seen.y(low)));
      pen.fill();
    }
    pen.globalAlpha = faint ? 0.5 : 1;
    pen.setLineDash(dashes(colour));
    pen.beginPath();
    if (!alone) points.forEach(([x, y], index) => pen[index ? "lineTo" : "moveTo"](seen.x(x), seen.y(y)));
    pen.stroke();
    if (dots && !faint) {
      for (const [x, y] of points) {
        pen.beginPath(); pen.arc(seen.x(x), seen.y(y), dots, 0, 7); pen.fill();
      }
    }
    pen.restore();
  };
  const mark = (pen, seen, height) => {
    const at = seen.x(state.at);
    pen.save();
    Object.assign(pen, { strokeStyle: style("--ink"), lineWidth: 1 });
    pen.setLineDash([2, 3]);
    pen.beginPath(); pen.moveTo(at, seen.top); pen.lineTo(at, height - seen.bottom); pen.stroke();
    pen.setLineDash([]);
    for (const { points, colour = 0, faint } of state.options.series) {
      const found = faint ? null : points.find(([x]) => x === state.at);
      if (!found) continue;
      Object.assign(pen, { fillStyle: palette(colour), strokeStyle: style("--paper"), lineWidth: 2 });
      pen.beginPath(); pen.arc(at, seen.y(found[1]), 5, 0, 7); pen.fill(); pen.stroke();
    }
    pen.restore();
  };
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };

  // ------------------------------------------------------------ what is pointed at

  const say = () => {
    const { say: own } = state.options;
    readout.hidden = !own;
    if (own) readout.replaceChildren(...[own(state.at)].flat());
  };
  box.point = (at, quiet = false) => {
    if (at === state.at) return;
    state.at = at;
    if (!quiet) state.options.onHover?.(at);
    say();
    later();
  };
  const nearest = (x) => state.places.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best), state.places[0] ?? null);
  frame.addEventListener("pointermove", (event) => {
    if (state.seen && state.places.length) box.point(nearest(state.seen.back(event.clientX - frame.getBoundingClientRect().left)));
  });
  frame.addEventListener("pointerleave", () => { if (!state.options.stays) box.point(null); });
  frame.addEventListener("click", () => { if (state.at !== null) state.options.onPin?.(state.at); });
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !state.places.length) return;
    const now = state.places.indexOf(state.at);
    const next = now < 0 ? (step > 0 ? 0 : state.places.length - 1) : Math.min(Math.max(now + step, 0), state.places.length - 1);
    box.point(state.places[next]);
    state.options.onPin?.(state.at);
    event.preventDefault();
    event.stopPropagation();
  });
  document.addEventListener("themechange", () => { drawKey(); later(); }, { signal });
  const watcher = new ResizeObserver(later);
  watcher.observe(box);
  signal.addEventListener("abort", () => watcher.disconnect());
  box.update(given);
  return box;
};
