// One sentence under every checkpoint of a translator: a slider moves through what it looked at as it learned.
import { remembering } from "../asking.js";

export const checkpointView = (context) => {
  const { make, t, controls } = context;
  const place = make("div");
  let run = null;
  let target = null; // what all checkpoints are made to write
  let map = null;
  let timer = null;
  let asked = 0;
  let known = "";

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
    const { about, data, shape } = found;
    const options = {
      label: t("map", { update: about.update }), rows: about.target, columns: about.source, data, scale: 1, bright: true,
    };
    if (map) map.update(options);
    else {
      map = context.matrix({ ...options, height: 360 });
      output.replaceChildren(map);
    }
    own.replaceChildren(make("span", { class: "quiet", text: `${t("own")}: ` }), context.bidi(about.own));
    // the neighbours, so that the slider does not wait
    for (const next of [at + 1, at - 1]) {
      if (run.checkpoints[next] !== undefined) fetched(run.checkpoints[next]).catch(() => {});
    }
  };
  const stopPlaying = () => {
    clearInterval(timer);
    timer = null;
  };

  const build = (choose) => {
    stopPlaying();
    [target, map] = [null, null];
    const marks = run.checkpoints;
    const slider = controls.slider(t("checkpoint"), {
      min: 0, max: Math.max(0, marks.length - 1), value: chosenAt(), shown: (index) => (marks[index] ?? 0).toLocaleString(context.language),
    }, (index) => {
      context.set({ checkpoint: marks[index] });
      show();
    });
    const play = make("button", { type: "button", text: t("play"), onclick: () => {
      if (timer) {
        stopPlaying();
        play.textContent = t("play");
        return;
      }
      play.textContent = t("pause");
      let at = chosenAt() === marks.length - 1 ? -1 : chosenAt();
      timer = setInterval(() => {
        at += 1;
        slider.set(at);
        context.set({ checkpoint: marks[at] });
        show();
        if (at >= marks.length - 1) {
          stopPlaying();
          play.textContent = t("play");
        }
      }, 700);
    } });
    const again = (change) => (value) => {
      context.set(change(value));
      [target, map] = [null, null];
      show();
    };
    const { layers, heads } = cross();
    place.replaceChildren(
      make("div", { class: "bar" }, choose,
        controls.field(t("sentence"), sentence(), again((value) => ({ sentence: value || null })), { class: "train-sentence", lang: run.languages?.[0] ?? "" }),
        layers > 1 ? controls.select(t("layer"), [[null, t("usual")], ...controls.numbered(layers, 1)], whole("layer", layers), again((layer) => ({ layer }))) : null,
        heads > 1 ? controls.select(t("head"), [[null, t("mean")], ...controls.numbered(heads, 1)], whole("head", heads), again((head) => ({ head }))) : null),
      marks.length > 1 ? make("div", { class: "bar train-slide" }, slider, play) : make("p", { class: "quiet", text: t("oneCheckpoint") }),
      own, output);
    show();
  };

  // The runs as they are now: what can be looked at may have grown.
  const update = (runs) => {
    const fitting = runs.filter(suits);
    if (!fitting.length) {
      known = "";
      element.replaceChildren(head, make("p", { class: "quiet", text: t("noTranslator") }));
      return;
    }
    const wanted = [context.state.look, context.state.run].find((name) => fitting.some((one) => one.name === name));
    const next = fitting.find(({ name }) => name === wanted) ?? fitting.toSorted((one, other) => other.checkpoints.length - one.checkpoints.length)[0];
    const now = JSON.stringify([fitting.map(({ name }) => name), next.name, next.checkpoints]);
    if (now === known) return;
    known = now;
    run = next;
    const focused = place.contains(document.activeElement) ? document.activeElement.type : null;
    const choose = controls.select(t("lookRun"), fitting.map((one) => [one.name, one.title || one.name]), run.name, (name) => {
      context.set({ look: name, checkpoint: null, layer: null, head: null });
      update(fitting);
    });
    element.replaceChildren(head, make("p", { class: "quiet", text: t("lookLead") }), place);
    build(choose);
    // a checkpoint came while somebody looked
    if (focused) place.querySelector(`input[type="${focused}"]`)?.focus();
  };
  const head = make("h2", { id: "train-look", text: t("look") });
  const element = make("section", { class: "train-look", "aria-labelledby": "train-look" }, head);
  context.signal.addEventListener("abort", stopPlaying);
  return { element, update };
};
