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
  // nothing of what was drawn before, and no dash or colour of it
  pen.reset();
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

// Numbers of a picture that are pointed at, or gone to with the arrow keys: tell([row, column], byKey), tell(null) when they
// are left. cellAt(x, y): the cell under a place of the picture, from 0 to 1.
export const reached = (element, rows, columns, cellAt, tell) => {
  let at = null;
  const go = (cell, byKey) => {
    at = cell;
    tell(at, byKey);
  };
  element.addEventListener("pointermove", (event) => {
    const area = element.getBoundingClientRect();
    go(cellAt((event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height));
  });
  for (const name of ["pointerleave", "blur"]) element.addEventListener(name, () => go(null));
  element.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    // who has one row leaves up and down to others
    if (!step || (rows === 1 && step[0])) return;
    go(at ? [clamp(at[0] + step[0], 0, rows - 1), clamp(at[1] + step[1], 0, columns - 1)] : [0, 0], true);
    event.preventDefault();
    event.stopPropagation();
  });
};

// A canvas with one pixel for each number.
export const sheetOf = (data, rows, columns, look) => {
  const sheet = make("canvas");
  [sheet.width, sheet.height] = [Math.max(1, columns), Math.max(1, rows)];
  const pen = sheet.getContext("2d");
  const image = pen.createImageData(sheet.width, sheet.height);
  paint(new Uint32Array(image.data.buffer), data, look);
  pen.putImageData(image, 0, 0);
  return sheet;
};

// The colours of a map, with the numbers at both ends.
export const scaleBar = () => {
  const [low, high, bar] = [make("span"), make("span"), make("canvas", { "aria-hidden": true })];
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
