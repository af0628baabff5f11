// A page for the tests of the shell: it uses everything that a page is given.
export default {
  name: "lessons",
  words: {
    en: { title: "Lessons", lead: "All parts on one page.", heard: "{count} numbers, {name}" },
    ko: { title: "배우기", lead: "모든 부품을 한 쪽에.", heard: "숫자 {count}개, {name}" },
  },
  needs: (run) => run.task === "translation",
  async show(place, context) {
    const { make, controls, state } = context;
    const told = await context.json("/api/scratch/words", { text: state.text ?? "the cat" });
    const { data, shape, about } = await context.floats("/api/scratch/floats");
    const heard = make("p", { id: "heard", text: context.t("heard", { count: data.length, name: about.name }) });
    const tokens = make("p", { id: "tokens" }, told.tokens.map((token) => [context.bidi(token, { class: "token" }), " "]));
    place.append(heard, tokens, make("div", { class: "bar" },
      controls.segmented("Kind", [["cross", "Cross"], ["self", "Self"]], state.kind ?? "cross", (kind) => context.set({ kind })),
      controls.slider("Layer", { min: 0, max: 5, value: state.layer ?? 0 }, (layer) => context.set({ layer })),
      controls.toggle("Words", state.words ?? false, (words) => context.set({ words })),
      controls.select("Head", ["mean", "first"], state.head ?? "mean", (head) => context.set({ head })),
      controls.field("Text", state.text ?? "the cat", (text) => context.set({ text })),
      controls.button("Elsewhere", () => context.go({ page: "compare", side: 2 }), "main"),
      controls.button("Act", async () => context.notice((await context.act("/api/scratch/act", { x: 1 })).done)),
      controls.button("Fail", async () => { await context.json("/api/scratch/fail"); })));
    const map = context.matrix({
      label: "A map", rows: told.tokens.slice(0, shape[0]), columns: told.tokens.slice(0, shape[1]), data, signed: true,
      pins: state.pin === undefined ? [] : [String(state.pin).split(".").map(Number)],
      onPin: (pins) => context.set({ pin: pins.length ? pins[0].join(".") : null }),
    });
    const red = context.canvas(64, 32, (pen, width, height) => {
      pen.fillStyle = context.theme === "dark" ? "rgb(250, 10, 10)" : "rgb(10, 10, 250)";
      pen.fillRect(0, 0, width, height);
    }, "A coloured field");
    red.id = "coloured";
    place.append(map, red);
  },
};
