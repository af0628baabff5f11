// The token for what starts or stops runs: from the address into this tab's memory, and out of the address at once.
import { make } from "./text.js";

const KEY = "jumok-token";
let held = null;

export const keep = (token) => {
  held = token;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch { /* a browser that keeps nothing: then until the page is left */ }
};

export const token = () => {
  if (held) return held;
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
};

// Called before anything else looks at the address.
export const take = () => {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  keep(found[1]);
  history.replaceState(null, "", `${location.pathname}#/translate`);
};

// A dialog that asks for it; null where nobody gives it.
export const ask = (t, wrong) => new Promise((resolve) => {
  const field = make("input", { type: "password", autocomplete: "off", spellcheck: "false", id: "token-field" });
  let given = null;
  const dialog = make("dialog", { class: "asking", "aria-labelledby": "token-title" },
    make("form", { method: "dialog", onsubmit: () => { given = field.value.trim().replace(/^.*#token=/, ""); } },
      make("h2", { id: "token-title", text: t("tokenTitle") }),
      make("p", { text: t("tokenAsk") }),
      wrong ? make("p", { class: "wrong", role: "alert", text: t("tokenWrong") }) : null,
      make("label", { for: "token-field", text: t("tokenField") }), field,
      make("div", { class: "row end" },
        make("button", { text: t("cancel"), onclick: () => dialog.close() }),
        make("button", { type: "submit", class: "main", text: t("tokenUse") }))));
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (given) keep(given);
    resolve(given || null);
  });
  document.body.append(dialog);
  dialog.showModal();
});
