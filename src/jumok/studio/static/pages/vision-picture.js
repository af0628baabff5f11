// A picture with a map over it: grey below, so that the colours are the map's.
import { channels } from "../colour.js";
import { clamp, css, penOf } from "../drawing.js";

const FAINT = 0.22;
const STRONG = 0.86;

// The picture once in its colours and once in grey, painted from the same element.
export const layersOf = (image, [height, width]) => {
  const make = (filter) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0, width, height);
    if (filter) {
      const pixels = pen.getImageData(0, 0, width, height);
      for (let at = 0; at < pixels.data.length; at += 4) {
        const grey = 0.299 * pixels.data[at] + 0.587 * pixels.data[at + 1] + 0.114 * pixels.data[at + 2];
        pixels.data[at] = pixels.data[at + 1] = pixels.data[at + 2] = grey;
      }
      pen.putImageData(pixels, 0, 0);
    }
    return canvas;
  };
  return { plain: make(false), grey: make(true) };
};

// draw(canvas, size in CSS pixels, {layers, grid, values or null, bright, place (patch that looks, or −1), at}).
export const drawMap = (canvas, width, { layers, grid, values, bright, place = -1, at = -1 }) => {
  const height = Math.round((width * layers.plain.height) / layers.plain.width);
  const pen = penOf(canvas, width, height);
  pen.imageSmoothingEnabled = layers.plain.width > width;
  pen.drawImage(values ? layers.grey : layers.plain, 0, 0, width, height);
  const [rows, columns] = grid;
  if (values) {
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [columns, rows];
    const ink = sheet.getContext("2d");
    const pixels = ink.createImageData(columns, rows);
    const most = largest(values, rows * columns)[0] || 1;
    for (let patch = 0; patch < rows * columns; patch += 1) {
      const share = Math.max(0, values[patch] / most);
      const seen = bright ? Math.sqrt(share) : share;
      pixels.data.set([...channels(seen), Math.round(255 * (FAINT + (STRONG - FAINT) * seen))], 4 * patch);
    }
    ink.putImageData(pixels, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(sheet, 0, 0, width, height);
  }
  const [wide, high] = [width / columns, height / rows];
  const frame = (patch, colour, thick) => {
    const [x, y] = [(patch % columns) * wide, Math.floor(patch / columns) * high];
    Object.assign(pen, { lineWidth: thick, strokeStyle: colour });
    pen.strokeRect(x + thick / 2, y + thick / 2, wide - thick, high - thick);
  };
  const thick = Math.max(2, Math.min(5, width / 90));
  for (const [patch, colour] of [[at, "#ffffff"], [place, css("--accent")]]) {
    if (patch < 0) continue;
    frame(patch, patch === at && patch !== place ? "#14171c" : "#ffffff", thick + 2);
    frame(patch, colour, thick);
  }
};

// The largest of the first `count` numbers, and where it is.
export const largest = (values, count) => {
  let [most, where] = [-Infinity, 0];
  for (let at = 0; at < count; at += 1) if (values[at] > most) [most, where] = [values[at], at];
  return [most, where];
};

export const patchAt = (event, canvas, [rows, columns]) => {
  const area = canvas.getBoundingClientRect();
  const place = (share, count) => clamp(Math.floor(share * count), 0, count - 1);
  return place((event.clientY - area.top) / area.height, rows) * columns + place((event.clientX - area.left) / area.width, columns);
};
