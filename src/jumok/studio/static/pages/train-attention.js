// One sentence under every checkpoint of a translator: a slider moves through what it looked at as it learned.
import { remembering } from "../asking.js";

export const checkpointView = (context) => {
  const { make, t, controls } = context;
  const place = make("div");
  let run = null;
  // what all checkpoints are made to write
  let target = null;
  let map = null;
  let timer = null;
  let asked = 0;
  let known = "";
  let offered = "";

  const suits = (one) => one.task === "translation" && one.checkpoints?.length && one.heads?.some(({ kind }) => kind === "cross");
  const cross = () => run.heads.find(({ kind }) => kind === "cross");
  const sentence = () => String(context.state.sentence ?? (run.languages?.[0] && run.languages[0] !== "en" ? "" : "The young cat will drink milk.")).slice(0, 400);
  const chosenAt = () => {
    const index = run.checkpoints.indexOf(context.state.checkpoint);
    return index < 0 ? run.checkpoints.length - 1 : index;
  };
  const whole = (key, count) => (Number.isInteger(context.state[key]) && context.state[key] >= 0 && context.state[key] < count ? context.state[key] : null);
  const question = (update) => {
    const [layer, head] = [whole("layer", cross().layers), whole("head", cross().heads)];
    return {
      run: run.name, update, sentence: sentence(), ...(target === null ? {} : { target }),
      ...(layer === null ? {} : { layer }), ...(head === null || cross().heads < 2 ? {} : { head }),
    };
  };
  const answers = remembering((body) => context.floats("/api/train/attention", body));
  const fetched = (update) => answers(question(update));

  const output = make("div", { class: "train-seen" });
  const own = make("p", { class: "train-own" });
  const show = async () => {
    const turn = (asked += 1);
    const at = chosenAt();
    if (target === null) target = (await fetched(run.checkpoints.at(-1))).about.forced ?? null;
    const found = await fetched(run.checkpoints[at]);
    // the list that is on its way has others
    if (turn !== asked || context.signal.aborted || found.about.gone) return;
    const { about, data } = found;
    const options = {
      label: t("map", { update: about.update }), rows: about.target, columns: about.source, data, scale: 1, bright: true,
    };
    if (map) map.update(options);
    else {
      map = context.matrix({ ...options, height: 360 });
      output.replaceChildren(map);
    }
    own.replaceChildren(make("span", { quiet: `${t("own")}: ` }), context.bidi(about.own));
    // the neighbours, so that the slider does not wait
    for (const next of [at + 1, at - 1]) {
      if (run.checkpoints[next] !== undefined) fetched(run.checkpoints[next]).catch(() => {});
    }
  };
  const slider = controls.slider(t("checkpoint"), {
    min: 0, max: 0, value: 0, shown: (index) => (run?.checkpoints[index] ?? 0).toLocaleString(context.language),
  }, (index) => move(index));
  const move = (index) => {
    context.set({ checkpoint: run.checkpoints[index] });
    show();
  };
  const stopPlaying = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = t("play");
  };
  const play = make("button", { onclick: () => {
    if (timer) {
      stopPlaying();
      return;
    }
    play.textContent = t("pause");
    const last = () => run.checkpoints.length - 1;
    // by its update: places move when old checkpoints go
    let seen = chosenAt() === last() ? null : run.checkpoints[chosenAt()];
    timer = setInterval(() => {
      const at = run.checkpoints.indexOf(seen) + 1;
      seen = run.checkpoints[at];
      slider.set(at);
      move(at);
      if (at >= last()) stopPlaying();
    }, 700);
  } });
  const slide = make("div", { class: "bar train-slide" }, slider, play);
  const single = make("p", { quiet: t("oneCheckpoint") });
  const chooser = make("div");

  // The parts of a run: they stay while it gets more checkpoints, with what is half written or dragged in them.
  const build = () => {
    stopPlaying();
    map = null;
    const again = (change) => (value) => {
      context.set(change(value));
      [target, map] = [null, null];
      show();
    };
    const { layers, heads } = cross();
    place.replaceChildren(
      make("div", { class: "bar" }, chooser,
        controls.field(t("sentence"), sentence(), again((value) => ({ sentence: value || null })), { class: "train-sentence", lang: run.languages?.[0] ?? "" }),
        layers > 1 ? controls.select(t("layer"), [[null, t("usual")], ...controls.numbered(layers)], whole("layer", layers), again((layer) => ({ layer }))) : null,
        heads > 1 ? controls.select(t("head"), [[null, t("mean")], ...controls.numbered(heads)], whole("head", heads), again((head) => ({ head }))) : null),
      slide, single, own, output);
    element.replaceChildren(head, make("p", { quiet: t("lookLead") }), place);
  };

  // The runs as they are now: what can be looked at may have grown.
  const update = (runs) => {
    const fitting = runs.filter(suits);
    if (!fitting.length) {
      [known, run] = ["", null];
      stopPlaying();
      element.replaceChildren(head, make("p", { quiet: t("noTranslator") }));
      return;
    }
    // what somebody works with is not taken away for one that has more
    const used = timer || place.contains(document.activeElement) ? run?.name : null;
    const wanted = [context.state.look, context.state.run, used].find((name) => fitting.some((one) => one.name === name));
    const next = fitting.find(({ name }) => name === wanted) ?? fitting.toSorted((one, other) => other.checkpoints.length - one.checkpoints.length)[0];
    const names = fitting.map((one) => [one.name, one.title || one.name]);
    const now = JSON.stringify([names, next.name, next.checkpoints]);
    if (now === known) return;
    known = now;
    const same = run?.name === next.name;
    const focused = chooser.contains(document.activeElement);
    [run, target] = [next, null];
    if (!same) build();
    const offer = JSON.stringify([names, run.name]);
    if (offer !== offered) {
      offered = offer;
      chooser.replaceChildren(controls.select(t("lookRun"), names, run.name, (name) => {
        context.set({ look: name, checkpoint: null, layer: null, head: null });
        update(fitting);
      }));
      if (focused) chooser.querySelector("select").focus();
    }
    slider.set(chosenAt(), run.checkpoints.length - 1);
    [slide.hidden, single.hidden] = [run.checkpoints.length < 2, run.checkpoints.length > 1];
    show();
  };
  const head = make("h2", { id: "train-look", text: t("look") });
  const element = make("section", { class: "train-look", "aria-labelledby": "train-look" }, head);
  stopPlaying();
  context.signal.addEventListener("abort", stopPlaying);
  return { element, update };
};
