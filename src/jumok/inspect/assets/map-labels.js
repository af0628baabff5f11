"use strict";
// Words, or where there is no room for them numbers, along the two sides of a map.
const mapLabels = (() => {
  const LABELLED = 12; // cells of this size have room for words beside them
  const draw = (pen, { font, cell, left, top, x0, y0, ink, quiet, accent, row, column, view, rows, columns, keys, queries }) => {
    const size = Math.min(13, Math.max(10, cell * 0.8));
    const cut = (name, room) => {
      let text = name.trim() ? name : "␣";
      if (pen.measureText(text).width <= room) return text;
      while (text && pen.measureText(`${text}…`).width > room) text = [...text].slice(0, -1).join("");
      return `${text}…`;
    };
    const every = cell >= LABELLED ? 1 : [5, 10, 20, 25, 50, 100, 200, 500, 1000].find((step) => step * cell >= 40) ?? 2000;
    pen.textBaseline = "middle";
    for (const [horizontal, count, names, chosen] of [[false, rows, queries.names, row], [true, columns, keys.names, column]]) {
      const [from, until] = horizontal ? [left, view[0]] : [top, view[1]];
      const start = horizontal ? x0 : y0;
      for (let index = Math.max(0, Math.floor((from - start) / cell)); index < count; index += 1) {
        const middle = start + (index + 0.5) * cell;
        if (middle > until) break;
        if (middle < from - 1 || (index % every && index !== chosen)) continue;
        if (every > 1 && index !== chosen && chosen !== null && Math.abs(index - chosen) * cell < 28) continue;
        pen.fillStyle = index === chosen ? accent : cell >= LABELLED ? ink : quiet;
        pen.font = `${index === chosen ? "600 " : ""}${size}px ${font}`;
        const text = cell >= LABELLED ? cut(names[index], (horizontal ? top : left) - 12) : String(index);
        pen.save();
        if (horizontal && cell >= LABELLED) {
          pen.translate(middle, top - 6);
          pen.rotate(-Math.PI / 2);
          pen.textAlign = "left";
          pen.fillText(text, 0, 0);
        } else if (horizontal) {
          pen.textAlign = "center";
          pen.fillText(text, Math.max(middle, left + 8), top - 9);
        } else {
          pen.textAlign = "right";
          pen.fillText(text, left - 7, middle);
        }
        pen.restore();
      }
    }
  };
  return { LABELLED, draw };
})();
