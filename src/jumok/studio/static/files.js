// A picture of one's own: chosen or dropped, and sent as base64.
import { base64, Wrong } from "./asking.js";
import { make } from "./text.js";

// bytes that fit into a request as base64
const MOST = 12 << 20;

export const loaded = async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
};

// What the studio calls the file that it was sent; bodyOf(base64). An offline page keeps the answers about the picture,
// not the file.
export const sent = async ({ send, t }, file, path, bodyOf) => {
  const { name } = file;
  if (file.size > MOST) throw new Wrong(t("tooLarge", { name, size: (file.size / 2 ** 20).toFixed(1), most: MOST >> 20 }));
  const bytes = await file.arrayBuffer().catch(() => { throw new Wrong(t("cannot", { name })); });
  return (await send(path, bodyOf(base64(new Uint8Array(bytes))))).picture;
};

// An input that is not seen: a button clicks it. take(file)
export const fileInput = (label, take) => {
  const input = make("input", { type: "file", accept: "image/*", class: "hidden", tabindex: -1, "aria-label": label, onchange: () => {
    if (input.files.length) take(input.files[0]);
    // the same file can be chosen again
    input.value = "";
  } });
  return input;
};

// Files dropped on an element: take(file). What would take them has the class while they are above.
export const droppable = (element, marked, name, take) => {
  const over = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    marked.classList.toggle(name, event.type === "dragover");
    if (event.type === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  };
  for (const kind of ["dragover", "dragleave", "drop"]) element.addEventListener(kind, over);
};
