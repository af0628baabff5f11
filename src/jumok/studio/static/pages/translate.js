// Translate: what each word of a translation looked at, and the search that found it. All that is shown is in the address.
import { Wrong } from "../asking.js";
import { ribbon, strongest } from "./translate-ribbon.js";
import { beamTree, bestList, spelled } from "./translate-tree.js";
import words from "../words/translate.json" with { type: "json" };

// A sentence of which some parts are elements: filled("most", {target: <bdi>}) as a list of nodes.
const filled = (t, key, values) => t(key).split(/(\{\w+\})/).filter(Boolean)
  .map((part) => values[part.slice(1, -1)] ?? part);

const whole = (x, low, high, otherwise) => (Number.isInteger(x) && x >= low && x <= high ? x : otherwise);
const numbers = (text, sign) => String(text ?? "").split(sign).filter((one) => /^\d+$/.test(one)).map(Number);
// have arrow keys of their own
const SKIPPED = "input, textarea, select, .matrix, .translate-tree, .menu, dialog";
// milliseconds in which a slider may move on
const PATIENCE = 120;

// What the address asks for, as far as it can be: a link may hold anything.
const read = (state, begin, run) => {
  const beam = whole(state.beam, 1, begin.widest, begin.beam);
  const penalty = typeof state.penalty === "number" && state.penalty >= 0 && state.penalty <= 2 ? state.penalty : Math.min(2, begin.length_penalty);
  return {
    text: state.text === undefined ? begin.text : String(state.text), beam, penalty,
    nbest: whole(state.nbest, 1, beam, Math.min(beam, 4)), prefix: state.of === run.name ? numbers(state.prefix, ".") : [],
    tag: begin.tags.length > 1 ? (begin.tags.includes(state.tag) ? state.tag : begin.tags[0]) : null,
    unit: state.unit === "tokens" ? "tokens" : "words", step: whole(state.step, 0, 1e6, 0), source: whole(state.source, 0, 1e6, null),
    rank: whole(state.rank, 0, 1e6, 0), layer: whole(state.layer, 0, begin.layers - 1, begin.layer),
    head: whole(state.head, 0, begin.heads - 1, null), pruned: state.pruned !== false,
    pins: String(state.pins ?? "").split("_").map((one) => numbers(one, ".")).filter((one) => one.length === 2).slice(0, 2),
  };
};

const show = async (place, context) => {
  const { make, t, controls, run, bidi } = context;
  const begin = await context.json(`/api/translate/start?run=${encodeURIComponent(run.name)}`);
  const asked = read(context.state, begin, run);
  const view = { found: null, weights: null, map: null, glance: null };
  const page = make("div", { class: "translate-page", "aria-busy": "true" });

  // ------------------------------------------------------------ the sentence

  const input = make("input", { type: "text", id: "translate-text", spellcheck: "false", autocomplete: "off", maxlength: "20000" });
  input.value = asked.text;
  const form = make("form", { class: "translate-form" },
    make("label", { for: "translate-text", text: t("sentence") }), input,
    make("button", { type: "submit", class: "main", text: t("go") }),
    begin.tags.length > 1 ? controls.select(t("tag"), begin.tags, asked.tag, (tag) => change({ tag, prefix: [], rank: 0 })) : null);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    change({ text: input.value, prefix: [], rank: 0, step: 0, source: null, pins: [] });
  });
  const note = make("p", { class: "translate-note quiet", hidden: true });
  const spoken = make("p", { class: "hidden", "aria-live": "polite" });

  // ------------------------------------------------------------ what looked at what

  const band = ribbon(context, {
    choose: ({ target, source }) => (target === undefined ? keep({ source }) : keep({ step: target, source: null })),
    // who walks through the map by keys stays there when the page scrolls a word away from under the pointer
    point: (at) => { view.glance = at; emphasise(at !== null || !view.map?.contains(document.activeElement)); },
  });
  const sentence = make("p", { class: "translate-sentence", "aria-live": "polite" });
  const count = make("span", { class: "quiet number" });
  const arrow = (sign, key, step) => make("button", { class: "translate-arrow", "aria-label": t(key), title: t(key), text: sign, onclick: () => move(step) });
  const steps = make("div", { class: "translate-steps" }, arrow("←", "previous", -1), arrow("→", "following", 1), count);
  const mapPlace = make("div", { class: "translate-map" });
  const heads = begin.heads ? [
    controls.select(t("layer"), controls.numbered(begin.layers), asked.layer, (layer) => look({ layer })),
    controls.select(t("head"), [[null, t("mean")], ...controls.numbered(begin.heads)], asked.head, (head) => look({ head })),
  ] : [];
  const looked = make("section", { class: "card translate-looked" },
    make("div", { class: "translate-head" }, make("h2", { text: t("looked") }),
      make("div", { class: "translate-choices" }, heads, controls.segmented(t("unit"), [["words", t("words")], ["tokens", t("tokens")]], asked.unit, changeUnit))),
    make("div", { class: "translate-both" },
      make("div", { class: "translate-main" }, make("p", { class: "translate-explain quiet", text: t(begin.layers ? "explain" : "none") }),
        band, make("div", { class: "translate-says" }, sentence, steps)),
      begin.layers ? mapPlace : null));

  // ------------------------------------------------------------ how it was found

  const tree = beamTree(context, (prefix) => change({ prefix, rank: 0, step: 0, source: null }));
  const forced = make("div", { class: "translate-forced", hidden: true });
  const listPlace = make("div", { class: "translate-best" });
  const slider = (label, options, key, more = {}) => controls.slider(t(label), { ...options, value: asked[key] }, (value) => later({ [key]: value, rank: 0, ...more }));
  const kept = slider("nbest", { min: 1, max: begin.widest }, "nbest");
  const searched = make("section", { class: "card translate-searched" },
    make("h2", { text: t("search") }), make("p", { quiet: t("searchLead") }),
    make("div", { class: "bar" }, slider("beam", { min: 1, max: begin.widest }, "beam"),
      slider("penalty", { min: 0, max: 2, step: 0.1, shown: (x) => x.toFixed(1) }, "penalty"), kept,
      controls.toggle(t("pruned"), asked.pruned, (pruned) => { keep({ pruned }); grow(); })),
    forced, tree, make("h3", { text: t("list") }), make("p", { quiet: `${t("listLead")} ${t("formula")}` }), listPlace);
  page.append(form, note, spoken, looked, searched);
  place.append(page);

  // ------------------------------------------------------------ asking

  const remember = () => {
    const unless = (value, usual) => (value === usual ? null : value);
    context.set({
      text: unless(asked.text, begin.text), beam: unless(asked.beam, begin.beam), penalty: unless(asked.penalty, begin.length_penalty),
      nbest: unless(asked.nbest, Math.min(asked.beam, 4)), prefix: asked.prefix.join(".") || null, of: asked.prefix.length ? run.name : null,
      tag: begin.tags.length > 1 ? asked.tag : null, unit: unless(asked.unit, "words"), step: unless(asked.step, 0), source: asked.source,
      rank: unless(asked.rank, 0), layer: unless(asked.layer, begin.layer), head: asked.head, pruned: unless(asked.pruned, true),
      pins: asked.pins.map((pin) => pin.join(".")).join("_") || null,
    });
  };
  let turn = 0;
  // only the last that was asked for is shown
  const load = async (again) => {
    const mine = (turn += 1);
    page.setAttribute("aria-busy", "true");
    try {
      if (!asked.text.trim()) throw new Wrong(t("empty"));
      const found = again ? await context.json("/api/translate/search", {
        run: run.name, text: asked.text, beam: asked.beam, length_penalty: asked.penalty, nbest: Math.min(asked.nbest, asked.beam), prefix: asked.prefix, tag: asked.tag,
      }) : view.found;
      const rank = Math.min(asked.rank, found.outputs.length - 1);
      const { ids, finished } = found.outputs[rank];
      const weights = begin.layers && (ids.length || finished) ? await context.floats("/api/translate/attention", {
        run: run.name, text: asked.text, ids, finished, words: asked.unit === "words", tag: asked.tag,
        ...(begin.heads ? { layer: asked.layer, head: asked.head } : {}),
      }) : null;
      if (mine !== turn) return;
      Object.assign(view, { found, weights });
      asked.rank = rank;
      place.querySelector(".complaint")?.remove();
      draw(again);
    } finally {
      if (mine === turn) page.removeAttribute("aria-busy");
    }
  };
  const keep = (more) => {
    Object.assign(asked, more);
    emphasise();
    remember();
  };
  // What cannot be had leaves the page as it is; the shell says why.
  const attempt = async (more, again) => {
    const before = { ...asked };
    Object.assign(asked, more);
    asked.nbest = Math.min(asked.nbest, asked.beam);
    try {
      await load(again);
    } catch (error) {
      if (view.found) Object.assign(asked, before);
      throw error;
    }
    remember();
  };
  const change = async (more) => {
    const focused = tree.hasFocus();
    await attempt(more, true);
    kept.set(asked.nbest);
    if (focused) tree.focusTokens(asked.prefix);
  };
  const look = (more) => attempt(more, false);
  let [timer, waiting] = [0, {}];
  const later = (more) => {
    Object.assign(waiting, more);
    clearTimeout(timer);
    timer = setTimeout(() => {
      const wanted = waiting;
      waiting = {};
      change(wanted);
    }, PATIENCE);
  };
  function changeUnit(unit) {
    const { of } = target();
    const step = unit === "words" ? of[asked.step] : of.indexOf(asked.step);
    look({ unit, step: Math.max(0, step ?? 0), source: null, pins: [] });
  }

  // ------------------------------------------------------------ drawing

  const output = () => view.found.outputs[asked.rank];
  const target = () => output().target;
  const named = (side) => side[asked.unit].map((name, index, all) => (side.ended && index === all.length - 1 ? `‹${t("end")}›` : name));
  const draw = (again) => {
    const [read, written] = [view.found.source, target()];
    asked.step = Math.min(asked.step, Math.max(0, written[asked.unit].length - 1));
    if (asked.source >= read[asked.unit].length) asked.source = null;
    const notes = [view.found.unknown.length ? t("unknown", { words: view.found.unknown.map(context.visible).join(", ") }) : "", output().finished ? "" : t("cut")];
    note.textContent = notes.filter(Boolean).join(" ");
    note.hidden = !note.textContent;
    if (again) spoken.textContent = t("now", { text: output().text });
    band.update({ source: read[asked.unit], target: written[asked.unit], ended: { source: read.ended, target: written.ended }, weights: view.weights?.data ?? null });
    drawMap(named(read), named(written));
    grow();
    emphasise();
  };
  const drawMap = (columns, rows) => {
    if (!view.weights) { mapPlace.replaceChildren(); return; }
    view.map = context.matrix({
      label: t("map"), rows, columns, data: view.weights.data, scale: 1, pins: asked.pins, height: 420,
      onPin: (pins) => keep(pins.length ? { pins, step: pins[0][0], source: null } : { pins }),
      onHover: (at) => { if (!view.pointing) { view.glance = at ? { target: at[0] } : null; emphasise(false); } },
    });
    mapPlace.replaceChildren(make("h3", { text: t("map") }), make("p", { quiet: t("mapLead") }), view.map);
  };
  const grow = () => {
    tree.update({ found: view.found, beam: asked.beam, prefix: asked.prefix, shown: asked.rank, pruned: asked.pruned, now: [] });
    listPlace.replaceChildren(bestList(context, { outputs: view.found.outputs, shown: asked.rank }, (rank) => look({ rank, step: 0, source: null, pins: [] })));
    forced.hidden = !asked.prefix.length;
    const text = spelled({ tokens: asked.prefix }, view.found);
    forced.replaceChildren(make("span", {}, filled(t, "forced", { text: make("strong", {}, bidi(text)) })), controls.button(t("free"), () => change({ prefix: [], rank: 0 })));
  };

  const emphasise = (onMap = true) => {
    if (!view.found) return;
    const on = view.glance ?? (asked.source === null ? { target: asked.step } : { source: asked.source });
    band.show(on, { target: asked.step, source: asked.source ?? 0 });
    count.textContent = t("place", { step: asked.step + 1, count: target()[asked.unit].length });
    const said = say(on);
    sentence.replaceChildren(...said.nodes);
    const { of } = target();
    const row = on.target ?? asked.step;
    tree.mark(asked.unit === "tokens" ? [row] : of.flatMap((word, index) => (word === row ? [index] : [])));
    if (onMap && view.map) {
      view.pointing = true;
      view.map.point(said.cell);
      view.pointing = false;
    }
  };
  const say = (on) => {
    const [columns, rows] = [named(view.found.source), named(target())];
    if (!view.weights || !rows.length) return { nodes: [bidi(output().text)], cell: null };
    const { data } = view.weights;
    const value = (row, column) => make("b", { class: "number", text: data[row * columns.length + column].toFixed(2) });
    if (on.source !== undefined) {
      const row = strongest(data, on.source, rows.length, columns.length);
      const values = { source: bidi(columns[on.source]), target: bidi(rows[Math.max(row, 0)]) };
      return row < 0 ? { nodes: [], cell: null } : { nodes: filled(t, "by", { ...values, weight: value(row, on.source) }), cell: [row, on.source] };
    }
    const best = strongest(data, on.target * columns.length, columns.length);
    const called = make("strong", {}, bidi(rows[on.target]));
    if (best < 0) return { nodes: filled(t, "nobody", { target: called }), cell: null };
    const others = data.slice(on.target * columns.length, (on.target + 1) * columns.length);
    others[best] = NaN;
    const second = strongest(others, 0, columns.length);
    const more = second >= 0 && others[second] >= 0.05 ? filled(t, "next", { source: bidi(columns[second]), weight: value(on.target, second) }) : [];
    return { nodes: [...filled(t, "most", { target: called, source: make("strong", {}, bidi(columns[best])), weight: value(on.target, best) }), ...more], cell: [on.target, best] };
  };

  // ------------------------------------------------------------ stepping

  const move = (step) => {
    const held = band.hasFocus("target");
    view.glance = null;
    keep({ step: Math.min(Math.max(asked.step + step, 0), target()[asked.unit].length - 1), source: null });
    if (held) band.focusWord("target", asked.step);
  };
  document.addEventListener("keydown", (event) => {
    const held = band.hasFocus("target");
    const step = { ArrowRight: 1, ArrowLeft: -1, ...(held ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
    if (!step || !view.found || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest?.(SKIPPED)) return;
    event.preventDefault();
    move(step);
  }, { signal: context.signal });
  await load(true);
};

export default { name: "translate", styles: true, words, needs: (run) => run.task === "translation", show };
