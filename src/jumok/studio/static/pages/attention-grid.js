// All layers and heads as small maps. They come as bytes, √ of the weights, become pixels through one table, and lie on
// one canvas behind the buttons: a canvas for each of 144 would take longer than all the rest.
import { STEPS } from "../drawing.js";

// pixels around each map
const GAP = 1;

const shadesOf = (context, bright) => {
  const weights = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);
  const shades = new Uint32Array(256);
  context.paint(shades, weights, { bright });
  return shades;
};

// choose(layer, head) when one is chosen. The element has fill(group, answer, bright), mark(layer, head, gone: Set of names).
export const gridOf = (context, choose) => {
  const { make, t } = context;
  const box = make("div", { class: "attention-grid", role: "group", "aria-label": t("gridKeys") });
  let cells = [];

  const walk = (event, row, column) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const next = cells.find((one) => one.row === row + step[0] && one.column === column + step[1]);
    if (!next) return;
    next.button.focus();
    choose(next.layer, next.column);
  };

  const atlas = ({ shape: [layers, heads, rows, columns], bytes }, shades) => {
    const packed = atob(bytes);
    // a gap is narrower than a pixel of a small map
    const zoom = Math.max(1, Math.floor(32 / Math.max(rows, columns)));
    const [wide, high] = [columns * zoom + 2 * GAP, rows * zoom + 2 * GAP];
    const canvas = make("canvas", { "aria-hidden": true });
    [canvas.width, canvas.height] = [heads * wide, layers * high];
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let map = 0; map < layers * heads; map += 1) {
      const corner = (Math.floor(map / heads) * high + GAP) * canvas.width + (map % heads) * wide + GAP;
      for (let row = 0; row < rows; row += 1) {
        const [from, to] = [(map * rows + row) * columns, corner + row * zoom * canvas.width];
        if (zoom === 1) for (let column = 0; column < columns; column += 1) pixels[to + column] = shades[packed.charCodeAt(from + column)];
        else for (let column = 0; column < columns; column += 1) pixels.fill(shades[packed.charCodeAt(from + column)], to + column * zoom, to + (column + 1) * zoom);
        for (let more = 1; more < zoom; more += 1) pixels.copyWithin(to + more * canvas.width, to, to + columns * zoom);
      }
    }
    pen.putImageData(image, 0, 0);
    return canvas;
  };

  box.fill = (group, answer, bright) => {
    const [layers, heads, rows, columns] = answer.shape;
    const picture = atlas(answer, shadesOf(context, bright));
    Object.assign(picture.style, { gridColumn: `2 / span ${heads}`, gridRow: `2 / span ${layers}` });
    const parts = [make("span", { class: "attention-corner", "aria-hidden": true, text: `${t("layer")} ↓ ${t("headNumber")} →` })];
    for (let head = 0; head < heads; head += 1) parts.push(make("span", { class: "attention-number", "aria-hidden": true, text: head }));
    parts.push(picture);
    cells = [];
    const shape = String(Math.min(Math.max(columns / rows, 0.6), 1.6));
    for (let row = 0; row < layers; row += 1) {
      const layer = group.layers[row];
      parts.push(make("span", { class: "attention-number", "aria-hidden": true, text: layer, style: { gridColumn: "1", gridRow: String(row + 2) } }));
      for (let column = 0; column < heads; column += 1) {
        const button = make("button", {
          tabindex: -1, onclick: () => choose(layer, column), onkeydown: (event) => walk(event, row, column),
          style: { gridColumn: String(column + 2), gridRow: String(row + 2), aspectRatio: shape },
        });
        cells.push({ button, row, column, layer, tap: group.taps[row], gone: null });
        parts.push(button);
      }
    }
    box.style.gridTemplateColumns = `auto repeat(${heads}, minmax(22px, 76px))`;
    box.replaceChildren(...parts);
  };

  // wide: a whole row is meant, or all of them
  box.mark = (layer, head, gone, wide) => {
    for (const cell of cells) {
      const on = wide === "all" || (cell.layer === layer && (wide || cell.column === head));
      const lost = gone.has(`${cell.tap}:${cell.column}`);
      if (cell.on !== on) cell.button.setAttribute("aria-pressed", on);
      if (cell.gone !== lost) {
        const label = t("cell", { layer: cell.layer, head: cell.column }) + (lost ? `, ${t("gone")}` : "");
        cell.button.setAttribute("aria-label", label);
        cell.button.title = label;
        cell.button.classList.toggle("attention-gone", lost);
      }
      cell.button.tabIndex = cell.layer === layer && cell.column === head ? 0 : -1;
      [cell.on, cell.gone] = [on, lost];
    }
  };
  return box;
};
