// Lines over a number: axes, one or several series with bands, a mark under the pointer or moved by the arrow keys.
import { theme } from "./colour.js";
import { clamp, css, cut, drawnLater, penOf } from "./drawing.js";
import { make, shown, visible } from "./text.js";

// told apart by everybody (Okabe and Ito), a set for each theme
const PALETTE = {
  light: ["#0072b2", "#c04a00", "#007a5a", "#a3437f", "#8a6500", "#444b57"],
  dark: ["#6cb8f0", "#ff9a5c", "#3ccfa6", "#eba6cf", "#f0c94a", "#c3cad4"],
};
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2]];
export const palette = (index) => PALETTE[theme()][index % PALETTE.light.length];
// others in each round of colours
const dashes = (index) => DASHES[(index + Math.floor(index / PALETTE.light.length)) % DASHES.length];
// a loss begins so high that nothing else could be seen: what comes before this share may be cut off
const SETTLED = 0.05;
const MOST_DOTS = 60;

// A signal that ends with `outer`, or when `element` is filled anew: what was drawn in it before lets go.
export const renewed = (element, outer) => {
  element.ended?.abort();
  element.ended = new AbortController();
  outer.addEventListener("abort", () => element.ended.abort(), { signal: element.ended.signal });
  return element.ended.signal;
};

// round numbers between two
const nice = (low, high, count) => {
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
const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const tick = (x, log) => {
  const [size, power] = [Math.abs(x), Math.log10(Math.abs(x))];
  if (log && Math.abs(power) > 3.5 && Math.abs(power - Math.round(power)) < 1e-6) {
    return `10${power < 0 ? "⁻" : ""}${[...String(Math.abs(Math.round(power)))].map((digit) => SUPER[digit]).join("")}`;
  }
  const [unit, sign] = size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
  return `${Number((x / unit).toPrecision(5))}${sign}`.replaceAll("-", "−");
};
const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

// Where an axis begins and ends: where it was told to, or where its numbers do, with some room around them.
const ends = (values, { low, high, log }, room) => {
  let [from, to] = values.length ? [least(values), most(values)] : log ? [0.1, 1] : [0, 1];
  if (log && room) [from, to] = [from / 1.25, to * 1.25];
  else if (room) {
    const more = room * (to - from) || room * Math.abs(to) || 1;
    // from 0 where that costs little
    [from, to] = [from >= 0 && from < 0.5 * to ? 0 : from - more, to + more];
  }
  [from, to] = [low ?? from, high ?? to];
  if (from < to) return [from, to];
  return log ? [from / 2, from * 2] : [from - 0.5, from + 0.5];
};

// options: {label, title (above), keys, height, series: [{name, points: [[x, y]], band: [[x, low, high]], colour (number),
//           dots (size), faint, alone (dots and no line)}], empty (said where there is no point),
//           values (the names stand below, with the numbers at the mark, or the last),
//           x: {title, low, high, log, whole, names: [of 0, 1, …], bare (no names)}, y: {log, low, high, settle},
//           marks: [{x, text}], at, stays, say(x) -> nodes, onHover(x), onPin(x)}
// The element has update(options) and point(x or null).
export const plot = (given, { signal }) => {
  const state = { options: {}, at: null, seen: null, numbers: [] };
  const canvas = make("canvas", { "aria-hidden": true });
  const frame = make("div", { class: "plot-frame", tabindex: 0, role: "group" }, canvas);
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const title = make("p", { class: "plot-title" });
  const key = make("ul", { class: "plot-key" });
  const box = make("div", { class: "plot" }, title, given.values ? [frame, key] : [key, frame], readout);
  const fits = ([, y]) => Number.isFinite(y) && (!state.options.y.log || y > 0);

  box.update = (more) => {
    const options = { height: 240, series: [], x: {}, y: {}, marks: [], ...state.options, ...more };
    state.options = options;
    if ("at" in more) state.at = more.at;
    const all = options.series.flatMap(({ points, band = [] }) => [...points, ...band.flatMap(([x, low, high]) => [[x, low], [x, high]])]).filter(fits);
    const settled = options.y.settle ? options.series.flatMap(({ points }) => points.filter(([x]) => x >= SETTLED * points.at(-1)[0])).filter(fits) : all;
    state.bounds = { x: ends(all.map(([x]) => x), options.x, 0), y: ends(settled.map(([, y]) => y), options.y, 0.06) };
    state.places = [...new Set(all.map(([x]) => x))].sort((a, b) => a - b);
    if (options.values && !state.places.includes(state.at)) state.at = null;
    frame.setAttribute("aria-label", `${options.label}. ${options.keys ?? ""}`);
    title.textContent = options.title ?? "";
    title.hidden = !options.title;
    drawKey();
    say();
    later();
  };
  const drawKey = () => {
    const { series, values } = state.options;
    const named = series.filter((one) => one.name && (!values || one.points.some(fits)));
    key.hidden = !values && named.length < 2;
    state.numbers = named.map((one) => [one, make("b", { class: "number" })]);
    state.where = make("li", { class: "number" });
    key.replaceChildren(...(values && named.length ? [state.where] : []), ...state.numbers.map(([one, number]) => (
      make("li", {}, sample(one), make("bdi", { text: one.name }), values ? number : null))));
  };
  const sample = ({ colour = 0, faint, alone }) => {
    const line = make("canvas", { "aria-hidden": true });
    [line.width, line.height] = [48, 16];
    const pen = line.getContext("2d");
    Object.assign(pen, { strokeStyle: palette(colour), fillStyle: palette(colour), lineWidth: 4, globalAlpha: faint ? 0.5 : 1 });
    pen.setLineDash(dashes(colour).map((part) => 2 * part));
    pen.beginPath();
    if (alone) {
      pen.arc(24, 8, 7, 0, 7);
      pen.fill();
    } else {
      pen.moveTo(0, 8); pen.lineTo(48, 8); pen.stroke();
    }
    return line;
  };

  const place = (width, height) => {
    const { x, y } = state.options;
    const [left, right, top, bottom] = [56, 12, 10, x.names ? (x.bare ? 8 : 78) : 42];
    const share = ([from, to], log) => (log ? (value) => Math.log(Math.max(value, from) / from) / Math.log(to / from) : (value) => (value - from) / (to - from));
    const [across, up] = [share(state.bounds.x, x.log), share(state.bounds.y, y.log)];
    return {
      left, top, right: width - right, floor: height - bottom,
      x: (value) => left + across(value) * (width - left - right), y: (value) => height - bottom - up(value) * (height - top - bottom),
    };
  };
  const draw = () => {
    if (!frame.isConnected) return;
    const [width, height] = [Math.max(160, frame.clientWidth), state.options.height];
    const pen = penOf(canvas, width, height);
    const seen = place(width, height);
    state.seen = seen;
    axes(pen, seen);
    pen.save();
    pen.beginPath();
    pen.rect(seen.left - 6, seen.top - 6, seen.right - seen.left + 12, seen.floor - seen.top + 12);
    pen.clip();
    for (const one of [...state.options.series].reverse().sort((a, b) => Number(Boolean(b.faint)) - Number(Boolean(a.faint)))) line(pen, seen, one);
    if (state.at !== null && state.at !== undefined) mark(pen, seen);
    pen.restore();
    if (state.places.length || !state.options.empty) return;
    pen.textAlign = "center";
    pen.fillText(state.options.empty, (seen.left + seen.right) / 2, (seen.top + seen.floor) / 2);
  };
  const axes = (pen, seen) => {
    const { x, y, marks, height } = state.options;
    const width = seen.right - seen.left;
    Object.assign(pen, { font: `12px ${css("--text")}`, fillStyle: css("--quiet"), strokeStyle: css("--line"), lineWidth: 1, textBaseline: "middle", textAlign: "right" });
    for (const value of y.log ? decades(...state.bounds.y) : nice(...state.bounds.y, Math.min(5, height / 56))) {
      const at = Math.round(seen.y(value)) + 0.5;
      pen.beginPath(); pen.moveTo(seen.left, at); pen.lineTo(seen.right, at); pen.stroke();
      pen.fillText(tick(value, y.log), seen.left - 8, at);
    }
    if (x.names) {
      if (!x.bare) words(pen, seen);
      return;
    }
    // on such a scale what was measured is named
    const every = Math.ceil(state.places.length / (width / 56));
    const found = x.log ? state.places.filter((_, index) => index % every === 0) : nice(...state.bounds.x, Math.min(8, width / 72));
    for (const value of found.filter((one) => !x.whole || Number.isInteger(one))) {
      const text = tick(value);
      pen.fillText(text, Math.min(seen.x(value) + pen.measureText(text).width / 2, seen.right + 12), seen.floor + 14);
    }
    pen.fillText(x.title ?? "", seen.right, seen.floor + 32);
    drawMarks(pen, seen, marks);
  };
  // under each place its word, upright
  const words = (pen, seen) => {
    const { names } = state.options.x;
    const every = Math.ceil(14 / ((seen.right - seen.left) / Math.max(1, names.length - 1)));
    names.forEach((name, index) => {
      if (index % every) return;
      pen.save();
      pen.translate(seen.x(index), seen.floor + 8);
      pen.rotate(-Math.PI / 2);
      pen.fillText(cut(pen, visible(name), 66), 0, 0);
      pen.restore();
    });
  };
  const drawMarks = (pen, seen, marks) => {
    for (const { x: where, text } of marks) {
      const at = seen.x(where);
      if (at < seen.left || at > seen.right) continue;
      pen.save();
      Object.assign(pen, { strokeStyle: css("--second"), fillStyle: css("--second"), lineWidth: 1.5 });
      pen.setLineDash([4, 3]);
      pen.beginPath(); pen.moveTo(at, seen.top); pen.lineTo(at, seen.floor); pen.stroke();
      const after = at + 6 + pen.measureText(text).width < seen.right;
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
    const drawn = points.filter(([, y]) => Number.isFinite(y));
    pen.globalAlpha = faint ? 0.5 : 1;
    pen.setLineDash(dashes(colour));
    pen.beginPath();
    if (!alone) drawn.forEach(([x, y], index) => pen[index ? "lineTo" : "moveTo"](seen.x(x), seen.y(y)));
    pen.stroke();
    if (alone || drawn.length === 1 || (dots && !faint && drawn.length <= MOST_DOTS)) {
      for (const [x, y] of drawn) {
        pen.beginPath(); pen.arc(seen.x(x), seen.y(y), dots || 3, 0, 7); pen.fill();
      }
    }
    pen.restore();
  };
  const mark = (pen, seen) => {
    const at = seen.x(state.at);
    Object.assign(pen, { strokeStyle: css("--ink"), lineWidth: 1 });
    pen.setLineDash([2, 3]);
    pen.beginPath(); pen.moveTo(at, seen.top); pen.lineTo(at, seen.floor); pen.stroke();
    pen.setLineDash([]);
    for (const { points, colour = 0, faint } of state.options.series) {
      const found = faint ? null : points.find(([x]) => x === state.at);
      if (!found) continue;
      Object.assign(pen, { fillStyle: palette(colour), strokeStyle: css("--paper"), lineWidth: 2 });
      pen.beginPath(); pen.arc(at, seen.y(found[1]), 5, 0, 7); pen.fill(); pen.stroke();
    }
  };

  // ------------------------------------------------------------ what is pointed at

  const nearest = (some, distance) => some.reduce((best, one) => (best === null || distance(one) < distance(best) ? one : best), null);
  const say = () => {
    const { say: own, values, x } = state.options;
    readout.hidden = !own;
    if (own) readout.replaceChildren(...[own(state.at)].flat());
    if (!values) return;
    const at = state.at ?? state.places.at(-1);
    state.where.textContent = `${x.title}: ${tick(at)}`;
    for (const [{ points }, number] of state.numbers) number.textContent = shown(nearest(points.filter(fits), (one) => Math.abs(one[0] - at))[1]);
  };
  box.point = (at, quiet = false) => {
    if (at === state.at) return;
    state.at = at;
    if (!quiet) state.options.onHover?.(at);
    say();
    later();
  };
  frame.addEventListener("pointermove", (event) => {
    const pixel = event.clientX - frame.getBoundingClientRect().left;
    if (state.seen && state.places.length) box.point(nearest(state.places, (one) => Math.abs(state.seen.x(one) - pixel)));
  });
  frame.addEventListener("pointerleave", () => { if (!state.options.stays) box.point(null); });
  frame.addEventListener("click", () => { if (state.at !== null) state.options.onPin?.(state.at); });
  frame.addEventListener("keydown", (event) => {
    const last = state.places.length - 1;
    const now = state.places.indexOf(state.at);
    const next = { ArrowLeft: now < 0 ? last : now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape" && !state.options.stays) box.point(null);
    if (next === undefined || last < 0) return;
    // only for who moves by keys: what grows would never be silent
    key.setAttribute("aria-live", "polite");
    box.point(state.places[clamp(next, 0, last)]);
    state.options.onPin?.(state.at);
    event.preventDefault();
    event.stopPropagation();
  });
  const later = drawnLater(box, draw, signal, () => { drawKey(); say(); });
  box.update(given);
  return box;
};
