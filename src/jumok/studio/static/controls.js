// Small parts with labels, all of them reached and used by keyboard: real inputs of the browser underneath.
import { make } from "./text.js";

let count = 0;
const fresh = () => `control-${(count += 1)}`;
// names: ["a", "b"], where each is its own value, or [["value", "text"], …]
const pairs = (names) => names.map((one) => (Array.isArray(one) ? one : [one, String(one)]));

// 0, 1, … as names
export const numbered = (count) => Array.from({ length: count }, (_, index) => [index, String(index)]);

// Other parts into a bar; the input that has the focus keeps it.
export const refill = (bar, ...parts) => {
  const focused = [...bar.querySelectorAll("input")].indexOf(document.activeElement);
  bar.replaceChildren(...parts.filter(Boolean));
  if (focused >= 0) bar.querySelectorAll("input")[focused]?.focus();
};

// One of a few: act(value). Arrow keys move, as in any group of radio buttons.
export const segmented = (label, names, chosen, act) => {
  const group = fresh();
  return make("fieldset", { class: "segmented" },
    make("legend", { text: label }),
    make("div", { class: "segments" }, pairs(names).map(([value, text], index) => {
      const input = make("input", { type: "radio", name: group, id: `${group}-${index}`, onchange: () => act(value) });
      input.checked = value === chosen;
      return make("span", { class: "segment" }, input, make("label", { for: input.id, text }));
    })));
};

// A number: act(value) while it moves. The element has set(value, max?).
export const slider = (label, { min, max, step = 1, value, shown = String }, act) => {
  const id = fresh();
  const output = make("output", { for: id });
  const tell = () => {
    output.textContent = shown(input.valueAsNumber);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  const input = make("input", {
    type: "range", id, min, max, step,
    oninput: () => {
      tell();
      act(input.valueAsNumber);
    },
  });
  input.value = value;
  tell();
  const box = make("div", { class: "slider" }, make("label", { for: id, text: label }), input, output);
  box.set = (other, most = input.max) => {
    input.max = most;
    input.value = other;
    tell();
  };
  return box;
};

// On or off: act(true or false).
export const toggle = (label, on, act) => {
  const id = fresh();
  const input = make("input", { type: "checkbox", role: "switch", id, onchange: () => act(input.checked) });
  input.checked = Boolean(on);
  return make("div", { class: "toggle" }, input, make("label", { for: id, text: label }));
};

// One of many: act(value).
export const select = (label, names, chosen, act) => {
  const id = fresh();
  const known = pairs(names);
  const input = make("select", { id, onchange: () => act(known[input.selectedIndex][0]) },
    known.map(([, text]) => make("option", { text })));
  input.selectedIndex = Math.max(0, known.findIndex(([value]) => value === chosen));
  return make("div", { class: "select" }, make("label", { for: id, text: label }), input);
};

// A line of text: act(text) with Enter, or when it is left changed. `attributes` go to the input (lang, placeholder …).
export const field = (label, value, act, attributes = {}) => {
  const id = fresh();
  const input = make("input", { type: "text", id, spellcheck: "false", autocomplete: "off", ...attributes });
  input.value = value ?? "";
  input.addEventListener("change", () => act(input.value));
  return make("div", { class: "field" }, make("label", { for: id, text: label }), input);
};

// A button: act(). `kind`: "main" for the one that matters most.
export const button = (text, act, kind = "") => make("button", { class: kind, text, onclick: () => act() });
