// The form that starts a recipe, and the list of runs with what can be done to each.
import { palette } from "../plot.js";

export const startForm = async (context, started) => {
  const { make, t, controls } = context;
  const { recipes } = await context.json("/api/train/recipes");
  const names = recipes.map(({ name }) => name);
  const chosen = () => (names.includes(context.state.recipe) ? context.state.recipe : names.includes("demo-transformer") ? "demo-transformer" : names[0]);
  const about = make("p", { class: "quiet train-about" });
  const tell = () => {
    const one = recipes.find(({ name }) => name === chosen());
    about.replaceChildren(make("span", { lang: "en", text: one.about }), make("br"), make("code", { text: `jumok recipes ${one.name}` }));
  };
  const text = (label, key, attributes) => controls.field(label, context.state[key] ?? "", (value) => context.set({ [key]: value.trim() || null }), attributes);
  const overrides = text(t("overrides"), "keys", { placeholder: "model.width=64 training.updates=500", "aria-describedby": "train-hint" });
  const minutes = text(t("minutes"), "minutes", { inputmode: "decimal", placeholder: "–", "aria-describedby": "train-minutes" });
  const seed = text(t("seed"), "seed", { inputmode: "numeric", placeholder: "1" });
  const value = (box) => box.querySelector("input").value.trim();
  const go = make("button", { type: "submit", class: "main", text: t("go") });
  const form = make("form", {
    class: "card train-form", "aria-labelledby": "train-start",
    onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        const { run } = await context.act("/api/train/start", {
          recipe: chosen(), overrides: value(overrides).split(/\s+/).filter(Boolean),
          ...(value(minutes) ? { minutes: Number(value(minutes).replace(",", ".")) } : {}),
          ...(value(seed) ? { seed: Number(value(seed)) } : {}),
        });
        context.notice(t("started", { run }));
        started(run);
      } finally {
        go.disabled = false;
      }
    },
  },
  make("h2", { id: "train-start", text: t("start") }),
  make("div", { class: "train-fields" },
    controls.select(t("recipe"), names, chosen(), (recipe) => { context.set({ recipe }); tell(); }), overrides, minutes, seed, go),
  about,
  make("p", { class: "quiet train-hint", id: "train-hint", text: t("overridesHint") }),
  make("p", { class: "quiet train-hint", id: "train-minutes", text: `${t("minutes")}: ${t("minutesHint")}. ${t("into", { count: 2 })}` }));
  tell();
  return form;
};

// parts: {isShown(name), index(name), toggle(name, on), changed()}
export const runList = (context, parts) => {
  const { make, t } = context;
  const body = make("ul", { class: "train-runs" });
  // kept between updates, so that what has the focus keeps it
  const rows = new Map();
  const acted = async (button, path, run, word) => {
    button.disabled = true;
    try {
      await context.act(path, { run });
      context.notice(t(word, { run }));
      parts.changed();
    } finally {
      button.disabled = false;
    }
  };
  const row = (name) => {
    const box = make("input", { type: "checkbox", id: `train-show-${rows.size}`, "aria-label": t("shown", { run: name }), onchange: () => parts.toggle(name, box.checked) });
    const swatch = make("span", { class: "train-swatch", "aria-hidden": true });
    const label = make("label", { class: "train-name", for: box.id });
    const badge = make("span", { class: "train-state" });
    const about = make("span", { class: "quiet number train-about-run" });
    const bar = make("progress", { max: 1, "aria-label": t("runs") });
    const stop = make("button", { class: "small", text: t("stop"), "aria-label": t("stopOf", { run: name }), onclick: () => acted(stop, "/api/train/stop", name, "stopping") });
    const resume = make("button", { class: "small", text: t("resume"), "aria-label": t("resumeOf", { run: name }), onclick: () => acted(resume, "/api/train/resume", name, "resumed") });
    const element = make("li", {}, box, swatch, label, badge, about, bar, make("span", { class: "train-acts" }, stop, resume));
    return { element, box, swatch, label, badge, about, bar, stop, resume };
  };
  const update = (runs) => {
    for (const run of runs) {
      if (!rows.has(run.name)) rows.set(run.name, row(run.name));
      const { element, box, swatch, label, badge, about, bar, stop, resume } = rows.get(run.name);
      if (element.parentElement !== body) body.append(element);
      const on = parts.isShown(run.name);
      box.checked = on;
      swatch.style.background = on ? palette(parts.index(run.name)) : "transparent";
      label.replaceChildren(make("bdi", { text: run.title || run.name }));
      badge.textContent = t(`state_${run.state}`);
      badge.className = `train-state train-${run.state}`;
      const done = (run.updates ?? 0).toLocaleString(context.language), planned = run.planned?.toLocaleString(context.language);
      about.textContent = [
        run.problem ?? (planned ? t("updates", { done, planned }) : run.updates ? t("updatesOnly", { done }) : ""),
        (run.best ?? null) === null ? "" : t("best", { metric: run.metric, value: context.shown(run.best) }),
      ].filter(Boolean).join(" · ");
      bar.hidden = !["running", "starting", "stopping"].includes(run.state);
      if (run.planned) bar.value = Math.min(1, run.updates / run.planned);
      else bar.removeAttribute("value");
      bar.setAttribute("aria-label", t("updates", { done, planned: planned ?? "?" }));
      stop.hidden = !(run.job && run.job.state === "running");
      resume.hidden = !run.resumable;
    }
    for (const [name, { element }] of rows) {
      if (!runs.some((run) => run.name === name)) {
        element.remove();
        rows.delete(name);
      }
    }
  };
  return { element: body, update };
};
