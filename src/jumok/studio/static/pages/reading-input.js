// What is read: a word that the run's renderer draws, or a picture that is dropped, pasted or chosen.
import { offline, Wrong } from "../asking.js";

const MOST = 12 << 20; // bytes of a file

const encoded = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result).split(",", 2)[1] ?? "");
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

// A picture is not kept among the answers of the view, as other questions are: it may be large, and its name is enough.
const put = async (file, context) => {
  const { t, signal } = context;
  if (file.size > MOST) throw new Wrong(t("large", { name: file.name, size: (file.size / 2 ** 20).toFixed(1) }));
  const image = await encoded(file).catch(() => { throw new Wrong(t("unreadable", { name: file.name })); });
  const response = await fetch("/api/reading/picture", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ image, name: file.name.slice(0, 200) }),
    credentials: "omit", signal,
  });
  const told = await response.json();
  if (!response.ok) throw new Wrong(told.error.message, told.error.what_to_do, response.status);
  return told.picture;
};

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
  const chips = (words?.words ?? []).map((word) => make("button", { type: "button", class: "small", onclick: () => choose(word) }, context.bidi(word)));
  const marked = (value) => chips.forEach((chip, index) => chip.setAttribute("aria-pressed", String(words.words[index] === value)));
  marked(state.picture === undefined ? text : null);
  line.addEventListener("input", () => marked(line.value));
  const another = controls.button(t("draw"), () => {
    const now = context.state;
    ask({ text: line.value || String(now.text ?? words.words[0]), n: (Number(now.n) || 0) + 1, picture: null });
  });

  const file = make("input", { type: "file", accept: "image/*", class: "hidden", tabindex: "-1", "aria-label": t("choose"), onchange: () => take(file.files) });
  const chosen = make("p", { class: "quiet reading-chosen" });
  const zone = make("div", { class: "reading-drop" },
    make("p", {}, t("drop"), " ", make("button", { type: "button", class: "small", text: t("choose"), onclick: () => file.click() })), file, chosen);
  const take = async (files) => {
    const [given] = files ?? [];
    if (!given) return;
    try {
      const picture = await put(given, context);
      line.value = "";
      marked(null);
      chosen.textContent = t("chosen", { name: context.visible(given.name) });
      await ask({ picture, text: null, n: null });
    } catch (error) {
      fail(error);
    }
    file.value = "";
  };
  const box = make("div", { class: "reading-input" },
    words ? make("div", { class: "reading-words" }, make("div", { class: "row reading-word" }, field, another),
      make("div", { class: "row reading-examples", role: "group", "aria-label": t("examples") }, make("span", { class: "quiet", text: t("examples") }), chips)) : null,
    offline ? null : zone);
  box.forget = () => { chosen.textContent = ""; };
  box.watch = (place) => { // all of the page takes a picture that is dropped on it
    const over = (event) => {
      if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
      event.preventDefault();
      zone.classList.toggle("over", event.type === "dragover");
      if (event.type === "drop") take(event.dataTransfer.files);
    };
    for (const kind of ["dragover", "dragleave", "drop"]) place.addEventListener(kind, over);
    document.addEventListener("paste", (event) => take(event.clipboardData?.files), { signal: context.signal });
  };
  return box;
};
