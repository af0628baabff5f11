// Runs as they learn: their curves grow line by line; a recipe is started, stopped and resumed.
import { plot } from "../plot.js";
import { checkpointView } from "./train-attention.js";
import { runList, startForm } from "./train-start.js";
import words from "../words/train.json" with { type: "json" };

const MOST = 12;
const ALIVE = ["running", "starting", "stopping"];
const NOT_SHOWN = ["learning_rate", "tokens_per_second", "gradient_norm", "memory", "mfu", "loss"];

export default {
  name: "train",
  styles: true,
  words,
  needs: () => true,

  async show(place, context) {
    const { make, t } = context;
    let list = [];
    let close = () => {};
    let ready = false;
    let listed = "";
    // name → {curves, place}
    const found = new Map();

    // ------------------------------------------------------------ which curves are shown

    const fresh = () => {
      const alive = list.filter(({ state }) => ALIVE.includes(state)).map(({ name }) => name);
      const ours = list.filter(({ job }) => job).sort((one, other) => other.job.began - one.job.began);
      const named = list.filter(({ name }) => name === context.state.run);
      return alive.length ? alive : [...named, ...ours, ...list.toReversed()].filter(({ updates }) => updates).slice(0, 1).map(({ name }) => name);
    };
    const shownRuns = () => {
      const asked = context.state.runs;
      const names = asked === undefined ? fresh() : String(asked).split(",").map(decodeURIComponent);
      return names.filter((name) => list.some((run) => run.name === name)).slice(0, MOST);
    };
    const index = (name) => Math.max(0, list.findIndex((run) => run.name === name));
    const choose = (names) => context.set({ runs: names.map(encodeURIComponent).join(",") });
    const toggle = (name, on) => {
      const others = shownRuns().filter((one) => one !== name);
      choose(on ? [...others, name] : others);
      listen();
    };

    // ------------------------------------------------------------ drawing

    const shared = { values: true, x: { title: t("update"), low: 0 }, empty: t("nothingYet") };
    const loss = plot({ ...shared, label: t("loss"), title: t("loss"), y: { settle: true } }, context);
    const score = plot({ ...shared, label: t("metric"), title: t("metric") }, context);
    const metricPlace = make("div", { class: "bar train-metric" });
    let offered = "";
    const metrics = () => [...new Set(shownRuns().flatMap((name) => Object.keys(found.get(name)?.curves.valid ?? {})))].filter((name) => !NOT_SHOWN.includes(name));
    const chosenMetric = () => {
      const all = metrics();
      const usual = list.find(({ name }) => shownRuns().includes(name))?.metric;
      return [context.state.metric, usual, all[0]].find((name) => all.includes(name)) ?? "";
    };
    const draw = () => {
      const names = shownRuns();
      const all = metrics(), metric = chosenMetric();
      if (JSON.stringify([all, metric]) !== offered) {
        offered = JSON.stringify([all, metric]);
        metricPlace.replaceChildren(...(all.length > 1 ? [context.controls.select(t("metric"), all, metric, (value) => { context.set({ metric: value }); draw(); })] : []));
      }
      const lines = (kind, key, more) => names.map((name) => ({ name: more.faint ? `${name} (${t("inTraining")})` : name, colour: index(name), points: found.get(name)?.curves[kind]?.[key] ?? [], ...more })).filter(({ points }) => points.length);
      const empty = names.length ? t("nothingYet") : t("noneChosen");
      const label = metric === "bleu" ? "BLEU" : metric === "chrf" ? "chrF" : metric.replaceAll("_", " ");
      const training = lines("train", "loss", { faint: true }), held = lines("valid", "loss", { dots: 3 });
      loss.update({ series: [...training, ...held], empty, label: `${t("loss")}: ${names.join(", ")}` });
      const shownScore = metric ? t("heldOut", { metric: label }) : t("metric");
      score.update({ series: lines("valid", metric, { dots: 3 }), empty, label: `${shownScore}: ${names.join(", ")}`, title: shownScore });
    };

    // ------------------------------------------------------------ what is told

    const printed = make("pre", { class: "train-console", tabindex: 0, role: "log", "aria-label": t("console") });
    const consoleBox = make("section", { "aria-labelledby": "train-console", hidden: true },
      make("h2", { id: "train-console", text: t("console") }), make("div", { class: "bar", hidden: true }), printed);
    let watched = "";
    const print = () => {
      const ours = list.filter(({ job }) => job).sort((one, other) => other.job.began - one.job.began);
      consoleBox.hidden = !ours.length;
      if (!ours.length) return;
      const chosen = ours.find(({ name }) => name === context.state.console) ?? ours[0];
      const names = ours.map(({ name }) => name);
      if (JSON.stringify([names, chosen.name]) !== watched) {
        watched = JSON.stringify([names, chosen.name]);
        consoleBox.children[1].hidden = names.length < 2;
        consoleBox.children[1].replaceChildren(...(names.length > 1 ? [context.controls.select(t("consoleOf"), names, chosen.name, (name) => { context.set({ console: name }); print(); })] : []));
      }
      const below = printed.scrollHeight - printed.scrollTop - printed.clientHeight < 24;
      printed.textContent = chosen.job.lines.join("\n") || t("quietSoFar");
      if (below) printed.scrollTop = printed.scrollHeight;
    };
    const runs = runList(context, { isShown: (name) => shownRuns().includes(name), index, toggle, changed: () => refresh() });
    const look = checkpointView(context);
    const told = ({ runs: all }) => {
      const readable = () => JSON.stringify(shownRuns().map((name) => [name, Boolean(list.find((run) => run.name === name)?.task)]));
      const before = readable();
      list = all;
      const now = JSON.stringify(all.map(({ name, task, checkpoints }) => [name, task, checkpoints]));
      // all other pages want to know
      if (listed && now !== listed) context.refreshRuns();
      listed = now;
      runs.update(list);
      print();
      look.update(list);
      if (ready && readable() !== before) listen();
    };
    const refresh = async () => told(await context.json("/api/train/runs"));

    // All that was drawn comes first, then each line as it is written.
    let turn = 0;
    const listen = async () => {
      const mine = (turn += 1);
      const names = shownRuns();
      // one that starts has no folder to read yet
      const real = names.filter((name) => list.find((run) => run.name === name)?.task);
      const { runs: curves } = await context.json("/api/train/curves", { runs: real });
      if (mine !== turn) return;
      for (const name of real) found.set(name, curves[name]);
      runs.update(list);
      draw();
      close();
      const query = real.map((name) => `run=${encodeURIComponent(name)}&from=${curves[name].place}`).join("&");
      close = context.events(`/api/train/events?${query}`, hear);
    };
    const hear = (message) => {
      if (message.list) told(message.list);
      else if (message.anew) listen();
      else {
        const known = found.get(message.run);
        // lines that we have: the connection was made again
        if (!known || message.place <= known.place) return;
        known.place = message.place;
        for (const { kind, step, values } of message.points) {
          for (const [key, value] of Object.entries(values)) {
            const line = (known.curves[kind] ??= {})[key] ??= [];
            if (!(line.at(-1)?.[0] >= step)) line.push([step, value]);
          }
        }
        draw();
      }
    };

    list = (await context.json("/api/train/runs")).runs;
    const started = async (run) => {
      choose([...(context.state.runs === undefined ? [] : shownRuns()), run]);
      context.set({ console: null });
      await refresh();
    };
    place.append(
      await startForm(context, started),
      make("section", { "aria-labelledby": "train-runs" }, make("h2", { id: "train-runs", text: t("runs") }), runs.element),
      make("section", { "aria-labelledby": "train-curves" },
        make("h2", { id: "train-curves", text: t("curves") }), make("div", { class: "train-plots" }, loss, make("div", {}, score, metricPlace))),
      consoleBox, look.element);
    told({ runs: list });
    document.addEventListener("themechange", () => runs.update(list), { signal: context.signal });
    ready = true;
    await listen();
  },
};
