// The page "Attention": all layers and heads, one of them word by word and step by step, and the model without it.
import { remembering, translated } from "../asking.js";
import { arcsOf } from "./attention-arcs.js";
import { changeOf } from "./attention-change.js";
import { formOf } from "./attention-form.js";
import { gridOf } from "./attention-grid.js";
import { differs, hasSpecial, largestOf, readPins, shownPart, sidesOf, writePins } from "./attention-sides.js";
import { stepsOf } from "./attention-steps.js";
import words from "../words/attention.json" with { type: "json" };

const TASKS = ["translation", "language", "pretraining", "classification", "regression", "tagging", "answering"];
// maps
const KEPT = 40;
const frame = () => new Promise((resolve) => { requestAnimationFrame(() => resolve()); });
const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== ""));

async function show(place, context) {
  const { make, t, controls, run } = context;
  const state = () => context.state;
  const text = (value) => (value === undefined ? undefined : String(value));
  const view = { answer: null, group: null, sides: null, part: null, layer: 0, head: 0, combine: "head", pins: [], turn: 0, asked: 0 };

  // ------------------------------------------------------------ what is asked

  const gone = () => String(state().ablated ?? "").split(",").filter(Boolean);
  const base = () => given({
    run: run.name, update: Number.isInteger(state().update) ? state().update : undefined, text: text(state().text) ?? view.answer?.text,
    second: text(state().second) ?? (state().text === undefined ? view.answer?.second : undefined), target: text(state().target), tag: text(state().tag),
    without: gone().length ? gone() : undefined,
  });
  const byWords = () => state().unit !== "tokens";
  const special = () => state().special !== false;
  const bright = () => state().bright ?? view.group.keys.tokens.length > 32;
  const answers = remembering((body) => context.floats("/api/attention/map", body), KEPT);
  // all else is asked of the text that is shown: another may be on its way, or have been refused
  const mapOf = (layer, head) => answers({ ...view.base, kind: view.group.name, combine: view.combine, layer, head, words: byWords() });

  // ------------------------------------------------------------ the page's parts

  const form = formOf(context, (changed) => {
    const now = { text: view.answer?.text, second: view.answer?.second ?? "", target: text(state().target) ?? "", tag: state().tag, update: state().update ?? null };
    if (Object.entries(changed).every(([name, value]) => value === now[name])) return;
    context.set({ ...Object.fromEntries(Object.entries(changed).map(([name, value]) => [name, value === "" && name !== "text" ? null : value])), pins: null });
    look();
  });
  const outcome = make("p", { class: "attention-outcome", "aria-live": "polite" });
  const badge = make("span", { class: "attention-badge number" });
  const notes = make("p", { class: "quiet" });
  const bar = make("div", { class: "bar attention-controls" });
  const grid = gridOf(context, (layer, head) => choose(layer, head));
  const heading = make("h2");
  const axes = make("p", { class: "quiet attention-axes" });
  const ablate = make("button", { onclick: () => take() });
  const mapBox = make("div");
  const arcs = arcsOf(context, {
    point: (row) => view.matrix?.point(row === null ? null : [row, largestOf(view.part.data, view.part.columns.length, row)]),
    pin: (row, more) => {
      const at = [row, largestOf(view.part.data, view.part.columns.length, row)];
      pinned(more ? [...shownPins().slice(-1), at] : [at]);
      view.matrix.update({ pins: shownPins() });
    },
  });
  const steps = stepsOf(context);
  const queryBox = make("div", { class: "attention-query" });
  const change = changeOf(context, {
    restore: (name) => { without(gone().filter((one) => one !== name)); ablate.focus(); }, restoreAll: () => { without([]); ablate.focus(); },
  });
  const gridBox = make("section", { class: "attention-all", "aria-label": t("grid") }, make("h2", { text: t("grid") }), grid);
  const layout = make("div", { class: "attention-two" }, gridBox, make("section", { class: "attention-one" },
    make("div", { class: "attention-head" }, heading, ablate), axes, mapBox),
  make("section", { class: "attention-output", "aria-label": t("change") }, make("h2", { text: t("change") }), change));
  const section = (title, ...parts) => make("section", { class: "attention-part", "aria-label": title }, make("h2", { text: title }), parts);
  place.append(form, make("div", { class: "attention-says" }, outcome, badge), notes, bar, layout,
    section(t("arcs"), make("p", { class: "quiet attention-caption", text: t("arcsLead") }), arcs), section(t("steps"), queryBox, steps));

  // ------------------------------------------------------------ one look at a text

  const look = async () => {
    const turn = (view.turn += 1);
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await context.json("/api/attention/look", base());
      if (turn !== view.turn) return;
      view.answer = answer;
      view.base = base();
    } finally {
      if (turn === view.turn) place.removeAttribute("aria-busy");
    }
    const { answer } = view;
    form.fill({ text: answer.text, second: answer.second, target: text(state().target), tags: answer.tags, tag: state().tag, update: state().update });
    outcome.replaceChildren(make("span", { quiet: t({ translation: "writes", language: "goesOn" }[run.task] ?? "says") }), " ",
      answer.outcome.text ? context.bidi(answer.outcome.text) : t("nothing"));
    badge.replaceChildren(`${t("delta")} ${context.shown(answer.difference)}`, make("span", { class: "hidden", text: t("deltaTitle") }));
    [badge.title, badge.dataset.value] = [t("deltaTitle"), answer.difference];
    const told = [...answer.notes.map((note) => translated(note, context.t)), ...(run.task === "pretraining" && !answer.outcome.text ? [t("maskHint")] : [])];
    [notes.textContent, notes.hidden] = [told.join(" "), !told.length];
    change.show(answer, gone().map((name) => ({ name, text: spoken(name) })),
      t(answer.groups[0].heads === null ? "withoutAll" : "without"));
    await kind(state().kind);
  };
  const spoken = (name) => {
    const [tap, head] = name.split(":");
    const group = view.answer.groups.find((one) => one.taps.includes(tap));
    if (!group) return name;
    const title = kindTitle(group.name);
    return head === undefined ? title : `${title}, ${t("cell", { layer: group.layers[group.taps.indexOf(tap)], head })}`;
  };
  const kindTitle = (name) => (run.task === "translation" ? t(name) : t({ second: "second_self", causal: "own_causal" }[name] ?? "own_self"));

  // ------------------------------------------------------------ one kind of attention

  const kind = async (name) => {
    const { groups, rolls } = view.answer;
    view.group = groups.find((group) => group.name === name) ?? groups.find((group) => group.name === "cross") ?? groups[0];
    const { layers, heads } = view.group;
    view.layer = layers.includes(state().layer) ? state().layer : layers[Math.max(0, layers.length - 2)];
    view.head = Number.isInteger(state().head) ? Math.min(Math.max(state().head, 0), (heads ?? 1) - 1) : 0;
    const ways = heads === null ? ["head"] : ["head", "mean", "max", ...(rolls ? ["rollout"] : [])];
    view.combine = ways.includes(state().combine) ? state().combine : "head";
    const another = (more) => { context.set(more); return kind(view.group.name); };
    controls.refill(bar,
      groups.length > 1 ? controls.segmented(t("kind"), groups.map((group) => [group.name, kindTitle(group.name)]), view.group.name,
        (chosen) => { context.set({ kind: chosen, layer: null, head: null, pins: null }); kind(chosen); }) : null,
      ways.length > 1 ? controls.segmented(t("combine"), ways.map((way) => [way, t(way)]), view.combine, (way) => {
        context.set({ combine: way === "head" ? null : way });
        view.combine = way;
        choose(view.layer, view.head);
      }) : null,
      differs(view.group) ? controls.segmented(t("unit"), ["words", "tokens"].map((unit) => [unit, t(unit)]), byWords() ? "words" : "tokens", changeUnit) : null,
      hasSpecial(view.group) ? controls.toggle(t("special"), special(), (on) => { context.set({ special: on ? null : false }); draw(); }) : null,
      controls.toggle(t("bright"), bright(), (on) => another({ bright: on })));
    layout.classList.toggle("attention-single", heads === null);
    gridBox.hidden = heads === null;
    view.sides = sidesOf(view.group, byWords());
    view.pins = readPins(state().pins);
    const start = performance.now();
    const turn = view.turn;
    if (heads !== null) {
      // on its way while the small maps are drawn
      mapOf(view.layer, view.head).catch(() => {});
      const small = await context.json("/api/attention/grid", { ...view.base, kind: view.group.name });
      if (turn !== view.turn) return;
      grid.fill(view.group, small, bright());
      marked();
      await frame();
      performance.measure("attention-grid", { start });
    }
    await choose(view.layer, view.head);
  };
  const changeUnit = (unit) => {
    const from = view.sides;
    context.set({ unit: unit === "words" ? null : unit });
    view.sides = sidesOf(view.group, byWords());
    const moved = (side, one) => view.sides[side].of[from[side].firsts[one]] ?? 0;
    view.pins = view.pins.map(([row, column]) => [moved("queries", row), moved("keys", column)]);
    context.set({ pins: writePins(view.pins) });
    choose(view.layer, view.head);
  };

  // ------------------------------------------------------------ one map

  const marked = () => {
    const wide = { head: false, mean: true, max: true, rollout: "all" }[view.combine];
    grid.mark(view.layer, view.head, new Set(gone()), wide);
  };
  const choose = async (layer, head) => {
    const start = performance.now();
    const asked = (view.asked += 1);
    const { data } = await mapOf(layer, head);
    if (asked !== view.asked) return;
    Object.assign(view, { layer, head, data });
    marked();
    draw();
    frame().then(() => performance.measure("attention-switch", { start }));
    context.set({ kind: view.group.name, layer, head: view.group.heads === null ? null : head });
    if (!document.getElementById("offline")) soon("near", neighbours, 100);
  };
  const timers = {};
  const soon = (name, act, wait) => {
    clearTimeout(timers[name]);
    timers[name] = setTimeout(() => { if (!context.signal.aborted) act(); }, wait);
  };
  const neighbours = () => {
    const { layers, heads } = view.group;
    if (heads === null || view.combine === "rollout") return;
    const at = layers.indexOf(view.layer);
    const near = view.combine === "head" ? [[at, view.head + 1], [at + 1, view.head], [at, view.head - 1], [at - 1, view.head]] : [[at + 1, 0], [at - 1, 0]];
    for (const [row, head] of near) if (row in layers && head >= 0 && head < heads) mapOf(layers[row], head).catch(() => {});
  };

  const named = () => {
    const { group: { heads, layers }, layer, head, combine } = view;
    if (heads === null) return t("namedPlain");
    return { head: t("named", { layer, head }), mean: t("namedMean", { layer, n: heads }), max: t("namedMax", { layer, n: heads }), rollout: t("namedRollout", { n: layers.length }) }[combine];
  };
  const shownPins = () => view.pins.map(([row, column]) => [view.part.rows.indexOf(row), view.part.columns.indexOf(column)]).filter((pin) => !pin.includes(-1));
  const draw = () => {
    view.part = shownPart(view.sides, view.data, special());
    const { part } = view;
    heading.textContent = `${named()} · ${kindTitle(view.group.name)}`;
    axes.textContent = view.combine === "max" ? t("axesMax") : t("axes");
    const lost = gone().includes(tapName());
    ablate.hidden = view.combine !== "head";
    ablate.textContent = lost ? t("back") : t(view.group.heads === null ? "withoutAll" : "without");
    ablate.setAttribute("aria-pressed", lost);
    const options = {
      label: heading.textContent, rows: part.rowNames, columns: part.columnNames, data: part.data, scale: 1, bright: bright(), pins: shownPins(), height: 520,
    };
    if (view.matrix) view.matrix.update(options);
    else {
      view.matrix = context.matrix({
        ...options, onPin: pinned, onHover: (at) => arcs.point(at ? at[0] : null),
        say: (row, column, value) => [context.bidi(view.part.rowNames[row]), " → ", context.bidi(view.part.columnNames[column]), " ",
          make("b", { class: "number", title: String(value), text: context.shown(value) })],
      });
      mapBox.append(view.matrix);
    }
    arcs.update(part);
    arcs.point(null, shownPins().map(([row]) => row));
    soon("steps", follow, 180);
  };
  const pinned = (pins) => {
    view.pins = pins.map(([row, column]) => [view.part.rows[row], view.part.columns[column]]);
    context.set({ pins: writePins(view.pins) });
    arcs.point(null, pins.map(([row]) => row));
    soon("steps", follow, 0);
  };

  // ------------------------------------------------------------ steps, and heads that are taken away

  const follow = async () => {
    const { queries } = view.sides;
    if (view.combine !== "head") {
      queryBox.replaceChildren();
      steps.say(t("stepsOne"));
      return;
    }
    const last = view.pins.at(-1)?.[0];
    const row = last < queries.names.length ? last : Math.max(0, queries.special.indexOf(false));
    const names = JSON.stringify(queries.names);
    if (view.queries === names && queryBox.firstChild) queryBox.querySelector("select").selectedIndex = row;
    else queryBox.replaceChildren(controls.select(t("query"), queries.names.map((name, index) => [index, context.visible(name)]), row, (chosen) => {
      const at = view.part.rows.indexOf(chosen);
      const column = view.part.columns[at < 0 ? 0 : largestOf(view.part.data, view.part.columns.length, at)];
      view.pins = [[chosen, column]];
      context.set({ pins: writePins(view.pins) });
      view.matrix.update({ pins: shownPins() });
      arcs.point(null, shownPins().map(([one]) => one));
      follow();
    }));
    view.queries = names;
    const at = queries.firsts[row];
    const several = queries.of.filter((one) => one === row).length > 1;
    const asked = view.asked;
    const answer = await context.json("/api/attention/steps", { ...view.base, kind: view.group.name, layer: view.layer, head: view.head, place: at });
    if (asked === view.asked) steps.show(answer, { ablated: gone().includes(tapName()), piece: several ? view.group.queries.tokens[at] : "" });
  };
  const tapName = () => {
    const tap = view.group.taps[view.group.layers.indexOf(view.layer)];
    return view.group.heads === null ? tap : `${tap}:${view.head}`;
  };
  const take = () => {
    const name = tapName();
    without(gone().includes(name) ? gone().filter((one) => one !== name) : [...gone(), name]);
  };
  const without = (names) => {
    context.set({ ablated: names.join(",") || null });
    look();
  };

  await look();
}

export default {
  name: "attention",
  styles: true,
  words,
  needs: (run) => TASKS.includes(run.task) && run.heads.length > 0,
  show,
};
