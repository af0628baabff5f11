// Pictures to look at: drawn examples, or a file that is chosen.
import { fileInput } from "../files.js";

// examples: [{picture, image}]; choose(picture) and send(file). The element has chosen(picture).
export const chooser = (context, examples, choose, send) => {
  const { make, t } = context;
  const thumbs = examples.map((one, index) => make("button", {
    class: "vision-thumb", "aria-label": t("example", { number: index + 1 }), "aria-pressed": "false", onclick: () => choose(one.picture),
  }, make("img", { src: one.image, alt: "" })));
  const input = fileInput(t("file"), send);
  const box = make("div", { class: "vision-choose", role: "group", "aria-label": t("pictures") }, thumbs,
    make("div", {}, context.controls.button(t("file"), () => input.click()), make("small", { quiet: t("drop") })), input);
  box.chosen = (picture) => thumbs.forEach((thumb, index) => thumb.setAttribute("aria-pressed", examples[index].picture === picture));
  return box;
};
