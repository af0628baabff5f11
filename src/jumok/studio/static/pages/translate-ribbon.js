// The ribbon: source words above, the translation below, and bands whose width is the attention between them.
// Where a line has no room for the words they stand below each other, and the bands go from right to left.
import { drawnLater } from "../drawing.js";

const SVG = "http://www.w3.org/2000/svg";
// pixels that a weight of 1 is wide
const UNIT = 30;
// weights below are not drawn; the map has them
const LEAST = 0.01;
export const drawn = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

export const strongest = (weights, start, count, stride = 1) => {
  let best = -1;
  for (let index = 0; index < count; index += 1) {
    const value = weights[start + index * stride];
    if (!Number.isNaN(value) && (best < 0 || value > weights[start + best * stride])) best = index;
  }
  return best;
};

// choose({target} or {source}) when one is clicked or stepped to; point({target} or {source} or null) for a glance.
export const ribbon = (context, { choose, point }) => {
  const { make, t } = context;
  const view = { source: [], target: [], weights: null, on: {}, bands: [] };
  const lines = Object.fromEntries(["source", "target"].map((side) => [side, make("div", {
    class: `translate-line translate-${side}`, role: "group", "aria-label": t(`${side}Words`),
  })]));
  const picture = drawn("svg", { class: "translate-bands", "aria-hidden": true });
  const box = make("div", { class: "translate-ribbon" },
    make("span", { class: "translate-caption quiet", "aria-hidden": true, text: t("source") }), lines.source, picture,
    make("span", { class: "translate-caption quiet", "aria-hidden": true, text: t("target") }), lines.target);

  const word = (side, name, index) => {
    const mark = view.ended[side] && index === view[side].length - 1;
    const label = mark ? `‹${t("end")}›` : context.visible(name);
    return make("button", {
      class: `translate-word${mark ? " mark" : ""}`, tabindex: -1, title: mark ? t("endLong") : null,
      dataset: { index, label },
      onclick: () => choose({ [side]: index }),
      onpointerenter: (event) => { if (event.pointerType !== "touch") point({ [side]: index }); },
      onpointerleave: () => point(null),
      onfocus: () => { if (side === "source") point({ source: index }); },
      onblur: () => point(null),
    }, make("span", { class: "translate-weight number", "aria-hidden": true }), make("bdi", { text: label }));
  };

  box.update = ({ source, target, ended, weights }) => {
    Object.assign(view, { source, target, weights, ended, on: {} });
    box.classList.toggle("plain", !weights);
    for (const side of ["source", "target"]) lines[side].replaceChildren(...view[side].map((name, index) => word(side, name, index)));
    arrange();
  };

  // ------------------------------------------------------------ bands

  const arrange = () => {
    if (!box.isConnected || !view.target.length) return;
    box.classList.remove("tall");
    const narrow = Object.values(lines).some((line) => line.scrollWidth > line.clientWidth + 1);
    box.classList.toggle("tall", narrow);
    const area = picture.getBoundingClientRect();
    picture.setAttribute("viewBox", `0 0 ${area.width} ${area.height}`);
    const places = (side) => [...lines[side].children].map((one) => {
      const rectangle = one.getBoundingClientRect();
      return narrow ? [rectangle.top - area.top, rectangle.height] : [rectangle.left - area.left, rectangle.width];
    });
    draw({ source: places("source"), target: places("target") }, narrow, narrow ? area.width : area.height);
    emphasise();
  };

  const draw = (places, across, depth) => {
    view.bands = [];
    picture.replaceChildren();
    if (!view.weights) return;
    const [rows, columns] = [view.target.length, view.source.length];
    const weight = (row, column) => Math.max(0, view.weights[row * columns + column] || 0);
    // where each band begins, side by side in the middle of its word
    const starts = (place, room, parts) => {
      const sum = parts.reduce((all, part) => all + part, 0);
      const unit = Math.min(UNIT, (room - 8) / Math.max(sum, 1e-9));
      let at = place + room / 2 - (sum * unit) / 2;
      return parts.map((part) => [at, (at += part * unit)]);
    };
    const all = (count) => Array.from({ length: count }, (_, index) => index);
    const above = places.source.map(([at, room], column) => starts(at, room, all(rows).map((row) => weight(row, column))));
    const below = places.target.map(([at, room], row) => starts(at, room, all(columns).map((column) => weight(row, column))));
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const value = weight(row, column);
        if (value < LEAST) continue;
        const [[a, b], [c, d]] = [above[column][row], below[row][column]];
        const at = (x, y) => (across ? `${y.toFixed(1)} ${x.toFixed(1)}` : `${x.toFixed(1)} ${y.toFixed(1)}`);
        const middle = depth / 2;
        const path = drawn("path", {
          d: `M${at(a, 0)}C${at(a, middle)} ${at(c, middle)} ${at(c, depth)}L${at(d, depth)}C${at(d, middle)} ${at(b, middle)} ${at(b, 0)}Z`,
          "data-row": row, "data-column": column,
        });
        path.style.setProperty("--weight", (0.25 + 0.75 * Math.min(1, value)).toFixed(3));
        view.bands.push({ row, column, path });
        picture.append(path);
      }
    }
  };

  // ------------------------------------------------------------ what is bold

  const emphasise = () => {
    const { on, weights } = view;
    const columns = view.source.length;
    for (const { row, column, path } of view.bands) path.classList.toggle("on", row === on.target || column === on.source);
    for (const side of ["source", "target"]) {
      const other = side === "source" ? "target" : "source";
      const values = on[other] === undefined || !weights ? null
        : view[side].map((_, index) => (side === "source" ? weights[on.target * columns + index] : weights[index * columns + on.source]));
      const best = values ? strongest(values, 0, values.length) : -1;
      [...lines[side].children].forEach((one, index) => {
        one.classList.toggle("on", index === on[side]);
        one.classList.toggle("best", index === best);
        one.classList.toggle("lit", Boolean(values) && values[index] >= 0.1);
        one.firstChild.textContent = values && values[index] >= LEAST ? values[index].toFixed(2) : "";
        one.tabIndex = index === (view.focus?.[side] ?? 0) ? 0 : -1;
        if (side === "target") one.setAttribute("aria-pressed", index === on.target);
      });
    }
  };
  box.show = (on, focus) => {
    view.on = on;
    view.focus = focus;
    emphasise();
  };
  box.focusWord = (side, index) => lines[side].children[index]?.focus();
  box.hasFocus = (side) => lines[side].contains(document.activeElement);
  lines.source.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const index = Number(document.activeElement.dataset.index) + step;
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    box.focusWord("source", Math.min(Math.max(index, 0), view.source.length - 1));
  });

  drawnLater(box, arrange, context.signal);
  return box;
};
