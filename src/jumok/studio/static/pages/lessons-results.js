// The result of an experiment, stored or measured here, with its verdicts and its figure; and to run it.

export const resultPart = (context, lesson, changed) => {
  const { make, t, controls } = context;
  const results = () => lesson.results;
  const chosen = () => results().find(({ origin }) => origin === context.state.result) ?? results()[0];
  const nameOf = ({ origin, effort, seeds }) => (
    origin === "stored" ? t("stored") : effort === 1 ? t("own", { count: seeds.length }) : t("look", { effort }));

  // ------------------------------------------------------------ what was found

  const figure = make("img", { class: "lessons-figure", alt: t("figure", { title: lesson.title }) });
  let turn = 0;
  const draw = async () => {
    const mine = (turn += 1);
    const { origin, stamp } = chosen();
    const { png } = await context.json("/api/lessons/picture", { name: lesson.name, origin, stamp, dark: context.theme === "dark" });
    if (mine === turn) figure.src = `data:image/png;base64,${png}`;
  };
  document.addEventListener("themechange", () => draw().catch(() => {}), { signal: context.signal });

  const verdict = ({ claim, said, holds, because, alone }) => make("li", {},
    make("span", { class: `lessons-badge ${holds ? "lessons-holds" : "lessons-fails"}`, text: t(holds ? "holds" : "fails") }),
    make("div", {},
      make("p", { class: "lessons-claim", text: said ?? claim, lang: said ? context.language : "en" }),
      make("p", { class: "quiet lessons-because", lang: "en", text: because }),
      alone.length ? make("p", { class: "quiet lessons-because", text: t("alone", { held: alone.filter(Boolean).length, of: alone.length }) }) : null));

  const head = make("div", { class: "bar" });
  const notes = make("p", { class: "quiet" });
  const verdicts = make("ul", { class: "lessons-verdicts" });
  const show = async () => {
    const one = chosen();
    head.replaceChildren(...(results().length > 1
      ? [controls.segmented(t("origin"), results().map((each) => [each.origin, nameOf(each)]), one.origin, (origin) => { context.set({ result: origin }); show(); })]
      : [make("span", { quiet: `${t("origin")}: ${nameOf(one)}` })]));
    notes.textContent = [one.effort < 1 ? t("firstLook") : "", one.other_code ? t("other") : ""].filter(Boolean).join(" ");
    notes.hidden = !notes.textContent;
    verdicts.replaceChildren(...one.verdicts.map(verdict));
    await draw();
  };

  // ------------------------------------------------------------ running it

  const number = (key, low, high, usual) => (typeof context.state[key] === "number" && context.state[key] >= low && context.state[key] <= high ? context.state[key] : usual);
  const percent = (value) => `${Math.round(value * 100)} %`;
  const command = make("code");
  const options = () => ({ seeds: number("seeds", 1, 5, 1), effort: number("effort", 0.05, 1, 1) });
  const tell = () => {
    const { seeds, effort } = options();
    command.textContent = `jumok lab run ${lesson.name}${seeds > 1 ? ` --seeds ${seeds}` : ""}${effort < 1 ? ` --effort ${effort}` : ""}`;
  };
  const set = (key) => (value) => {
    context.set({ [key]: value });
    tell();
  };
  const state = make("p", { class: "lessons-state", role: "status" });
  const bar = make("progress", { max: 1, hidden: true, "aria-label": t("run") });
  const printed = make("pre", { class: "lessons-console", tabindex: 0, role: "log", "aria-label": t("prints"), hidden: true });
  const go = make("button", { class: "main", text: t("go"), onclick: async () => {
    go.disabled = true;
    try {
      await context.act("/api/lessons/run", { name: lesson.name, ...options() });
    } catch (error) {
      go.disabled = false;
      throw error;
    }
  } });
  const stop = make("button", { text: t("stop"), hidden: true, onclick: () => context.act("/api/lessons/stop", { name: lesson.name }) });
  let was = null;
  const hear = async (job) => {
    const runs = ["running", "stopping"].includes(job.state);
    go.disabled = runs;
    stop.hidden = job.state !== "running";
    bar.hidden = !runs;
    if (job.of) bar.value = job.done / job.of;
    else bar.removeAttribute("value");
    state.textContent = runs ? t(job.of ? "running" : "starting", { done: job.done, of: job.of, seconds: job.seconds ?? 0 })
      : { stopped: t("stopped"), failed: t("failed"), done: was ? t("arrived") : "" }[job.state] ?? "";
    printed.hidden = !(runs || job.state === "failed") || !job.lines.length;
    printed.textContent = job.lines.join("\n");
    printed.scrollTop = printed.scrollHeight;
    if (was && !runs) {
      Object.assign(lesson, await context.json("/api/lessons/lesson", { name: lesson.name, language: context.language }));
      if (job.state === "done") context.set({ result: null });
      await show();
      changed();
    }
    was = runs;
  };
  // the stored one knows how long it takes
  const one = lesson.results.at(-1);
  const seconds = Math.round(one.seconds / one.seeds.length);
  const running = make("section", { class: "card", "aria-labelledby": "lessons-run" },
    make("h3", { id: "lessons-run", text: t("run") }), make("p", { text: t("runLead", { seconds }) }),
    make("div", { class: "bar" },
      controls.slider(t("seeds"), { min: 1, max: 5, value: options().seeds }, set("seeds")),
      controls.slider(t("effort"), { min: 0.05, max: 1, step: 0.05, value: options().effort, shown: percent }, set("effort")), go, stop),
    make("div", { class: "row" }, bar, state), printed,
    make("p", { class: "quiet lessons-command" }, `${t("command")} `, command));
  tell();
  if (lesson.job) hear(lesson.job);
  context.events(`/api/lessons/events?name=${encodeURIComponent(lesson.name)}`, ({ job }) => hear(job));

  const shown = make("section", { class: "card", "aria-labelledby": "lessons-result" },
    make("h3", { id: "lessons-result", text: t("result") }), head, notes, verdicts,
    make("div", { class: "lessons-frame", tabindex: 0, role: "group", "aria-label": t("figure", { title: lesson.title }) }, figure),
    make("p", { class: "lessons-reading" }, make("b", { text: `${t("read")}. ` }), lesson.read));
  return { element: make("div", { class: "lessons-parts" }, shown, running), show };
};
