// The attention of both, and their signed difference, on one scale: pointing at a cell of one points at it in all three.
import { badge } from "./compare-said.js";

const SMALL = 0.001;
// in a sentence: without the mark of a word's beginning
const plain = (token) => token.replace(/^▁(?=.)/u, "");

// told: what /api/compare/look told; ask: the question without the view. The element has its own controls.
export const maps = (context, { told, ask, names }) => {
  const { t, make, shown, controls } = context;
  const kindOf = () => told.kinds.find((one) => one.kind === context.state.kind) ?? told.kinds[0];
  const within = (value, sizes) => (Number.isInteger(value) && value >= 0 && value < Math.min(...sizes) ? value : null);
  const view = () => {
    const kind = kindOf();
    const by = kind.tokens && context.state.by !== "words" ? "tokens" : "words";
    return { kind: kind.kind, layer: within(context.state.layer, kind.layers), head: within(context.state.head, kind.heads), by };
  };
  const bar = make("div", { class: "bar compare-bar" });
  const sentence = make("p", { class: "compare-sentence", "aria-live": "polite" });
  const scale = make("p", { class: "quiet compare-scale" });
  const left = make("p", { class: "quiet" });
  const grid = make("div", { class: "compare-three" });
  const box = make("section", { class: "card compare-maps" }, make("h2", { text: t("attention") }), bar, sentence, grid, scale, left);
  let count = 0;
  let drawn = null;

  const choose = (change) => {
    context.set({ ...change, pin: null });
    return update();
  };
  const numbers = (sizes) => [[null, t("mean")], ...controls.numbered(Math.min(...sizes))];
  // the controls; those that a choice has made senseless are left out
  const draw = () => {
    const [kind, now] = [kindOf(), view()];
    const focused = bar.contains(document.activeElement) ? document.activeElement.closest("[data-part]")?.dataset.part : null;
    const part = (name, element) => { element.dataset.part = name; return element; };
    const named = (one) => (told.task === "translation" ? t(one) : t("selfText"));
    bar.replaceChildren(...[
      told.kinds.length > 1 ? part("kind", controls.segmented(t("kind"), told.kinds.map((one) => [one.kind, named(one.kind)]), now.kind, (value) => choose({ kind: value, layer: null, head: null }))) : null,
      Math.min(...kind.layers) > 1 ? part("layer", controls.select(t("layer"), numbers(kind.layers), now.layer, (layer) => choose({ layer }))) : null,
      Math.min(...kind.heads) > 1 ? part("head", controls.select(t("head"), numbers(kind.heads), now.head, (head) => choose({ head }))) : null,
      kind.tokens ? part("by", controls.segmented(t("by"), [["tokens", t("tokens")], ["words", t("words")]], now.by, (by) => choose({ by }))) : null,
      part("own", controls.toggle(t("stretch"), context.state.own === true, (own) => { context.set({ own: own || null }); if (drawn) scales(); })),
    ].filter(Boolean));
    if (focused) bar.querySelector(`[data-part="${focused}"] :is(select, input:checked, input[role="switch"])`)?.focus();
    const out = kind[now.by].left_out;
    left.textContent = [kind.tokens ? "" : t("onlyWords"), out.length ? t("left", { names: out.map(context.visible).join(", ") }) : ""].filter(Boolean).join(" ");
  };

  const pinOf = () => {
    const found = /^(\d+)-(\d+)$/.exec(String(context.state.pin ?? ""));
    return found ? [[Number(found[1]), Number(found[2])]] : [];
  };
  const pin = (pins) => {
    context.set({ pin: pins.length ? pins[0].join("-") : null });
    drawn.all.forEach((one) => one.update({ pins: pins.slice(0, 1) }));
  };
  const scales = () => {
    const { about, all } = drawn;
    const own = context.state.own === true && Math.abs(about.largest?.difference ?? 0) > 0;
    const most = own ? Math.abs(about.largest.difference) : about.scale;
    all[2].update({ scale: most });
    scale.textContent = `${own ? t("scaleOwn", { s: shown(about.scale), d: shown(most) }) : t("scale", { s: shown(about.scale) })} ${t("colours")}`;
  };

  const update = async () => {
    count += 1;
    const mine = count;
    const now = view();
    draw();
    const asked = { ...ask, kind: now.kind, by: now.by, ...(now.layer === null ? {} : { layer: now.layer }), ...(now.head === null ? {} : { head: now.head }) };
    const { data, shape, about } = await context.floats("/api/compare/maps", asked);
    if (mine !== count || context.signal.aborted) return;
    const { rows, columns } = kindOf()[now.by];
    const size = shape[1] * shape[2];
    const parts = [0, 1, 2].map((place) => data.subarray(place * size, (place + 1) * size));
    const say = (row, column) => [context.bidi(rows[row]), " → ", context.bidi(columns[column]), " ", ["cellA", "cellB", "cellD"].map((word, place) => [
      make("b", { class: "number", text: t(word, { x: shown(parts[place][row * columns.length + column]) }) }), place < 2 ? " · " : ""])];
    const options = (label, place, more) => ({
      label, rows, columns, data: parts[place], pins: pinOf(), height: 460, scale: about.scale, ...more,
      onPin: pin, onHover: (at) => drawn?.all.forEach((one) => one.point(at)),
    });
    drawn = null;
    const all = [
      context.matrix(options(t("mapA", { name: names[0] }), 0, { say: (row, column, value) => [make("b", { class: "number", text: t("cellA", { x: shown(value) }) })] })),
      context.matrix(options(t("mapB", { name: names[1] }), 1, { say: (row, column, value) => [make("b", { class: "number", text: t("cellB", { x: shown(value) }) })] })),
      context.matrix(options(t("differenceLabel"), 2, { signed: true, say })),
    ];
    all.forEach((one, place) => { one.numbers = parts[place]; });
    grid.replaceChildren(...["A", "B", ""].map((side, place) => make("div", { class: "compare-map" },
      make("h3", {}, side ? [badge(make, side), context.bidi(names[place])] : t("mapD")), all[place])));
    drawn = { about, all };
    scales();
    tell(about.largest, rows, columns);
  };
  const tell = (largest, rows, columns) => {
    const gap = Math.abs(largest?.difference ?? 0);
    if (gap < SMALL) {
      sentence.replaceChildren(t("tiny", { d: shown(Math.max(gap, 1e-7)) }));
      return;
    }
    const text = t("largest", {
      row: context.visible(plain(rows[largest.row])), column: context.visible(plain(columns[largest.column])), a: shown(largest.a), b: shown(largest.b), d: shown(gap),
    });
    sentence.replaceChildren(text, " ", make("button", { class: "small", text: t("show"), onclick: () => pin([[largest.row, largest.column]]) }));
  };
  box.ready = update();
  return box;
};
