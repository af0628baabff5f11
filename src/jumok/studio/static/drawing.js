// What all drawings share: the page's colours, a canvas as sharp as the screen, one drawing a frame, text that fits.
import { legend, paint, pixelRatio } from "./colour.js";
import { make, shown } from "./text.js";

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
// [rows, columns]
export const STEPS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

// The pen of an empty canvas of this size, in pixels of the page.
export const penOf = (canvas, ...size) => {
  const ratio = pixelRatio();
  const [wide, high] = size.map((side) => Math.max(1, Math.round(side * ratio)));
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  [canvas.style.width, canvas.style.height] = size.map((side) => `${side}px`);
  const pen = canvas.getContext("2d");
  pen.reset(); // nothing of what was drawn before, and no dash or colour of it
  pen.scale(ratio, ratio);
  return pen;
};

// A function that draws with the next frame, however often it is called. It is called, too, when the theme changes (after
// `anew`) and when the element has another size, until `signal`.
export const drawnLater = (element, draw, signal, anew = () => {}) => {
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
  document.addEventListener("themechange", () => { anew(); later(); }, { signal });
  const watcher = new ResizeObserver(later);
  watcher.observe(element);
  signal.addEventListener("abort", () => watcher.disconnect());
  return later;
};

// A canvas with one pixel for each number.
export const sheetOf = (data, rows, columns, look) => {
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [Math.max(1, columns), Math.max(1, rows)];
  const pen = sheet.getContext("2d");
  const image = pen.createImageData(sheet.width, sheet.height);
  paint(new Uint32Array(image.data.buffer), data, look);
  pen.putImageData(image, 0, 0);
  return sheet;
};

// The colours of a map, with the numbers at both ends.
export const scaleBar = () => {
  const [low, high, bar] = [make("span"), make("span"), make("canvas", { "aria-hidden": "true" })];
  const box = make("div", { class: "legend" }, low, bar, high);
  box.update = ({ signed, scale, bright }) => {
    [low.textContent, high.textContent] = [signed ? `−${shown(scale)}` : "0", shown(scale)];
    legend(bar, { signed, bright });
  };
  return box;
};

// As much of a text as there is room for.
export const cut = (pen, text, room) => {
  if (pen.measureText(text).width <= room) return text;
  let short = [...text];
  while (short.length && pen.measureText(`${short.join("")}…`).width > room) short = short.slice(0, -1);
  return `${short.join("")}…`;
};
