// Compare: two runs, or two checkpoints of a run, on one input.
import { Wrong } from "../asking.js";
import { maps } from "./compare-maps.js";
import { badge, outputs, probabilities } from "./compare-said.js";
import words from "../words/compare.json" with { type: "json" };

const TASKS = ["translation", "classification", "regression", "pretraining", "tagging"];
const SENTENCES = { en: "The black cat sees the small dog.", fr: "Le chat noir voit le petit chien.", ko: "검은 고양이가 작은 개를 본다." };
const REVIEWS = { en: "a wonderful film", ko: "정말 재미있는 영화" };
const HIDDEN = { en: "The black cat sees the [MASK] dog.", ko: "검은 고양이가 [MASK] 개를 본다." };
const ASKED = { pretraining: HIDDEN, tagging: SENTENCES };

// The two sides as the state has them; without one: a run's first checkpoint and its best one, else another run.
const sidesOf = (context) => {
  const { run, runs, state } = context;
  const known = (one, update) => (one.checkpoints.includes(update) ? update : null);
  const other = runs.find((one) => one.name === state.other && one.state !== "damaged");
  const fresh = other === undefined && state.a === undefined && state.b === undefined;
  if (fresh && run.checkpoints.length > 1) return [{ run, update: run.checkpoints[0] }, { run, update: null }];
  const next = runs.find((one) => one.task === run.task && one.name !== run.name && one.state !== "damaged");
  const second = other ?? (state.b === undefined && run.checkpoints.length < 2 ? next : null) ?? run;
  return [{ run, update: known(run, state.a) }, { run: second, update: known(second, state.b) }];
};
const nameOf = (context, { run, update }) => `${run.name}${update === null ? "" : `, ${context.t("update", { update })}`}`;
const asked = ({ run, update }) => (update === null ? { run: run.name } : { run: run.name, update });

const chooser = (context, place, sides, change) => {
  const { t, make, controls, runs } = context;
  const { run, update } = sides[place];
  const letter = "AB"[place];
  const best = (run.best_update ?? null) === null ? t("best") : t("bestUpdate", { update: run.best_update });
  const named = (kind) => t(kind, { side: letter });
  return make("div", { class: "compare-chooser" }, badge(make, letter),
    controls.select(named("run"), runs.filter((one) => one.state !== "damaged").map((one) => [one.name, one.title]), run.name, (name) => change(place, name, null)),
    run.checkpoints.length > 1 ? controls.select(named("checkpoint"), [[null, best], ...run.checkpoints.map((one) => [one, t("update", { update: one })])], update, (one) => change(place, run.name, one)) : null);
};

export default {
  name: "compare",
  styles: true,
  words,
  chooses: true,
  needs: (run) => TASKS.includes(run.task),

  async show(place, context) {
    const { t, make, controls, run } = context;
    const translates = run.task === "translation";
    const top = make("div", { class: "compare-choosers" });
    const message = make("p", { class: "wrong", role: "alert" });
    const result = make("div", { class: "compare-result" });
    let count = 0;

    const change = (side, name, update) => {
      const sides = sidesOf(context);
      sides[side] = { run: context.runs.find((one) => one.name === name), update };
      settle(sides);
    };
    const settle = ([a, b]) => {
      const state = { run: a.run.name, a: a.update ?? "best", other: b.run.name, b: b.update ?? "best", pin: null };
      // the header has the first one, too
      if (a.run.name !== run.name) {
        context.go({ ...context.state, ...state, text: a.run.task === run.task ? context.state.text : null, target: null });
        return;
      }
      context.set(state);
      draw();
    };
    const swap = () => {
      const [a, b] = sidesOf(context);
      settle([b, a]);
    };
    const again = (more) => {
      context.set({ ...more, pin: null });
      return look();
    };

    const textOf = () => String(context.state.text ?? (translates ? SENTENCES[run.languages?.[0] ?? "en"] ?? SENTENCES.en : (ASKED[run.task] ?? REVIEWS)[context.language]));
    const target = controls.field(t("target"), context.state.target ?? "", (value) => again({ target: value || null }), { placeholder: t("own") });
    const fields = make("div", { class: "compare-fields" },
      controls.field(t("text"), textOf(), (text) => {
        target.querySelector("input").value = "";
        return again({ text, target: null });
      }),
      translates ? target : controls.field(t("second"), context.state.second ?? "", (value) => again({ second: value || null })));

    const look = async () => {
      count += 1;
      const mine = count;
      const sides = sidesOf(context);
      const names = sides.map((side) => nameOf(context, side));
      const ask = { a: asked(sides[0]), b: asked(sides[1]), text: textOf().slice(0, 4000) };
      if (context.state.second !== undefined && !translates) ask.second = String(context.state.second).slice(0, 4000);
      if (context.state.target !== undefined && translates) ask.target = String(context.state.target).slice(0, 4000);
      const apart = sides[1].run.task !== run.task;
      if (apart || !ask.text.trim()) {
        message.textContent = apart ? t("unlike", { a: run.task, b: sides[1].run.task }) : "";
        result.replaceChildren(...(apart ? [] : [make("p", { quiet: t("empty") })]));
        return;
      }
      result.setAttribute("aria-busy", "true");
      try {
        const told = await context.json("/api/compare/look", ask);
        if (mine !== count || context.signal.aborted) return;
        message.textContent = "";
        const alone = names[0] === names[1] ? make("p", { class: "compare-alone", text: t("alone") }) : null;
        const attention = told.kinds.length ? maps(context, { told, ask, names }) : make("section", { class: "card" }, make("h2", { text: t("attention") }), make("p", {
          quiet: told.lacking.length === 2 ? t("lackBoth") : told.lacking.length ? t("lacks", { side: told.lacking[0].toUpperCase() }) : t("noKind"),
        }));
        result.replaceChildren(...[alone, make("section", { class: "compare-said" }, make("h2", { text: t("outputs") }), outputs(context, told, names)),
          ...(translates ? [attention, likelihoods(told)] : [likelihoods(told), attention])].filter(Boolean));
        await attention.ready;
      } catch (error) {
        if (mine !== count || error.name === "AbortError") return;
        if (!(error instanceof Wrong)) throw error;
        result.replaceChildren();
        [message.textContent, message.lang] = [error.whole, error.lang];
      } finally {
        if (mine === count) result.removeAttribute("aria-busy");
      }
    };

    const likelihoods = (told) => {
      if (told.labels === null) {
        const [a, b] = told.sides.map((one) => one.number);
        return make("p", { class: "compare-sentence", text: t("measured", { a: context.shown(a), b: context.shown(b), d: context.shown(Math.abs(b - a)) }) });
      }
      const box = make("section", { class: "card compare-likely" });
      if (!translates) {
        box.append(make("h2", { text: t("classes") }), ...probabilities(context, { names: told.labels, a: told.a, b: told.b }, { first: t("labelName") }));
        return box;
      }
      const { tokens, words: byWords } = told.probabilities;
      const bare = byWords.names.length === 0;
      box.append(make("h2", { text: t("probabilities") }), make("p", { class: "quiet" }, t("forced", { text: context.visible(told.target) }), tokens || bare ? "" : ` ${t("onlyWords")}`),
        ...probabilities(context, tokens ?? byWords, { first: t("name"), whole: told.sides.map((one) => one.forced) }));
      return box;
    };

    const draw = () => {
      const sides = sidesOf(context);
      top.replaceChildren(chooser(context, 0, sides, change),
        make("button", { class: "compare-swap", text: "⇄", "aria-label": t("swap"), title: t("swap"), onclick: swap }), chooser(context, 1, sides, change));
      return look();
    };
    place.append(top, fields, message, result);
    await draw();
  },
};
