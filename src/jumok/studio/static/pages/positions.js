// Positions: the vectors that say where a word stands, of a formula or of the run, and how alike they are.
import { plot, renewed } from "../plot.js";
import { fitted } from "../state.js";
import { stretched } from "../stretched.js";
import words from "../words/positions.json" with { type: "json" };

const KINDS = ["sinusoidal", "sinusoidal-halves", "learned", "rotary"];
const minus = (x) => String(x).replace("-", "−");

export default {
  name: "positions",
  styles: true,
  words,
  // formulas need no run
  needs: () => true,

  async show(place, context) {
    const { t, make, controls, state, run } = context;
    const owned = Boolean(run) && run.state !== "damaged" && !run.recurrent && run.position !== "none";
    const asked = {
      source: owned && state.source === "run" ? "run" : "formula", kind: KINDS.includes(state.kind) ? state.kind : "sinusoidal",
      width: fitted(state.width, 4, 256, 64) & ~1, length: fitted(state.length, 8, 512, 128), trained: fitted(state.trained, 1, 512, 64),
      part: fitted(state.part, 0, 99, 0), own: state.length === undefined,
    };
    const bar = make("div", { class: "bar positions-bar" });
    const body = make("div", { "aria-live": "off" });
    place.append(bar, body);

    let waiting = null;
    const set = (more, now = true) => {
      Object.assign(asked, more);
      context.set({ source: asked.source === "run" ? "run" : null, kind: asked.kind, width: asked.width, trained: asked.trained, part: asked.part || null,
        length: asked.own ? null : asked.length });
      clearTimeout(waiting);
      return new Promise((resolve) => { waiting = setTimeout(() => resolve(show()), now ? 0 : 60); });
    };
    const drawBar = (known) => {
      const formula = asked.source === "formula";
      const slider = (key, min, max, step, value) => controls.slider(t(key), { min, max, step, value }, (to) => set({ [key]: to, ...(key === "length" ? { own: false } : {}) }, false));
      bar.replaceChildren(...[
        owned ? controls.segmented(t("source"), [["formula", t("formula")], ["run", t("run")]], asked.source, async (source) => {
          await set({ source, own: true, length: 128 });
        }) : null,
        formula ? controls.segmented(t("kind"), KINDS.map((kind) => [kind, t(kind)]), asked.kind, (kind) => set({ kind })) : null,
        !formula && known.length > 1 ? controls.select(t("which"), known.map((one, index) => [index, one.name]), asked.part, (part) => set({ part })) : null,
        formula ? slider("width", 4, 256, 4, asked.width) : null,
        known[0].kind !== "patches" ? slider("length", 8, 512, 8, formula || !asked.own ? asked.length : known[0].length) : null,
        formula ? slider("trained", 8, 512, 8, asked.trained) : null].filter(Boolean));
    };
    let drawn = "";
    let round = 0;
    const show = async () => {
      const mine = (round += 1);
      const question = asked.source === "run" ? { run: run.name, ...(asked.own ? {} : { length: asked.length }) }
        : { kind: asked.kind, width: asked.width, length: asked.length, trained: asked.trained };
      let positions;
      try {
        ({ positions } = await context.json("/api/positions/list", question));
      } catch (error) {
        if (error.name !== "Wrong" || asked.source !== "run") throw error;
        // this run has none after all: the formulas are still there
        context.notice(error.message, "", error.lang);
        await set({ source: "formula" });
        return;
      }
      const number = Math.min(asked.part, positions.length - 1);
      const [table, pairs, curve] = await Promise.all(["table", "pairs", "curve"].map((name) => context.floats(`/api/positions/${name}`, { ...question, number })));
      // something else was chosen meanwhile
      if (mine !== round) return;
      const layout = `${asked.source} ${positions.length}`;
      // a slider under the hand stays as it is
      if (layout !== drawn) drawBar(positions);
      drawn = layout;
      const focus = body.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      const parent = { signal: renewed(body, context.signal) };
      body.replaceChildren(...picture(context, parent, positions[number], table, pairs, curve, asked.source === "run"));
      if (focus) [...body.querySelectorAll("[tabindex]")].find((one) => one.getAttribute("aria-label") === focus)?.focus();
    };
    await show();
    if (run && !owned) place.append(make("p", { quiet: t(run.recurrent ? "recurrentRun" : "noneRun", { run: run.title }) }));
  },
};

const picture = (context, parent, one, table, pairs, curve, own) => {
  const { t, make } = context;
  const known = `about ${one.kind}`;
  const told = [t("told", { length: one.length, width: one.width })];
  if (one.trained !== null && one.trained < one.length) told.push(t("toldTrained", { trained: one.trained }));
  if (one.reach < one.length) told.push(t("toldReach", { reach: one.reach }));
  const formula = make("div", { class: "positions-formula" }, make("p", { class: "positions-equation", text: t(`equation ${one.kind}`) }),
    make("p", { text: t(own && one.kind === "learned" ? "about own" : known) }), make("p", { class: "quiet number", text: `${told.join("; ")}.` }));
  const maps = [vectors(context, parent, one, table), one.kind === "patches" ? patches(context, parent, one, pairs) : alike(context, parent, one, pairs)];
  const parts = [formula, make("div", { class: "positions-maps" }, maps)];
  if (curve.shape[0]) parts.push(byOffset(context, parent, one, curve));
  return parts;
};

// A map with a line under it that says the number.
const mapped = (context, parent, { title, name, at, say, ...options }) => {
  const { make, t, shown } = context;
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const tell = (where) => {
    if (!where) { readout.replaceChildren(make("span", { quiet: t("hint") })); return; }
    const value = map.numbers[where[0] * options.columns + where[1]];
    const [words, beyond] = say(where);
    readout.replaceChildren(make("span", { text: words }), Number.isNaN(value) ? make("span", { quiet: t("none") }) : make("b", { class: "number", text: shown(value) }),
      beyond && !Number.isNaN(value) ? make("span", { class: "positions-beyond", text: t("isBeyond") }) : "");
  };
  const view = { pinned: at };
  const map = stretched({
    ...options, label: title, keys: t("mapKeys"), at, height: 336, onMove: (where, how) => {
      if (how === "pin") {
        view.pinned = where;
        context.set({ [name]: where.join(".") + "." });
      }
      if (how === "leave") map.point(view.pinned);
      if (how === "pin") options.onPin?.(where);
      tell(where ?? view.pinned);
    },
  }, parent);
  map.dataset.name = name;
  tell(at);
  return make("section", {}, make("h2", { text: title }), map, readout);
};
// "3.5." from a link
const pinned = (value, rows, columns) => {
  const found = /^(\d{1,4})\.(\d{1,4})\.$/.exec(String(value ?? ""));
  const at = found && [Number(found[1]), Number(found[2])];
  return at && at[0] < rows && at[1] < columns ? at : null;
};

const vectors = (context, parent, one, { data, shape: [rows, columns] }) => {
  const { t, state } = context;
  const relative = one.kind === "relative";
  const edges = one.trained === null ? [] : relative ? [one.trained - one.first, 1 - one.trained - one.first] : [one.trained];
  return mapped(context, parent, {
    title: t(relative ? "tableRelative" : "table"), name: "table", data, rows, columns, signed: true, scale: context.scaleOf(data, true), first: [one.first, 0],
    titles: [t(one.kind === "patches" ? "patch" : relative ? "distance" : "position"), t(relative ? "head" : "dimension")],
    marks: { rows: edges }, at: pinned(state.table, rows, columns),
    say: ([row, column]) => [t(relative ? "atTableRelative" : "atTable", { row: minus(row + one.first), column }),
      one.trained !== null && (relative ? Math.abs(row + one.first) : row) >= one.trained],
  });
};

const alike = (context, parent, one, { data, shape: [rows, columns] }) => {
  const { t, state } = context;
  const relative = one.kind === "relative";
  const edges = one.trained === null ? [] : [one.trained];
  return mapped(context, parent, {
    title: t(relative ? "pairsRelative" : "pairs"), name: "pairs", data, rows, columns, signed: true, scale: relative ? context.scaleOf(data, true) : 1,
    titles: relative ? [t("query"), t("key")] : [t("position"), t("position")], marks: { rows: edges, columns: edges }, at: pinned(state.pairs, rows, columns),
    say: ([row, column]) => [t(relative ? "atPairsRelative" : "atPairs", { row, column }), one.trained !== null && Math.max(row, column) >= one.trained],
  });
};

// Of patches: all cosines with one of them, where they are in the picture. Click another, and it is seen from there.
const patches = (context, parent, one, { data, shape: [count] }) => {
  const { t, state, make } = context;
  const [rows, columns] = one.grid;
  const at = pinned(state.patch, rows, columns) ?? [rows >> 1, columns >> 1];
  const slice = (where) => data.subarray((where[0] * columns + where[1]) * count, (where[0] * columns + where[1] + 1) * count);
  const caption = make("p", { class: "quiet number" });
  const tell = (where) => { caption.textContent = t("from", { row: where[0], column: where[1] }); };
  const section = mapped(context, parent, {
    title: t("patchMap"), name: "patch", data: slice(at), rows, columns, signed: true, scale: 1, at,
    say: ([row, column]) => [t("atPatch", { row, column }), false],
    onPin: (where) => { section.querySelector(".stretched").update({ data: slice(where), at: where }); tell(where); },
  });
  tell(at);
  section.querySelector("h2").after(caption);
  return section;
};

const byOffset = (context, parent, one, { data, shape: [count], about }) => {
  const { t, make, shown } = context;
  const relative = one.kind === "relative";
  const rows = Array.from({ length: count }, (_, index) => [...data.subarray(4 * index, 4 * index + 4)]);
  const sides = [rows.slice(0, about.within), rows.slice(about.within)];
  const split = one.trained !== null && one.trained < one.length;
  const series = sides.map((side, index) => ({
    name: index ? t("beyond") : split ? t("within") : t("all"), colour: index,
    points: side.map(([offset, mean]) => [offset, mean]), band: side.map(([offset, , low, high]) => [offset, low, high]),
  })).filter((side) => side.points.length);
  const curve = plot({
    label: t(relative ? "curveRelative" : "curve"), keys: t("curveKeys"), height: 280, series,
    marks: split ? [{ x: relative ? -one.trained : one.trained, text: t("trainedHere", { trained: one.trained }) }] : [],
    x: { title: t(relative ? "distance" : "offset"), whole: true }, y: relative ? {} : { high: 1 },
    say: (offset) => {
      const found = sides.map((side) => side.find((row) => row[0] === offset));
      if (offset === null || !found.some(Boolean)) return make("span", { quiet: t("hintCurve") });
      return [make("span", { class: "number", text: `k = ${minus(offset)}` }), ...found.flatMap((row, index) => (row ? [make("span", {},
        `${index ? t("beyond") : split ? t("within") : t("all")} `, make("b", { class: "number", text: shown(row[1]) }),
        make("span", { class: "quiet number", text: ` (${shown(row[2])} ${t("to")} ${shown(row[3])})` }))] : []))];
    },
  }, parent);
  curve.numbers = data;
  return make("section", { class: "positions-curve" }, make("h2", { text: t(relative ? "curveRelative" : "curve") }), make("p", { quiet: t("curveLead") }), curve);
};
