// What is read: a word that the run's renderer draws, or a picture that is dropped, pasted or chosen.
import { offline } from "../asking.js";
import { droppable, fileInput, sent } from "../files.js";

// words: {words: [text], longest}. ask(change): the state that a choice makes; fail(error): what went wrong.
// Without the words (no font here writes them) only pictures are taken.
export const input = (context, { words, ask, fail }) => {
  const { t, make, controls, state } = context;
  const text = String(state.text ?? words?.words[0] ?? "");
  const field = controls.field(t("word"), state.picture === undefined ? text : "", (value) => value && ask({ text: value, n: null, picture: null }), {
    maxlength: Math.max(1, words?.longest ?? 1) * 4,
  });
  const line = field.querySelector("input");
  const choose = (value) => {
    line.value = value;
    marked(value);
    ask({ text: value, n: null, picture: null });
  };
  const chips = (words?.words ?? []).map((word) => make("button", { class: "small", onclick: () => choose(word) }, context.bidi(word)));
  const marked = (value) => chips.forEach((chip, index) => chip.setAttribute("aria-pressed", words.words[index] === value));
  marked(state.picture === undefined ? text : null);
  line.addEventListener("input", () => marked(line.value));
  const another = controls.button(t("draw"), () => {
    const now = context.state;
    ask({ text: line.value || String(now.text ?? words.words[0]), n: (Number(now.n) || 0) + 1, picture: null });
  });

  const file = fileInput(t("choose"), (given) => take(given));
  const chosen = make("p", { class: "quiet reading-chosen" });
  const zone = make("div", { class: "reading-drop" },
    make("p", {}, t("drop"), " ", make("button", { class: "small", text: t("choose"), onclick: () => file.click() })), file, chosen);
  const take = async (given) => {
    try {
      const picture = await sent(context, given, "/api/reading/picture", (image) => ({ image, name: given.name.slice(0, 200) }));
      line.value = "";
      marked(null);
      chosen.textContent = t("chosen", { name: context.visible(given.name) });
      await ask({ picture, text: null, n: null });
    } catch (error) {
      fail(error);
    }
  };
  const box = make("div", { class: "reading-input" },
    words ? make("div", { class: "reading-words" }, make("div", { class: "row reading-word" }, field, another),
      make("div", { class: "row reading-examples", role: "group", "aria-label": t("examples") }, make("span", { quiet: t("examples") }), chips)) : null,
    offline ? null : zone);
  box.forget = () => { chosen.textContent = ""; };
  // all of the page takes a picture that is dropped on it
  box.watch = (place) => {
    droppable(place, zone, "over", take);
    document.addEventListener("paste", (event) => { if (event.clipboardData?.files.length) take(event.clipboardData.files[0]); }, { signal: context.signal });
  };
  return box;
};
