// Reading: what a reader of words reads in a picture, and where it looks while it writes each character.
import { Wrong } from "../asking.js";
import { loaded } from "../files.js";
import { film } from "./reading-film.js";
import { input } from "./reading-input.js";
import words from "../words/reading.json" with { type: "json" };

let playing = null;
const percent = (p) => (100 * p).toFixed(1);
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const whole = (value) => (Number.isInteger(value) && value >= 0 && value < 2 ** 31 ? value : undefined);

// What is asked of the studio, from the state; `where` has the run's cross-attention, or nothing (CTC).
const question = (context, where) => {
  const { state, run } = context;
  const ask = { run: run.name };
  if (state.picture !== undefined) ask.picture = String(state.picture).slice(0, 64);
  else {
    if (state.text !== undefined) ask.text = String(state.text).slice(0, 400);
    ask.number = whole(state.n) ?? 0;
  }
  const view = {};
  if (whole(state.layer) < (where?.layers ?? 0)) view.layer = state.layer;
  if (whole(state.head) < (where?.heads ?? 0)) view.head = state.head;
  return [ask, { ...ask, ...view }];
};

const table = (context, looked) => {
  const { t, make } = context;
  const heads = ["sign", "probability", "most", "x", "y", "place", "driftWidths"];
  return make("details", { class: "reading-numbers" }, make("summary", { text: t("numbers") }),
    make("div", { class: "reading-scroll", tabindex: 0, role: "region", "aria-label": t("numbers") }, make("table", {},
      make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col", text: t(name) })))),
      make("tbody", {}, looked.characters.map((one) => make("tr", {}, make("th", { scope: "row" }, context.bidi(one.character)),
        [one.probability.toFixed(4), one.most.toFixed(4), one.centre[0].toFixed(4), one.centre[1].toFixed(4), one.place.toFixed(4),
          one.drift.toFixed(3).replace("-", "−")].map((text) => make("td", { class: "number", text }))))))));
};

const verdict = (context, looked) => {
  const { t, make } = context;
  const signs = looked.characters.map((one) => make("span", { class: "reading-sign", text: context.visible(one.character) }));
  const sure = { ctc: "sureCtc", queries: looked.how.rounds > 1 ? "sureQueries" : "sure" }[looked.how.kind] ?? "sure";
  const drawn = looked.drawn === null ? null : looked.drawn === looked.text
    ? make("p", { class: "reading-right", text: t("right") }) : make("p", { class: "reading-wrong" }, t("wrong", { text: context.visible(looked.drawn) }));
  const text = make("p", { class: "reading-text" }, signs.length ? make("bdi", {}, signs) : make("span", { quiet: t("nothing") }));
  return { signs, parts: [make("h2", { text: t("read") }), text, make("p", { quiet: t(sure, { p: percent(looked.confidence) }) }), drawn] };
};

// The heads side by side, for the character that is shown; each of them can be chosen.
const headsOf = (context, { data, shape, about }, own, choose) => {
  const { t, make, state } = context;
  const size = shape[2] * shape[3];
  const title = make("h2", {});
  const cards = about.places.map(([layer, head], index) => {
    const canvas = make("canvas", { "aria-hidden": true });
    const name = t("headName", { layer, head });
    const card = make("button", { class: "reading-chip", "aria-pressed": String(state.layer === layer && state.head === head), onclick: () => choose(layer, head, index) },
      canvas, make("span", { class: "reading-chip-line quiet", text: name }));
    return { canvas, card };
  });
  const box = make("section", { class: "card reading-heads" }, title, make("div", { class: "reading-chips" }, cards.map(({ card }) => card)));
  box.show = (number, character) => {
    title.textContent = t("heads", { character: context.visible(character) });
    cards.forEach(({ canvas }, index) => own.small.onto(canvas, data.subarray((index * shape[1] + number) * size, (index * shape[1] + number + 1) * size)));
  };
  return box;
};

const columnsOf = (context, { data, about }) => {
  const { t, make } = context;
  const name = (label) => (label === "" ? t("blank") : label);
  const map = context.matrix({
    label: t("columnsMap"), rows: about.labels.map(name), columns: about.path.map((label) => label || "·"), data, scale: 1, height: 320,
    say: (row, column, value) => [t("said", { column: column + 1, label: context.visible(name(about.labels[row])) }), make("b", { class: "number", text: context.shown(value) })],
  });
  return make("section", { class: "card reading-columns" }, make("h2", { text: t("columns") }), make("p", { quiet: t("columnsAbout") }), map,
    make("p", { class: "reading-path" }, make("span", { quiet: `${t("path")} ` }), make("bdi", {}, make("code", { text: about.path.map((label) => label || "·").join("") }))));
};

export default {
  name: "reading",
  recipe: "read-demo",
  styles: true,
  words,
  needs: (run) => run.task === "recognition",

  async show(place, context) {
    const { t, make, run, controls } = context;
    const where = run.heads.find((one) => one.kind === "cross");
    const message = make("p", { class: "wrong reading-message", role: "alert" });
    const result = make("div", { class: "reading-result" });
    let count = 0;
    const fail = (error) => {
      if (error.name === "AbortError") return;
      if (!(error instanceof Wrong)) throw error;
      [message.textContent, message.lang] = [error.whole, error.lang];
    };

    const look = async () => {
      count += 1;
      const mine = count;
      const [plain, ask] = question(context, where);
      result.setAttribute("aria-busy", "true");
      try {
        const looked = await context.json("/api/reading/look", ask);
        const several = where && where.layers * where.heads > 1;
        const [maps, heads, columns, image] = await Promise.all([
          context.floats("/api/reading/maps", ask), several ? context.floats("/api/reading/heads", plain) : null,
          looked.how.kind === "ctc" ? context.floats("/api/reading/columns", plain) : null, loaded(looked.picture)]);
        if (mine !== count || context.signal.aborted) return;
        message.textContent = "";
        draw(looked, maps, heads, columns, image);
      } catch (error) {
        if (mine === count) fail(error);
      } finally {
        if (mine === count) result.removeAttribute("aria-busy");
      }
    };
    const ask = (change) => {
      if (change.picture === null) box.forget();
      context.set({ ...change, at: null });
      return look();
    };

    const draw = (looked, maps, heads, columns, image) => {
      playing?.stop();
      const opened = result.querySelector("details")?.open;
      const { signs, parts } = verdict(context, looked);
      if (!looked.characters.length) {
        playing = null;
        image.alt = "";
        image.className = "reading-plain";
        result.replaceChildren(make("div", { class: "card" }, image, make("p", { quiet: t("empty") })), make("div", { class: "card" }, parts), ...(columns ? [columnsOf(context, columns)] : []));
        return;
      }
      let sheet = null;
      const scale = make("span", {});
      const own = film(context, {
        looked, maps, image, speed: context.state.speed ?? 1, onSpeed: (speed) => context.set({ speed: speed === 1 ? null : speed }),
        onShow: (number, byHand) => {
          signs.forEach((sign, index) => sign.classList.toggle("on", index === number));
          scale.textContent = t("scale", { most: context.shown(looked.characters[number].most) });
          sheet?.show(number, looked.characters[number].character);
          if (byHand) context.set({ at: number });
        },
      });
      playing = own;
      if (heads) sheet = headsOf(context, heads, own, async (layer, head, index) => {
        // once more lets go of it
        const again = context.state.layer === layer && context.state.head === head;
        await view(again ? { layer: null, head: null } : { layer, head });
        choosers.replaceChildren(...chooser());
        result.querySelectorAll(".reading-heads button")[index]?.focus();
      });
      const bar = make("canvas", { "aria-hidden": true });
      context.legend(bar);
      const about = make("p", { class: "quiet reading-about" }, t(looked.how.kind, { rounds: looked.how.rounds }), " ", t("marks"), " ", scale);
      const drift = looked.drift.mean === null ? "" : t("mean", { mean: context.shown(looked.drift.mean) });
      result.replaceChildren(
        make("section", { class: "card reading-main", "aria-label": t("title") }, own.element,
          make("div", { class: "legend" }, make("span", { text: "0" }), bar, make("span", { text: t("most") })), about, own.list, table(context, looked)),
        make("section", { class: "card reading-side" }, parts, own.facts, make("p", { class: "quiet reading-drift", text: `${drift}${looked.known ? "" : ` ${t("evenly")}`}` }), own.live),
        ...[sheet, columns && columnsOf(context, columns)].filter(Boolean));
      if (opened) result.querySelector("details").open = true;
      const at = whole(context.state.at);
      own.show(at ?? 0);
      if (at === undefined && !still()) own.begin();
    };

    const view = (change) => {
      context.set(change);
      return look();
    };
    const chooser = () => {
      const chosen = question(context, where)[1];
      return [
        where?.layers > 1 ? controls.select(t("layer"), [[null, t("allLayers")], ...controls.numbered(where.layers)], chosen.layer ?? null, (layer) => view({ layer })) : null,
        where?.heads > 1 ? controls.select(t("head"), [[null, t("allHeads")], ...controls.numbered(where.heads)], chosen.head ?? null, (head) => view({ head })) : null,
      ].filter(Boolean);
    };
    const choosers = make("div", { class: "row reading-view" }, chooser());
    let known = null;
    try {
      known = await context.json(`/api/reading/words?run=${encodeURIComponent(run.name)}`);
    } catch (error) {
      fail(error);
    }
    const box = input(context, { words: known, ask, fail });
    box.watch(place);
    (box.querySelector(".reading-word") ?? box).append(choosers);
    place.append(box, message, result);
    if (known || context.state.picture !== undefined) await look();
  },

  hide() {
    playing?.stop();
    playing = null;
  },
};
