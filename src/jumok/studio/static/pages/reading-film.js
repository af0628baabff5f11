// The film: character by character, where it looked, over the picture; played, stepped, pointed at.
import { reached } from "../drawing.js";
import { marks, painter } from "./reading-paint.js";

// milliseconds: a character can be read
const STEP = 900;
const SPEEDS = [[0.5, "½×"], [1, "1×"], [2, "2×"], [4, "4×"]];
const UNSURE = 0.5;
const percent = (p) => `${(100 * p).toFixed(1)} %`;

// looked: what /api/reading/look told; maps: {data, shape: [n, h, w]}; image: loaded.
// The element has show(number), stop(), begin(); whenever another character is shown, onShow(number, byHand).
export const film = (context, { looked, maps, image, speed, onShow, onSpeed }) => {
  const { t, make, shown } = context;
  const { characters } = looked;
  const [rows, columns] = looked.grid;
  const cells = rows * columns;
  const valuesOf = (number) => maps.data.subarray(number * cells, (number + 1) * cells);
  const large = painter(image, looked.grid, looked.box, 1200, context.channels);
  const small = painter(image, looked.grid, looked.box, 240, context.channels);
  const state = { at: 0, timer: 0, speed: SPEEDS.some(([one]) => one === speed) ? speed : 1 };

  const stage = make("canvas", { class: "reading-stage", role: "img", tabindex: 0 });
  // what is drawn, for who wants the numbers
  stage.maps = maps;
  stage.style.maxWidth = `${Math.max(160, Math.round((image.naturalWidth / image.naturalHeight) * 300))}px`;
  const pointed = make("dd", { class: "number reading-pointed" });
  const button = (text, label, act, kind = "") => make("button", { class: kind, text, "aria-label": label, title: label, onclick: act });
  const play = make("button", { class: "main reading-play", onclick: () => (state.timer ? own.stop() : start()) });
  const bar = make("div", { class: "row reading-controls" },
    button("◀", t("back"), () => step(state.at - 1)), play, button("▶", t("on"), () => step(state.at + 1)),
    context.controls.segmented(t("speed"), SPEEDS, state.speed, (value) => { state.speed = value; onSpeed(value); }),
    make("p", { class: "quiet reading-keys" }, make("kbd", { text: "Space" }), ` ${t("keys")} · `, make("kbd", { text: "←" }), " ", make("kbd", { text: "→" }), ` ${t("keysStep")}`));
  const box = make("div", { class: "reading-film", role: "group", tabindex: 0, "aria-label": t("film", { text: looked.text }) }, stage, bar);

  const chips = characters.map((one, number) => {
    const canvas = make("canvas", { "aria-hidden": true });
    small.onto(canvas, valuesOf(number));
    return make("button", {
      class: `reading-chip${one.probability < UNSURE ? " unsure" : ""}`, "aria-pressed": "false",
      "aria-label": `${number + 1}: ${context.visible(one.character)}, ${percent(one.probability)}`, onclick: () => step(number),
    }, canvas, make("span", { class: "reading-chip-line" }, context.bidi(one.character, { class: "reading-chip-sign" }),
      make("span", { class: "reading-chip-sure number", text: percent(one.probability) })),
    make("span", { class: "reading-gauge" }, make("span", { style: { width: `${100 * one.probability}%` } })));
  });
  const list = make("div", { class: "reading-chips", role: "group", "aria-label": t("characters") }, chips);
  const facts = make("dl", { class: "reading-facts" });
  const live = make("p", { class: "hidden", "aria-live": "polite" });

  const own = { element: box, list, facts, live, chips, small, valuesOf };
  own.show = (number, byHand = false) => {
    state.at = Math.min(Math.max(number, 0), characters.length - 1);
    const one = characters[state.at];
    paint();
    stage.setAttribute("aria-label", t("stage", { character: context.visible(one.character) }));
    chips.forEach((chip, index) => chip.setAttribute("aria-pressed", index === state.at));
    tell(one);
    if (byHand) live.textContent = `${context.visible(one.character)}: ${percent(one.probability)}`;
    onShow(state.at, byHand);
  };
  const paint = () => {
    const { centre, place } = characters[state.at];
    large.onto(stage, valuesOf(state.at));
    marks(stage, centre, place, (7 * large.width) / (stage.clientWidth || 720));
    if (state.byKey) large.frame(stage, state.cell);
  };
  const weigh = () => { pointed.textContent = shown(state.cell && valuesOf(state.at)[state.cell[0] * columns + state.cell[1]]); };
  const tell = (one) => {
    const fact = (name, value) => [make("dt", { text: name }), value instanceof Node ? value : make("dd", { class: "number", text: value })];
    weigh();
    facts.replaceChildren(...[
      fact(t("character", { number: state.at + 1, count: characters.length }), make("dd", { class: "reading-now" }, context.bidi(one.character))),
      fact(t("probability"), percent(one.probability)),
      fact(t("most"), shown(one.most)),
      fact(t("centre"), `${one.centre.map((x) => x.toFixed(3)).join(", ")}`),
      fact(t("drift"), shown(one.drift)),
      fact(t("pointed"), pointed),
    ].flat());
  };
  const step = (number) => {
    own.stop();
    own.show(number, true);
  };
  const tick = () => {
    if (state.at >= characters.length - 1) {
      own.stop();
      onShow(state.at, true);
      return;
    }
    own.show(state.at + 1);
    state.timer = setTimeout(tick, STEP / state.speed);
  };
  const start = () => {
    own.show(state.at >= characters.length - 1 ? 0 : state.at);
    state.timer = setTimeout(tick, STEP / state.speed);
    named();
  };
  const named = () => { play.textContent = state.timer ? `❚❚ ${t("stop")}` : `▶ ${t("play")}`; };
  own.begin = start;
  own.stop = () => {
    clearTimeout(state.timer);
    state.timer = 0;
    named();
  };
  reached(stage, rows, columns, large.cellAt, (cell, byKey = false) => {
    const drawn = byKey || state.byKey;
    Object.assign(state, { cell, byKey });
    weigh();
    if (byKey) live.textContent = `${cell.join(", ")}: ${pointed.textContent}`;
    if (drawn) paint();
  });
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input")) return;
    const goal = { ArrowLeft: state.at - 1, ArrowRight: state.at + 1, Home: 0, End: characters.length - 1 }[event.key];
    if (goal !== undefined) step(goal);
    else if (event.key === " " && !event.target.matches("button")) play.click();
    else return;
    event.preventDefault();
  });
  context.signal.addEventListener("abort", own.stop);
  own.stop();
  return own;
};
