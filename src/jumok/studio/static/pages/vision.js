// Vision: an image, what the model says of it, and where every patch looks, by layer and head.
import { remembering } from "../asking.js";
import { clamp, drawnLater, STEPS } from "../drawing.js";
import { droppable, loaded, sent } from "../files.js";
import { renewed } from "../plot.js";
import { fitted } from "../state.js";
import { distances, filters } from "./vision-beyond.js";
import { chooser } from "./vision-files.js";
import { drawMap, largest, layersOf, patchAt } from "./vision-picture.js";
import words from "../words/vision.json" with { type: "json" };

const EXAMPLES = 3;
const ANSWERS = 5;
// answers whose maps stand beside each other
const EXPLAINED = 3;
const VIEWS = ["attention", "rollout", "gradient"];

export default {
  name: "vision",
  recipe: "vit-demo",
  styles: true,
  words,
  needs: (run) => run.task === "vision" && run.family === "vit",

  async show(place, context) {
    const { t, make, run } = context;
    const examples = await Promise.all(Array.from({ length: EXAMPLES }, (_, example) => context.json("/api/vision/open", { run: run.name, picture: `example-${example}` })));
    const wrong = make("p", { class: "wrong vision-wrong", role: "alert" });
    const body = make("div");
    let round = 0;
    const open = async (picture, fresh) => {
      const mine = (round += 1);
      const seen = examples.find((one) => one.picture === picture) ?? await context.json("/api/vision/open", { run: run.name, picture });
      const image = await loaded(seen.image);
      if (mine !== round || context.signal.aborted) return;
      wrong.textContent = "";
      if (fresh) context.set({ picture, patch: null, label: null });
      choose.chosen(picture);
      await look(body, context, seen, image, send);
    };
    const send = async (file) => {
      try {
        await open(await sent(context, file, "/api/vision/open", (whole) => ({ run: run.name, file: whole, name: file.name.slice(0, 80) || "picture" })), true);
      } catch (error) {
        if (error.name !== "AbortError") [wrong.textContent, wrong.lang] = [error.whole ?? error.message, error.lang ?? "en"];
      }
    };
    const choose = chooser(context, examples, (picture) => open(picture, true), send);
    place.append(choose, wrong, body);
    const asked = typeof context.state.picture === "string" ? context.state.picture : "example-0";
    try {
      await open(asked, false);
    } catch (error) {
      if (error.name !== "Wrong") throw error;
      context.notice(t("lost"));
      await open("example-0", true);
    }
  },
};

// One picture: `seen` is what the studio said of it.
const look = async (body, context, seen, image, send) => {
  const { t, make, controls, shown } = context;
  const signal = renewed(body, context.signal);
  const [rows, columns] = seen.grid;
  const count = rows * columns;
  const layers = layersOf(image, seen.size);
  const { state } = context;
  const best = seen.chances.map((_, label) => label).sort((a, b) => seen.chances[b] - seen.chances[a]);
  const view = {
    kind: VIEWS.includes(state.view) ? state.view : "attention", layer: fitted(state.layer, 0, seen.layers - 1, seen.layers - 1),
    head: fitted(state.head, -1, seen.heads - 1, -1), place: fitted(state.patch, -1, count - 1, -1), label: fitted(state.label, 0, seen.labels.length - 1, best[0]),
    bright: state.bright === true, at: -1, hover: null,
  };
  const question = { run: context.run.name, picture: seen.picture };
  // a hover asks nothing
  const answer = remembering(([what, more]) => context.floats(`/api/vision/${what}`, { ...question, ...more }));

  // ------------------------------------------------------------ what is seen from where

  const from = () => (view.kind === "gradient" ? -1 : view.hover ?? view.place);
  const maps = async () => {
    if (view.kind === "gradient") {
      const labels = [...new Set([...best.slice(0, EXPLAINED), view.label])];
      const found = await Promise.all(labels.map((label) => answer(["gradient", { label }])));
      return found.map(({ data }, index) => ({ name: seen.labels[labels[index]], label: labels[index], values: data, elsewhere: null }));
    }
    const one = seen.every ? {} : view.place < 0 ? {} : { place: view.place };
    const layer = view.kind === "rollout" ? {} : { layer: view.layer };
    const found = await answer(["looks", { ...layer, ...one }]);
    const [heads, lines, wide] = found.shape;
    const line = seen.every ? from() + 1 : Math.min(lines - 1, from() < 0 ? 0 : 1);
    badge.textContent = t("difference", { value: shown(found.about.difference) });
    return Array.from({ length: heads }, (_, head) => {
      const start = (head * lines + line) * wide;
      return {
        name: view.kind === "rollout" ? t("rollout") : head ? t("head", { head: head - 1 }) : t("mean"), head: head - 1,
        values: found.data.subarray(start, start + count), elsewhere: found.data[start + count],
      };
    });
  };
  const rowAndColumn = (patch) => ({ row: Math.floor(patch / columns), column: patch % columns });
  const who = (patch) => (patch < 0 ? t(`whole ${seen.pooling}`) : t("patch", rowAndColumn(patch)));

  // ------------------------------------------------------------ the parts

  const canvas = make("canvas", { "aria-hidden": true });
  const frame = make("div", { class: "vision-frame", tabindex: 0, role: "group", "aria-label": t("pictureLabel", { rows, columns }) }, canvas);
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const back = controls.button(t("fromWhole"), () => pin(-1), "small");
  const badge = make("span", { class: "vision-badge number" });
  const tiles = make("div", { class: "vision-tiles" });
  const heading = make("h2");
  const about = make("p", { class: "quiet" });
  let drawn = [];

  const chosenOf = (found) => found.find((one) => (view.kind === "gradient" ? one.label === view.label : one.head === view.head)) ?? found[0];
  const draw = async () => {
    const mine = (draw.round = (draw.round ?? 0) + 1);
    const found = await maps();
    if (mine !== draw.round || signal.aborted) return;
    drawn = found;
    const chosen = chosenOf(found);
    const shared = { layers, grid: seen.grid, bright: view.bright, place: from() };
    drawMap(canvas, Math.max(160, Math.min(frame.clientWidth || 320, 448)), { ...shared, values: chosen.values, at: view.kind === "gradient" ? view.at : -1 });
    frame.numbers = chosen.values;
    if (tiles.children.length !== found.length) tiles.replaceChildren(...found.map((_, index) => tile(index)));
    tiles.hidden = found.length < 2;
    tiles.classList.toggle("vision-many", found.length > 9);
    found.forEach((one, index) => {
      const button = tiles.children[index];
      const [name, small, below] = button.children;
      const [most] = largest(one.values, count);
      const mean = one.values.reduce((sum, value) => sum + value, 0) / count || 1;
      name.textContent = one.name;
      if (found.length > 1) drawMap(small, small.parentNode.clientWidth - 18 || 120, { ...shared, values: one.values });
      const told = [t("upTo", { value: shown(most), times: (most / mean).toFixed(most / mean < 10 ? 1 : 0) })];
      if (seen.added && one.elsewhere !== null) told.push(t("elsewhere", { share: (100 * one.elsewhere).toFixed(0) }));
      below.replaceChildren(...told.map((text) => make("span", { text })));
      button.setAttribute("aria-pressed", one === chosen);
    });
    tell(chosen);
    back.hidden = view.kind === "gradient" || view.place < 0;
  };
  const tell = (chosen) => {
    if (view.kind === "gradient") {
      const hint = t("hintGradient", { label: seen.labels[view.label] });
      readout.replaceChildren(...(view.at < 0 ? [make("span", { quiet: hint })] : value(chosen, view.at, t("relevance", rowAndColumn(view.at)))));
      return;
    }
    const [most, where] = largest(chosen.values, count);
    readout.replaceChildren(make("span", { text: `${chosen.name} · ${t("from", { who: who(from()) })}` }),
      make("b", { class: "number", text: t("most", { value: shown(most), ...rowAndColumn(where) }) }),
      seen.added ? make("span", { class: "quiet number", text: t("elsewhere", { share: (100 * chosen.elsewhere).toFixed(1) }) }) : "",
      from() < 0 && seen.every ? make("span", { quiet: t("hintAttention") }) : "");
  };
  const value = (one, patch, name) => [make("span", { text: name }), make("b", { class: "number", text: shown(one.values[patch]) })];
  const pick = (one) => {
    if (view.kind === "gradient") { set({ label: one.label }); return; }
    view.head = one.head;
    context.set({ head: view.head });
    spread?.chosen(view.layer, view.head);
    draw();
  };
  const tile = (index) => {
    const small = make("canvas", { "aria-hidden": true });
    const button = make("button", { class: "vision-tile", onclick: () => pick(drawn[index]) },
      make("b"), small, make("small", { class: "quiet number" }));
    small.addEventListener("pointermove", (event) => {
      const patch = patchAt(event, small, seen.grid);
      const name = view.kind === "gradient" ? `${drawn[index].name}: ${t("relevance", rowAndColumn(patch))}` : t("tileValue", { name: drawn[index].name, who: who(from()), ...rowAndColumn(patch) });
      readout.replaceChildren(...value(drawn[index], patch, name));
    });
    small.addEventListener("pointerleave", () => tell(chosenOf(drawn)));
    return button;
  };
  const pin = (patch) => {
    view.place = patch;
    view.hover = null;
    context.set({ patch: patch < 0 ? null : patch });
    draw();
  };
  canvas.addEventListener("pointermove", (event) => {
    const patch = patchAt(event, canvas, seen.grid);
    if (patch === (view.kind === "gradient" ? view.at : view.hover)) return;
    if (view.kind === "gradient") view.at = patch;
    else if (seen.every && event.pointerType !== "touch") view.hover = patch;
    draw();
  });
  canvas.addEventListener("pointerleave", () => { [view.hover, view.at] = [null, -1]; draw(); });
  canvas.addEventListener("click", (event) => { if (view.kind !== "gradient") pin(patchAt(event, canvas, seen.grid)); });
  frame.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step && event.key !== "Escape") return;
    event.preventDefault();
    const now = view.kind === "gradient" ? view.at : view.place;
    const { row, column } = rowAndColumn(Math.max(now, 0));
    const next = !step ? -1 : now < 0 ? 0 : clamp(row + step[0], 0, rows - 1) * columns + clamp(column + step[1], 0, columns - 1);
    if (view.kind !== "gradient") { pin(next); return; }
    view.at = next;
    draw();
  });
  droppable(frame, frame, "vision-over", send);
  // never leave the page
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault(), { signal });

  // ------------------------------------------------------------ answers and controls

  const answers = best.slice(0, ANSWERS).map((label) => {
    const share = (100 * seen.chances[label]).toFixed(1);
    return make("li", {}, make("button", {
      class: "vision-answer", "aria-label": t("asked", { label: seen.labels[label], share }), onclick: () => set({ kind: "gradient", label }),
    }, context.bidi(seen.labels[label]), make("span", { class: "vision-share", "aria-hidden": true }, make("i", { style: { width: `${share}%` } })), make("span", { class: "number", text: `${share} %` })));
  });
  const bar = make("div", { class: "bar" });
  const set = (more) => {
    Object.assign(view, more);
    context.set({ view: view.kind === "attention" ? null : view.kind, layer: view.layer, label: view.kind === "gradient" ? view.label : null, bright: view.bright || null });
    [view.hover, view.at] = [null, -1];
    arrange();
    spread?.chosen(view.layer, view.head);
    return draw();
  };
  let arranged = "";
  const arrange = () => {
    const many = seen.layers > 8;
    const layout = `${view.kind} ${many ? "" : view.layer}`;
    const attention = view.kind === "attention";
    // the control that has the focus keeps it
    if (layout !== arranged) {
      controls.refill(bar, controls.segmented(t("shown"), VIEWS.map((kind) => [kind, t(kind)]), view.kind, (kind) => set({ kind })),
        attention && seen.layers > 1 ? (many ? controls.slider(t("layer"), { min: 0, max: seen.layers - 1, value: view.layer }, (layer) => set({ layer }))
          : controls.segmented(t("layer"), controls.numbered(seen.layers), view.layer, (layer) => set({ layer }))) : null,
        controls.toggle(t("bright"), view.bright, (bright) => set({ bright })));
    }
    arranged = layout;
    heading.textContent = t({ attention: "tiles", rollout: "tilesRollout", gradient: "tilesGradient" }[view.kind], { layer: view.layer });
    about.textContent = t({ attention: "tilesLead", rollout: "rolloutLead", gradient: "gradientLead" }[view.kind]);
    badge.hidden = view.kind === "gradient";
    answers.forEach((one, index) => one.firstChild.setAttribute("aria-pressed", view.kind === "gradient" && best[index] === view.label));
  };

  const beyond = make("div", { class: "vision-beyond" });
  body.replaceChildren(make("div", { class: "vision-stage" },
    make("div", { class: "vision-left" }, frame, readout, back),
    make("div", { class: "vision-right" }, bar, make("section", {}, heading, about, tiles, badge),
      make("section", {}, make("h2", { text: t("answers") }), make("ol", { class: "vision-answers" }, answers), make("p", { quiet: t("answersLead") })))), beyond);
  let spread = null;
  arrange();
  await draw();
  drawnLater(body, draw, signal);
  const [told, found] = await Promise.all([context.json("/api/vision/distance", question), context.floats("/api/vision/filters", { run: context.run.name })]);
  // another picture
  if (signal.aborted) return;
  spread = distances(context, { signal }, told, (layer) => set({ kind: "attention", layer }));
  spread.chosen(view.layer, view.head);
  beyond.replaceChildren(spread, filters(context, found));
};
