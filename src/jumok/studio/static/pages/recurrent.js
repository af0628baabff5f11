// Recurrent: gates, cell state and hidden state over a sentence, and how far back the end state still feels.
import { plot, renewed } from "../plot.js";
import { fitted } from "../state.js";
import { stretched } from "../stretched.js";
import { unitCard } from "./recurrent-unit.js";
import words from "../words/recurrent.json" with { type: "json" };

// A sentence to begin with, in the language that a run reads.
const FIRST = {
  en: "the young woman gives the old book to the small boy", fr: "la jeune femme donne le vieux livre au petit garçon",
  ko: "젊은 여자가 작은 소년에게 오래된 책을 준다", de: "die junge Frau gibt dem kleinen Jungen das alte Buch",
};

// those that read text
const FAMILIES = ["seq2seq", "recurrent-lm", "recurrent"];

export default {
  name: "recurrent",
  styles: true,
  words,
  needs: (run) => run.recurrent && FAMILIES.includes(run.family),

  async show(place, context) {
    const { t, make, controls, state, run } = context;
    const asked = typeof state.text === "string" && state.text.trim() ? state.text : FIRST[run.languages?.[0]] ?? FIRST.en;
    const about = make("div");
    let last = asked;
    // asked by the field that is left and by the button: once is enough
    const read = async (text) => {
      if (!text.trim() || text === last) return;
      last = text;
      context.set({ text, step: null });
      try {
        await showText(text);
      } catch (error) {
        if (last === text) last = null;
        throw error;
      }
    };
    const field = controls.field(t("text"), asked, (text) => read(text));
    place.append(make("div", { class: "recurrent-ask" }, field, controls.button(t("read"), () => read(field.querySelector("input").value), "main")), about);

    const showText = async (text) => {
      const found = await context.json("/api/recurrent/look", { run: run.name, text });
      if (text === last) await view(about, context, text, found);
    };
    const stepping = { by: () => {} };
    context.stepping = stepping;
    // → and ← anywhere but where they have a meaning of their own
    document.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.target.closest("input, select, textarea, [contenteditable], nav, dialog, header, details")) return;
      event.preventDefault();
      stepping.by(step);
    }, { signal: context.signal });
    await showText(asked);
  },
};

// All of one sentence; below it the chosen reading.
const view = async (about, context, text, found) => {
  const { t, make, controls, state } = context;
  const { tokens, readings, kind } = found;
  const layers = [...new Set(readings.map((one) => one.layer))];
  const both = readings.some((one) => one.backwards);
  const chosen = { layer: layers.includes(state.layer) ? state.layer : layers[0], backwards: both && state.backwards === true };
  const body = make("div");
  const badge = make("span", { class: "recurrent-badge number" });
  const choose = async (more) => {
    Object.assign(chosen, more);
    context.set({ layer: chosen.layer, backwards: chosen.backwards || null });
    await showReading();
  };
  const directions = [[false, t("forward")], [true, t("backward")]];
  const showReading = async () => {
    const at = Math.max(0, readings.findIndex((one) => one.layer === chosen.layer && one.backwards === chosen.backwards));
    const numbers = await context.floats("/api/recurrent/states", { run: context.run.name, text, reading: at });
    // another was chosen meanwhile
    if (chosen.layer !== readings[at].layer || chosen.backwards !== readings[at].backwards) return;
    badge.textContent = t("fused", { value: context.shown(readings[at].difference) });
    readingOf(body, context, { kind, tokens, readings, at, numbers });
  };
  about.replaceChildren(make("div", { class: "bar" },
    layers.length > 1 ? controls.segmented(t("layer"), layers.map((one) => [one, String(one)]), chosen.layer, (layer) => choose({ layer })) : null,
    both ? controls.segmented(t("direction"), directions, chosen.backwards, (backwards) => choose({ backwards })) : null,
    controls.toggle(t("order"), state.order !== false, (on) => { context.set({ order: on ? null : false }); showReading(); }),
    badge), body);
  await showReading();
};

// Units have no order of their own: those that hold the longest stand on top, in every map alike.
const arranged = (names, parts, units, steps) => {
  const name = ["forget gate", "update gate", "hidden state"].find((one) => names.includes(one));
  const held = Array.from({ length: units }, (_, unit) => {
    let sum = 0;
    for (let step = 0; step < steps; step += 1) sum += Math.abs(parts[name][unit * steps + step]);
    return sum;
  });
  return held.map((_, unit) => unit).sort((a, b) => held[b] - held[a]);
};

const readingOf = (body, context, { kind, tokens, readings, at, numbers }) => {
  const { t, make, state, bidi, shown } = context;
  const parent = { signal: renewed(body, context.signal) };
  const reading = readings[at];
  const [, steps, units] = numbers.shape;
  const names = reading.states;
  // by name: units × tokens
  const parts = {};
  names.forEach((name, index) => {
    const turned = new Float32Array(units * steps);
    for (let step = 0; step < steps; step += 1) {
      for (let unit = 0; unit < units; unit += 1) turned[unit * steps + step] = numbers.data[(index * steps + step) * units + unit];
    }
    parts[name] = turned;
  });
  const order = state.order === false ? null : arranged(names, parts, units, steps);
  const start = [fitted(state.unit ?? (order ? order[0] : 0), 0, units - 1), fitted(state.step ?? Math.min(2, steps - 1), 0, steps - 1)];
  const view = { pinned: start, now: start };
  const card = unitCard(context);

  const maps = names.map((name) => {
    const gate = name.endsWith("gate");
    const map = stretched({
      label: t(name), keys: t("mapKeys"), data: parts[name], rows: units, columns: steps, names: tokens, order, signed: !gate,
      scale: gate ? 1 : context.scaleOf(parts[name], true), at: view.now, height: 200, onMove: (where, how) => move(where ?? view.pinned, how === "pin"),
    }, parent);
    map.dataset.name = name;
    return make("section", { class: "recurrent-map" }, make("h3", {}, t(name), make("small", { quiet: t(`about ${name}`) })), map);
  });

  const chips = tokens.map((token, index) => make("button", {
    class: "recurrent-token", tabindex: -1, onclick: () => move([view.now[0], index], true),
  }, bidi(token)));
  const strip = make("div", { class: "recurrent-strip" },
    context.controls.button("‹", () => stepBy(-1), "small"), make("div", { class: "recurrent-tokens", role: "group", "aria-label": t("tokens") }, chips),
    context.controls.button("›", () => stepBy(1), "small"));
  strip.firstChild.setAttribute("aria-label", t("previous"));
  strip.lastChild.setAttribute("aria-label", t("next"));

  const groups = [names.filter((name) => name.endsWith("gate")), names.filter((name) => !name.endsWith("gate"))].filter((some) => some.length);
  const lines = groups.map((some, index) => plot({
    label: some.map((name) => t(name)).join(", "), keys: t("lineKeys"), height: index === groups.length - 1 ? 208 : 140, series: [], stays: true, at: start[1],
    x: { names: tokens, bare: index < groups.length - 1, low: 0, high: Math.max(1, steps - 1) }, y: some[0].endsWith("gate") ? { low: 0, high: 1 } : {},
    onHover: (step) => step !== null && move([view.now[0], step], false), onPin: (step) => move([view.now[0], step], true),
  }, parent));
  const series = readings.map((one, index) => ({
    name: readings.length > 1 ? t("reading", { layer: one.layer, direction: t(one.backwards ? "backward" : "forward") }) : "",
    points: one.gradient.map((value, step) => [one.distance[step], value]).sort((a, b) => a[0] - b[0]), colour: index, dots: 3, faint: index !== at,
  }));
  const curve = plot({
    label: t("gradient"), keys: t("lineKeys"), height: 248, series, x: { title: t("gradientAxis"), whole: true }, y: { log: true }, at: reading.distance[start[1]],
    stays: true, onHover: (distance) => distance !== null && move([view.now[0], reading.distance.indexOf(distance)], false),
    onPin: (distance) => move([view.now[0], reading.distance.indexOf(distance)], true),
    say: (distance) => {
      const step = reading.distance.indexOf(distance);
      if (step < 0) return make("span", { quiet: t("gradientHint") });
      return [bidi(tokens[step]), make("b", { class: "number", text: shown(reading.gradient[step]) }), make("span", { class: "quiet number", text: `T − t = ${distance}` })];
    },
  }, parent);
  for (const one of [...lines, curve]) one.addEventListener("pointerleave", () => move(view.pinned, false));

  const valuesAt = (unit, step) => Object.fromEntries(names.map((name) => [name, parts[name][unit * steps + step]]));
  let drawn = -1;
  const move = (where, pin) => {
    const [unit, step] = where;
    view.now = where;
    if (pin) {
      view.pinned = where;
      context.set({ unit, step });
    }
    for (const map of maps) map.lastChild.point(where);
    chips.forEach((chip, index) => {
      if (index === step) chip.setAttribute("aria-current", "true");
      else chip.removeAttribute("aria-current");
    });
    if (pin) chips[step].scrollIntoView({ block: "nearest", inline: "nearest" });
    // the token that was read before this one
    const before = reading.backwards ? step + 1 : step - 1;
    card.tell({ kind, token: tokens[step], unit, numbers: valuesAt(unit, step), before: before < 0 || before >= steps ? null : valuesAt(unit, before) });
    if (unit !== drawn) {
      groups.forEach((some, group) => lines[group].update({ series: some.map((name) => ({
        name: t(name), colour: names.indexOf(name), dots: 2.5, points: Array.from({ length: steps }, (_, one) => [one, parts[name][unit * steps + one]]),
      })) }));
      title.textContent = t("line", { unit });
    }
    drawn = unit;
    for (const one of lines) one.point(step, true);
    curve.point(reading.distance[step], true);
  };
  const stepBy = (step) => move([view.now[0], fitted(view.now[1] + step, 0, steps - 1)], true);
  context.stepping.by = stepBy;
  const title = make("h2");
  body.replaceChildren(strip, make("h2", { text: t("maps") }), make("p", { quiet: t("mapsLead") }),
    make("div", { class: "recurrent-maps" }, maps, card),
    make("div", { class: "recurrent-pair" }, make("section", {}, title, lines),
      make("section", {}, make("h2", { text: t("gradient") }), make("p", { quiet: t("gradientLead") }), curve)),
    make("p", { quiet: t("fusedLead") }));
  move(start, false);
};
