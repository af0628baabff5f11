// How text and numbers get into the page: as text, never as HTML.

// make("button", {class: "go", text: "Go", onclick: act, "aria-label": "…", disabled: true}, child, "more text")
// make("p", {quiet: "By the way"}): a text that is less than the others
export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  // one that says nothing else submits no form
  if (tag === "button") element.type = "button";
  for (const [name, value] of Object.entries(attributes)) {
    if ((value ?? false) === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else if (name === "quiet") [element.className, element.textContent] = ["quiet", value];
    else if (name.startsWith("on") && typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => (child ?? false) !== false));
  return element;
};

const NAMED = { "\n": "⏎", "\t": "⇥", "\r": "␍", " ": "␣", "\u00a0": "⍽", "\u3000": "␣" };
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\n\t\r]/gu;

// A token as people can see it: spaces at its ends, controls and direction marks written out.
export const visible = (token) => {
  const text = String(token)
    .replace(/^[ \u00a0\u3000]+|[ \u00a0\u3000]+$/g, (spaces) => [...spaces].map((one) => NAMED[one]).join(""))
    .replace(HIDDEN, (one) => NAMED[one] ?? `⟨${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
  return text === "" ? "∅" : text;
};

// A token as an element of its own direction.
export const bidi = (token, attributes = {}) => make("bdi", { ...attributes, text: visible(token) });

// A number as people read it: three digits that count, and a real minus.
export const shown = (x) => {
  if (Number.isNaN(x ?? NaN)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  let text = "0";
  if (size !== 0 && (size < 0.0005 || size >= 1e6)) text = size.toExponential(2).replace("e-", "e−").replace("e+", "e");
  else if (size >= 100) text = size.toFixed(Number.isInteger(size) || size >= 1000 ? 0 : 1);
  else if (size >= 10) text = size.toFixed(Number.isInteger(size) ? 0 : 1);
  else if (size >= 1) text = size.toFixed(Number.isInteger(size) ? 0 : 2);
  else if (size !== 0) text = size.toFixed(3);
  return x < 0 && /[1-9]/.test(text) ? `−${text}` : text;
};
