// Curves on a canvas that grow as they are looked at: several series over one axis, with a cross that follows the pointer
// or the arrow keys. Also for lessons.
import { theme } from "../colour.js";
import { make, shown } from "../text.js";

// After Okabe and Ito, told apart by the colour-blind too; the same hues, lighter, on dark paper.
const COLOURS = {
  light: ["#0072b2", "#c24f00", "#00805d", "#b0558a", "#7a5c1e", "#2c7fb8", "#946200"],
  dark: ["#56b4e9", "#f0883e", "#2fc99a", "#e39ac4", "#c8a663", "#9ecbf0", "#f0c04a"],
};
const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
export const colourOf = (index) => COLOURS[theme()][index % COLOURS.light.length];
const dashOf = (index) => DASHES[Math.floor(index / COLOURS.light.length) % DASHES.length];

const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const power = (exponent) => `10${exponent < 0 ? "⁻" : ""}${[...String(Math.abs(exponent))].map((digit) => SUPER[digit]).join("")}`;
const short = (value) => {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return String(Number(value.toPrecision(6))).replace("-", "−");
};

// Round numbers between two, about `count` of them; on a logarithmic scale powers of ten.
const ticksOf = (low, high, count, log) => {
  if (log) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((last - first + 1) / count));
    const found = [];
    for (let exponent = first; exponent <= last; exponent += step) found.push(10 ** exponent);
    return found.length > 1 ? found : [low, high];
  }
  const raw = (high - low) / count || 1;
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * base).find((one) => one >= raw * 0.999);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return found;
};

const number = (value) => typeof value === "number" && Number.isFinite(value);
// A loss begins so high that nothing else could be seen: what comes before this share of the way may be cut off.
const SETTLED = 0.05;

const rangeOf = (series, { log, min, max, settle }) => {
  const values = series.flatMap(({ points }) => {
    const last = points.length ? points.at(-1)[0] : 0;
    return points.filter(([x, y]) => number(y) && (!log || y > 0) && (!settle || x >= SETTLED * last)).map(([, y]) => y);
  });
  let low = log ? 0.1 : 0, high = 1;
  for (const [at, value] of values.entries()) [low, high] = at ? [Math.min(low, value), Math.max(high, value)] : [value, value];
  if (log) return [min ?? low / 1.5, max ?? Math.max(high * 1.5, low * 3)];
  const room = 0.06 * (high - low) || 0.06 * Math.abs(high) || 1;
  if (low >= 0 && low < 0.5 * high) low = room; // from 0 where that costs little
  return [min ?? low - room, max ?? high + room];
};

// options: {label, x: {label, log, max}, y: {label, log, min, max, settle}, height, empty,
//   series: [{name, points: [[x, y]], index, thin, dots, line: false}]}; the element has update(options).
export const plot = (context, options) => {
  let now = options;
  let at = null;
  let size = [320, options.height ?? 240];
  const margin = { left: 52, right: 14, top: 12, bottom: 40 };
  const legend = make("ul", { class: "train-legend" });
  const place = { x: () => 0, y: () => 0 };
  const xs = () => [...new Set(now.series.flatMap(({ points }) => points.map(([x]) => x)))].sort((one, other) => one - other);

  const stroke = (pen, ...corners) => {
    pen.beginPath();
    corners.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  };
  const drawSeries = (pen, one) => {
    const points = one.points.filter(([, y]) => number(y) && (!now.y?.log || y > 0));
    pen.strokeStyle = pen.fillStyle = colourOf(one.index);
    pen.globalAlpha = one.thin ? 0.5 : 1;
    pen.lineWidth = one.thin ? 1.2 : 2;
    pen.lineJoin = "round";
    pen.setLineDash(dashOf(one.index));
    if (one.line !== false) stroke(pen, ...points.map(([x, y]) => [place.x(x), place.y(y)]));
    pen.setLineDash([]);
    if ((one.dots && points.length <= 60) || points.length === 1) {
      for (const [x, y] of points) {
        pen.beginPath();
        pen.arc(place.x(x), place.y(y), one.thin ? 2 : 3.2, 0, 2 * Math.PI);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  };
  const draw = (pen, width, height) => {
    const [ink, quiet, line] = ["--ink", "--quiet", "--line"].map(context.css);
    const steps = xs();
    const right = width - margin.right, bottom = height - margin.bottom;
    const { log: xLog } = now.x ?? {};
    const low = xLog ? steps[0] ?? 1 : Math.min(0, steps[0] ?? 0);
    const high = now.x?.max ?? Math.max(steps.at(-1) ?? 1, xLog ? low * 2 : low + 1e-9);
    const [lowest, highest] = rangeOf(now.series, now.y ?? {});
    const scaled = (value, from, to, log) => (log ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from || 1));
    place.x = (x) => margin.left + (right - margin.left) * scaled(x, low, high, xLog);
    place.y = (y) => bottom - (bottom - margin.top) * scaled(y, lowest, highest, now.y?.log);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.strokeStyle = line;
    pen.fillStyle = quiet;
    for (const tick of ticksOf(lowest, highest, Math.max(2, Math.floor(height / 40)), now.y?.log)) {
      const y = Math.round(place.y(tick)) + 0.5;
      stroke(pen, [margin.left, y], [right, y]);
      const exponent = Math.log10(tick);
      const plain = !now.y?.log || Math.abs(exponent - Math.round(exponent)) > 1e-6 || Math.abs(exponent) <= 3;
      pen.fillText(plain ? short(tick) : power(Math.round(exponent)), margin.left - 8, y);
    }
    pen.textBaseline = "top";
    const xTicks = xLog ? steps.filter((_, index) => index % Math.ceil(steps.length / (width / 56)) === 0)
      : ticksOf(low, high, Math.max(2, Math.floor(width / 96)), false);
    for (const tick of xTicks) {
      pen.textAlign = place.x(tick) > right - 16 ? "right" : "center";
      pen.fillText(short(tick), Math.min(place.x(tick), right), bottom + 6);
    }
    pen.textAlign = "right";
    if (now.x?.label) pen.fillText(now.x.label, right, bottom + 22);
    pen.save();
    pen.beginPath();
    pen.rect(margin.left - 4, margin.top - 4, right - margin.left + 8, bottom - margin.top + 8);
    pen.clip();
    for (const one of now.series) drawSeries(pen, one);
    if (at !== null && steps.length) {
      pen.strokeStyle = ink;
      pen.globalAlpha = 0.5;
      stroke(pen, [place.x(at), margin.top], [place.x(at), bottom]);
    }
    pen.restore();
    if (!steps.length && now.empty) {
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(now.empty, (margin.left + right) / 2, (margin.top + bottom) / 2);
    }
  };

  const canvas = context.canvas(...size, draw, options.label);
  canvas.tabIndex = 0;
  const valueAt = (points, x) => points.filter(([, y]) => number(y))
    .reduce((best, point) => (best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best), null);
  const tell = () => {
    const all = xs();
    const x = at ?? all.at(-1);
    const rows = now.series.filter(({ points }) => points.length).map((one) => {
      const found = valueAt(one.points, x);
      const swatch = make("span", { class: `train-key${one.thin ? " train-thin" : ""}`, "aria-hidden": "true" });
      swatch.style.borderColor = colourOf(one.index);
      if (dashOf(one.index).length) swatch.style.borderTopStyle = "dashed";
      return make("li", {}, swatch, make("bdi", { text: one.name }), " ", make("b", { class: "number", text: found ? shown(found[1]) : "–" }));
    });
    const where = all.length ? [make("li", { class: "quiet number", text: `${now.x?.label ?? "x"}: ${short(x)}` })] : [];
    legend.replaceChildren(...where, ...rows);
  };
  const point = (x) => {
    at = x;
    canvas.redraw();
    tell();
  };
  canvas.addEventListener("pointermove", (event) => {
    const all = xs();
    if (all.length) point(all.reduce((best, x) => (Math.abs(place.x(x) - event.offsetX) < Math.abs(place.x(best) - event.offsetX) ? x : best)));
  });
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("keydown", (event) => {
    const all = xs();
    legend.setAttribute("aria-live", "polite"); // only for who moves by keys: what grows would never be silent
    const index = at === null ? all.length - 1 : all.indexOf(at);
    const next = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape") point(null);
    else if (next !== undefined && all.length) {
      event.preventDefault();
      point(all[Math.max(0, Math.min(all.length - 1, next))]);
    }
  });
  const title = make("figcaption", { text: now.y?.label ?? now.label });
  const box = make("figure", { class: "train-plot" }, title, canvas, legend);
  const watch = new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== size[0]) {
      size = [width, size[1]];
      canvas.resize(...size);
    }
  });
  watch.observe(box);
  context.signal.addEventListener("abort", () => watch.disconnect());
  document.addEventListener("themechange", tell, { signal: context.signal });
  box.update = (more) => {
    now = { ...now, ...more };
    title.textContent = now.y?.label ?? now.label;
    canvas.setAttribute("aria-label", now.label);
    if (at !== null && !xs().includes(at)) at = null;
    canvas.redraw();
    tell();
  };
  tell();
  return box;
};
