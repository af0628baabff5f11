// The bar above all pages: which run, how far the first one is, language, theme, export.
import { asker, offline, Recorder } from "./asking.js";
import { segmented } from "./controls.js";
import { exported } from "./export.js";
import { make } from "./text.js";
import { LANGUAGES } from "./words.js";

// milliseconds
const POLL = 1000;

export const header = ({ shell, t, chooseRun, chooseLanguage, chooseTheme, refresh, notice, address, view }) => {
  const chooser = document.getElementById("chooser");
  const first = document.getElementById("first");
  const tools = document.getElementById("tools");
  const result = { run: null };

  const runs = (run) => {
    const select = make("select", { id: "run", onchange: () => chooseRun(shell.runs[select.selectedIndex].name) },
      shell.runs.map((one) => make("option", { text: one.state === "damaged" ? `${one.title} (${t("damaged")})` : one.title })));
    select.selectedIndex = shell.runs.findIndex((one) => one.name === run?.name);
    select.disabled = Boolean(offline);
    return [make("label", { for: "run", text: t("run") }), select];
  };

  // While a page is shown; a list that somebody has open is not taken away for nothing.
  result.list = (run) => {
    const [now, focused] = [runs(run), chooser.contains(document.activeElement)];
    if (now.map((one) => one.textContent).join("") === chooser.textContent) return;
    chooser.replaceChildren(...now);
    if (focused) now[1].focus();
  };

  const menu = () => {
    const kinds = offline ? ["png", "svg"] : ["png", "svg", "html"];
    const save = async (kind) => {
      box.open = false;
      summary.focus();
      const name = await exported(kind, { view, shell, t });
      notice(t("saved", { name }));
    };
    const copy = async () => {
      box.open = false;
      await navigator.clipboard.writeText(new URL(address(), location.href).href);
      notice(t("copied"));
    };
    const summary = make("summary", { text: t("export") });
    const box = make("details", { class: "menu" }, summary, make("div", { class: "items" },
      kinds.map((kind) => make("button", { text: t(kind), onclick: () => save(kind) })),
      offline ? null : make("button", { text: t("link"), onclick: copy })));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { box.open = false; summary.focus(); }
    });
    box.addEventListener("focusout", (event) => { if (!box.contains(event.relatedTarget)) box.open = false; });
    return box;
  };

  result.draw = (run) => {
    result.run = run;
    const focused = document.activeElement?.closest("[data-part]")?.dataset.part;
    chooser.replaceChildren(...runs(run));
    chooser.dataset.part = "run";
    const theme = make("button", { class: "theme", role: "switch", "aria-label": t("theme"), title: t("theme"),
      "aria-checked": String(document.documentElement.dataset.theme === "dark"),
      onclick: () => {
        const dark = document.documentElement.dataset.theme !== "dark";
        chooseTheme(dark ? "dark" : "light");
        theme.setAttribute("aria-checked", dark);
      } });
    const part = (name, element) => { element.dataset.part = name; return element; };
    tools.replaceChildren(part("language", segmented(t("language"), Object.entries(LANGUAGES), shell.language, chooseLanguage)),
      part("theme", theme), part("export", menu()));
    if (focused) document.querySelector(`[data-part="${focused}"]`)?.querySelector("select, input:checked, summary")?.focus();
  };

  // The run that is trained on first start: polled until it is there.
  result.watchFirst = async () => {
    const { json } = asker(new Recorder(), t, new AbortController().signal);
    const bar = make("progress", { max: 100, "aria-labelledby": "first-text" });
    const text = make("span", { id: "first-text" });
    let seen = false;
    for (;;) {
      const told = await json("/api/first").catch(() => ({ state: "none" }));
      if (told.state === "none") break;
      if (told.state === "failed") { notice(t("failed", { message: told.message }), "wrong"); break; }
      if (told.state === "ready") {
        if (seen) { await refresh(); notice(t("ready")); }
        break;
      }
      seen = true;
      const share = Math.round(100 * told.share);
      if (told.state === "training") bar.value = share;
      text.textContent = told.state === "training" ? t("training", { share }) : t("starting");
      if (first.hidden) first.replaceChildren(text, bar);
      first.hidden = false;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
    first.hidden = true;
  };
  return result;
};
