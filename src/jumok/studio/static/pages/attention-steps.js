// From q·k to Σ α v for one word that looks, with the model's own numbers.
import { clamp, reached, STEPS } from "../drawing.js";

// The element has show(answer, {ablated, piece}), say(text) and clear().
export const stepsOf = (context) => {
  const { make, t, shown, bidi, stamp, colour } = context;
  const readout = make("p", { class: "quiet attention-said number", text: t("strips"), "aria-live": "polite" });
  const inside = make("div", { class: "attention-steps" });
  const box = make("div", {}, inside, readout);

  // A vector as a strip of colours; pointing tells the number, or arrow keys. Tab goes to one strip, up and down to the others.
  const strips = () => [...inside.querySelectorAll(".attention-strip")];
  inside.addEventListener("keydown", (event) => {
    const all = strips(), from = all.indexOf(event.target), step = STEPS[event.key]?.[0];
    if (from < 0 || !step) return;
    event.preventDefault();
    all[clamp(from + step, 0, all.length - 1)].focus();
  });
  inside.addEventListener("focusin", ({ target }) => {
    if (target.matches(".attention-strip")) for (const one of strips()) one.tabIndex = one === target ? 0 : -1;
  });
  const strip = (name, values, scale, token) => {
    const picture = stamp(values, 1, values.length, { signed: true, scale, most: 4096 });
    picture.classList.add("attention-strip");
    picture.removeAttribute("aria-hidden");
    picture.role = "img";
    picture.ariaLabel = token === undefined ? name : `${name}, ${context.visible(token)}`;
    reached(picture, 1, values.length, (x) => [0, clamp(Math.floor(x * values.length), 0, values.length - 1)], (cell) => {
      readout.textContent = cell ? t("number", { name, place: cell[1], value: shown(values[cell[1]]) }) : t("strips");
    });
    return picture;
  };
  const largest = (...vectors) => vectors.flat(2).reduce((most, one) => Math.max(most, Math.abs(one)), 0) || 1;
  const number = (value) => make("td", { class: "number", title: value === null ? "−∞" : String(Math.fround(value)), text: value === null ? "−∞" : shown(value) });
  const bar = (weight) => make("td", { class: "attention-bar" },
    make("span", { class: "attention-meter", style: { width: `${Math.max(0, Math.min(1, weight)) * 96}px`, background: colour(weight) }, "aria-hidden": true }),
    make("span", { class: "number", title: String(Math.fround(weight)), text: shown(weight) }));
  const heading = (text, more = {}) => make("th", { scope: "col", text, ...more });
  const line = (symbol, formula, picture) => make("div", { class: "attention-line" },
    make("b", { text: symbol }), picture, make("span", { quiet: formula ?? "" }));

  const ofHead = (answer) => {
    const { keys, formulas } = answer;
    const [mostK, mostV] = [largest(answer.q, keys.map((one) => one.k)), largest(answer.value, keys.map((one) => one.v))];
    const biased = "biased" in (keys[0] ?? {});
    const table = make("table", {},
      make("thead", {}, make("tr", {}, heading(t("key")), heading("k"), heading(t("dot")), heading(t("scaled")),
        biased ? heading(t("biased")) : null, heading(t("masked")), heading(t("weight")), heading("v"))),
      make("tbody", {}, keys.map((one) => make("tr", { class: one.masked === null ? "attention-masked" : "" },
        make("th", { scope: "row" }, bidi(one.key)), make("td", {}, strip("k", one.k, mostK, one.key)), number(one.dot), number(one.scaled),
        biased ? number(one.biased) : null, number(one.masked), bar(one.weight), make("td", {}, strip("v", one.v, mostV, one.key))))));
    return [
      line("q", formulas.q, strip("q", answer.q, mostK)),
      make("div", { class: "attention-scroll", tabindex: 0, role: "region", "aria-label": t("steps") }, table),
      answer.count > keys.length ? make("p", { quiet: t("most", { n: keys.length, all: answer.count }) }) : null,
      line(t("values"), t("sum"), strip("Σ", answer.value, mostV)),
    ];
  };

  // The six steps of a recurrent model: what has a number for each key side by side, then vectors, then the words.
  const ofState = ({ steps }) => {
    const [byKey, rest] = [steps.slice(0, 2), steps.slice(2)];
    const table = make("table", {},
      make("thead", {}, make("tr", {}, heading(t("key")), byKey.map((step) => heading(step.symbol, { title: step.formula })))),
      make("tbody", {}, byKey[0].labels.map((label, place) => make("tr", {},
        make("th", { scope: "row" }, bidi(label)), number(byKey[0].values[place]), bar(byKey[1].values[place] ?? 0)))));
    return [
      make("p", { quiet: byKey.map((step) => step.formula).join(",  ") }),
      make("div", { class: "attention-scroll", tabindex: 0, role: "region", "aria-label": t("steps") }, table),
      rest.map((step) => (step.labels.length
        ? make("div", { class: "attention-line" }, make("b", { text: step.symbol }), make("div", { class: "attention-words" },
          step.labels.map((label, place) => make("span", {}, bidi(label), " ", make("span", { class: "number quiet", text: shown(step.values[place]) })))),
        make("span", { quiet: step.formula }))
        : line(step.symbol, step.formula, strip(step.symbol, step.values, largest(step.values))))),
    ];
  };

  box.show = (answer, { ablated, piece }) => {
    inside.replaceChildren(...[
      piece ? make("p", { class: "quiet" }, t("piece", { token: context.visible(piece) })) : null,
      ablated ? make("p", { class: "attention-warning", text: t("ablated") }) : null,
      ...(answer.steps ? ofState(answer) : ofHead(answer)),
    ].flat(Infinity).filter(Boolean));
    strips().forEach((one, index) => { one.tabIndex = index ? -1 : 0; });
    readout.hidden = false;
  };
  box.say = (text) => {
    inside.replaceChildren(make("p", { quiet: text }));
    readout.hidden = true;
  };
  return box;
};
