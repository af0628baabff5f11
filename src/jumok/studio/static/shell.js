// The frame around all pages: which page is shown, for which run, in which language.
import { offline, Recorder, Wrong, asker } from "./asking.js";
import { contextFor } from "./context.js";
import { header } from "./header.js";
import { make } from "./text.js";
import { merged, read, write } from "./state.js";
import { take } from "./token.js";
import { LANGUAGES, PAGES, shellSpeaker, speaker } from "./words.js";

const view = document.getElementById("view");
const nav = document.getElementById("pages");
const notices = document.getElementById("notices");
const main = document.getElementById("main");
const moduleOf = (name) => (offline ? import(`studio/pages/${name}.js`) : import(`./pages/${name}.js`));

// The styles of a page, where it has some of its own; an offline page has them already.
const styled = (name) => new Promise((resolve) => {
  if (offline || document.getElementById(`styles-${name}`)) { resolve(); return; }
  const link = make("link", { rel: "stylesheet", id: `styles-${name}`, href: `static/pages/${name}.css`, onload: resolve, onerror: resolve });
  document.head.append(link);
});

const remembered = (key) => {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
};
const remember = (key, value) => {
  try {
    localStorage.setItem(key, value);
  } catch { /* a browser that keeps nothing */ }
};

const shell = { runs: [], page: "translate", state: {}, language: "en", recorder: new Recorder(), visit: null, module: null };
const t = (key, values) => shellSpeaker(shell.language)(key, values);

// ------------------------------------------------------------ what is said

// milliseconds after which what was wrong has been read, if something else is done
const READ = 2000;
const forget = (age = 0) => {
  for (const line of notices.querySelectorAll(".wrong")) if (performance.now() - line.since >= age) line.remove();
};
const notice = (text, kind = "", lang = null) => {
  for (const line of notices.querySelectorAll(".wrong")) if (line.querySelector("p").textContent === text) line.remove();
  const line = make("div", { class: `notice ${kind}` }, make("p", { text, lang }),
    make("button", { class: "small", "aria-label": t("close"), text: "×", onclick: () => line.remove() }));
  line.since = performance.now();
  notices.append(line);
  if (kind !== "wrong") setTimeout(() => line.remove(), 6000);
};
const complaint = (error) => make("div", { class: "complaint", role: "alert" },
  make("h2", { text: t("wrong") }), make("p", { text: error.message, lang: error.lang }),
  error.todo ? make("p", { class: "quiet" }, `${t("todo")}: `, make("span", { text: error.todo, lang: "en" })) : null);
const isLeft = (error) => error?.name === "AbortError";
addEventListener("unhandledrejection", (event) => {
  if (isLeft(event.reason)) event.preventDefault();
  else if (event.reason instanceof Wrong) {
    event.preventDefault();
    notice(event.reason.whole, "wrong", event.reason.lang);
    // a saved page goes back to what it holds
    if (offline && event.reason.message === t("absent")) {
      const { lang, theme } = shell.state;
      shell.state = merged(offline.state, { lang, theme });
      history.replaceState(null, "", address());
      show(true);
    }
  }
});

// ------------------------------------------------------------ where we are

const address = () => write(shell.page, shell.state);
const set = (more) => {
  forget(READ);
  shell.state = merged(shell.state, more);
  history.replaceState(null, "", address());
};
const go = ({ page = shell.page, ...state }) => {
  const kept = Object.fromEntries(["run", "lang", "theme"].filter((name) => name in shell.state).map((name) => [name, shell.state[name]]));
  const next = write(page, merged(kept, state));
  if (next === location.hash) route();
  else location.hash = next;
};
const runOf = (name) => shell.runs.find((run) => run.name === name);
const readable = () => shell.runs.filter((run) => run.state !== "damaged");

const route = async () => {
  const { page, state } = read(location.hash);
  const known = Object.hasOwn(PAGES, page);
  shell.page = known ? page : offline?.page ?? "translate";
  shell.state = state;
  if (Object.hasOwn(LANGUAGES, state.lang)) shell.language = state.lang;
  if (["light", "dark"].includes(state.theme)) setTheme(state.theme);
  await show();
  if (page && !known) notice(t("noPage", { page }), "wrong");
};

// `told`: what was said stays.
const show = async (told = false) => {
  if (told !== true) forget();
  shell.visit?.abort();
  shell.module?.hide?.();
  shell.module = null;
  const visit = new AbortController();
  Object.assign(shell, { visit, recorder: new Recorder() });
  document.documentElement.lang = shell.language;
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = t(element.dataset.word);
  drawNav();
  view.setAttribute("aria-busy", "true");
  const place = make("div", { class: "place" });
  try {
    // a run may have been started since, here or in a terminal
    const [{ default: module }] = await Promise.all([moduleOf(shell.page), listed(visit.signal)]);
    if (module.styles) await styled(shell.page);
    if (visit.signal.aborted) return;
    shell.module = module;
    const say = speaker(module.words, shell.language);
    const needs = module.needs ?? (() => true);
    const named = runOf(shell.state.run);
    // a page that has choosers of its own takes one that it can show
    const run = (module.chooses && named && !needs(named) ? null : named) ?? readable().find(needs) ?? named ?? shell.runs[0];
    if (shell.state.run && run && !named) {
      notice(t("noRun", { name: shell.state.run, run: run.title }), "wrong");
      shell.state = merged(shell.state, { run: run.name });
      history.replaceState(null, "", address());
    }
    document.title = `${say("title")} · jumok studio`;
    shell.header.draw(run);
    const lead = module.words.en.lead ? make("p", { class: "lead", text: say("lead") }) : null;
    view.replaceChildren(make("div", { class: "heading" }, make("h1", { text: say("title") }), lead), place);
    const fitting = readable().filter(needs);
    if (run && (run.state === "damaged" || !needs(run))) place.append(missing(run, fitting, say, module));
    else await module.show(place, contextFor({ ...parts(), run, signal: visit.signal, state: () => shell.state }, module.words));
  } catch (error) {
    if (visit.signal.aborted || isLeft(error)) return;
    if (!(error instanceof Wrong)) console.error(error);
    if (!place.isConnected) view.replaceChildren(place);
    place.prepend(complaint(error));
  }
  if (!visit.signal.aborted) view.removeAttribute("aria-busy");
};
const parts = () => ({
  language: shell.language, runs: shell.runs, recorder: shell.recorder, set, go, notice, refresh, link: (page, state = {}) => write(page, state),
});

// What a page says of a run that does not have what it shows: `missing` of its words says what has it, `recipe` which one can
// be trained to look at.
const missing = (run, fitting, say, { words, recipe }) => make("div", { class: "absent" },
  make("p", { text: run.state === "damaged" ? `${run.title}: ${t("damaged")}. ${run.problem ?? ""}` : t("unlike", { run: run.title }) }),
  words.en.missing ? make("p", { quiet: say("missing") }) : null,
  fitting.length ? make("p", {}, t("choose")) : recipe ? make("p", {}, t("trainThis"), " ", make("code", { text: `jumok train ${recipe} --minutes 3` })) : null,
  make("div", { class: "row" }, fitting.map((one) => make("button", { text: one.title, onclick: () => chooseRun(one.name) })),
    !fitting.length && recipe && !offline ? make("button", { class: "main", text: t("trainHere"), onclick: () => go({ page: "train", recipe, minutes: 3 }) }) : null));

// ------------------------------------------------------------ header and pages

const drawNav = () => {
  nav.setAttribute("aria-label", t("pages"));
  const kept = merged({}, { run: shell.state.run, lang: shell.state.lang, theme: shell.state.theme });
  const focused = nav.contains(document.activeElement);
  nav.replaceChildren(make("ul", {}, Object.entries(PAGES).filter(([name]) => !offline || name === shell.page).map(([name, titles]) => make("li", {},
    make("a", { href: write(name, kept), "aria-current": name === shell.page ? "page" : null, text: titles[shell.language] })))));
  const current = nav.querySelector("[aria-current]");
  if (focused) current?.focus();
  if (current) nav.scrollLeft = current.offsetLeft + current.offsetWidth / 2 - nav.clientWidth / 2;
};
const chooseRun = (name) => {
  shell.state = merged(shell.state, { run: name });
  history.pushState(null, "", address());
  show();
};
const chooseLanguage = (language) => {
  shell.language = language;
  remember("jumok-language", language);
  set({ lang: language });
  show();
};
const setTheme = (theme) => {
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("themechange"));
};
const chooseTheme = (theme) => {
  remember("jumok-theme", theme);
  setTheme(theme);
  set({ theme });
};
const listed = async (signal) => {
  if (!offline) shell.runs = (await asker(new Recorder(), t, signal).json("/api/runs")).runs;
};
// While a page is shown: the list of runs may have changed.
const refresh = async () => {
  await listed(new AbortController().signal);
  shell.header.list(runOf(shell.state.run) ?? shell.header.run);
  // one that has what the page shows may have come
  if (view.querySelector(".absent")) show();
};

const start = async () => {
  take();
  const kept = remembered("jumok-language");
  shell.language = Object.hasOwn(LANGUAGES, kept) ? kept : navigator.language?.startsWith("ko") ? "ko" : "en";
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  shell.header = header({ shell, t, chooseRun, chooseLanguage, chooseTheme, refresh, notice, address, view });
  if (offline) {
    shell.language = offline.language;
    shell.runs = offline.runs;
    history.replaceState(null, "", write(offline.page, offline.state));
    document.body.classList.add("offline");
    view.before(make("p", { class: "saved", text: `${t("offline")} ${offline.cut ? t("cut") : ""}` }));
  }
  addEventListener("hashchange", () => { take(); route(); });
  addEventListener("popstate", () => { if (address() !== location.hash) route(); });
  await route();
  if (!offline) shell.header.watchFirst();
};
start().catch((error) => {
  if (!(error instanceof Wrong)) console.error(error);
  view.replaceChildren(complaint(error));
});
