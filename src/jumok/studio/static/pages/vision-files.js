// Pictures to look at: drawn examples, or a file that is chosen or dropped.
const MOST = 12 << 20; // bytes that fit into a request as base64

// The whole file as base64, and what the studio says of it. Not through the recorder: an offline page keeps the answers
// about the picture, not the file.
export const sent = async (context, file) => {
  const { t } = context;
  if (file.size > MOST) throw new Error(t("tooLarge", { name: file.name, size: (file.size / 2 ** 20).toFixed(1), most: MOST >> 20 }));
  let bytes;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch {
    throw new Error(t("cannot", { name: file.name }));
  }
  const parts = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  let response;
  try {
    response = await fetch("/api/vision/open", {
      method: "POST", headers: { "Content-Type": "application/json" }, credentials: "omit", signal: context.signal,
      body: JSON.stringify({ run: context.run.name, file: btoa(parts.join("")), name: file.name.slice(0, 80) || "picture" }),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(t("away"));
  }
  const answer = await response.json();
  if (!response.ok) throw new Error([answer.error?.message, answer.error?.what_to_do].filter(Boolean).join(" "));
  return answer.picture;
};

// examples: [{picture, image}]; choose(picture) and send(file). The element has chosen(picture).
export const chooser = (context, examples, choose, send) => {
  const { make, t } = context;
  const thumbs = examples.map((one, index) => make("button", {
    type: "button", class: "vision-thumb", "aria-label": t("example", { number: index + 1 }), "aria-pressed": "false", onclick: () => choose(one.picture),
  }, make("img", { src: one.image, alt: "" })));
  const input = make("input", { type: "file", accept: "image/*", class: "hidden", tabindex: "-1", "aria-label": t("file"), onchange: () => {
    if (input.files.length) send(input.files[0]);
    input.value = ""; // the same file can be chosen again
  } });
  const box = make("div", { class: "vision-choose", role: "group", "aria-label": t("pictures") }, thumbs,
    make("div", {}, context.controls.button(t("file"), () => input.click()), make("small", { class: "quiet", text: t("drop") })), input);
  box.chosen = (picture) => thumbs.forEach((thumb, index) => thumb.setAttribute("aria-pressed", String(examples[index].picture === picture)));
  return box;
};

// Files dropped on an element.
export const droppable = (element, send, signal) => {
  const over = (on) => element.classList.toggle("vision-over", on);
  element.addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
  element.addEventListener("dragleave", () => over(false));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault(), { signal }); // never leave the page
};
