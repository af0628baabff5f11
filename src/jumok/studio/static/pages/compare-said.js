// What both sides say: outputs with what the other lacks marked, and probabilities side by side.

// a difference that nobody sees
const SMALL = 0.001;

// Which words of each text the other has not, in order (the longest common part of both).
const unlike = (a, b) => {
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  }
  const marked = [new Set(a.keys()), new Set(b.keys())];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { marked[0].delete(i); marked[1].delete(j); i += 1; j += 1; }
    else if (longest[i + 1][j] >= longest[i][j + 1]) i += 1;
    else j += 1;
  }
  return marked;
};

export const badge = (make, side) => make("span", { class: `compare-badge compare-${side.toLowerCase()}`, text: side, "aria-hidden": true });

// Both outputs of translators, or both labels of readers.
export const outputs = (context, told, names) => {
  const { t, make, shown } = context;
  const [a, b] = told.sides;
  const card = (side, name, ...inside) => make("div", { class: "card compare-side", role: "group", "aria-label": `${side}: ${name}` },
    make("p", { class: "compare-name" }, badge(make, side), context.bidi(name)), ...inside);
  if (a.output === undefined) {
    const said = (one) => make("p", { class: "compare-output" }, one.label === undefined ? t("number", { x: shown(one.number) }) : t("label", { label: context.visible(one.label) }));
    return [make("div", { class: "compare-two" }, card("A", names[0], said(a)), card("B", names[1], said(b))),
      ...["A", "B"].map((side, place) => (told.sides[place].only?.length ? make("p", { quiet: t("only", { side, labels: told.sides[place].only.join(", ") }) }) : null))];
  }
  const cut = [a, b].map((one) => one.output.split(/\s+/u).filter(Boolean));
  const marked = unlike(...cut);
  const line = (one, place) => make("p", { class: "compare-output" }, one.output ? make("bdi", {}, cut[place].map((word, index) => [index ? " " : "",
    marked[place].has(index) ? make("mark", { class: `compare-mark-${"ab"[place]}`, text: context.visible(word) }) : context.visible(word)])) : make("span", { quiet: t("nothing") }));
  const about = (one, side) => make("p", { class: "quiet number" }, t("logp", { x: shown(one.log_probability) }), one.finished ? "" : ` · ${t("cut")}`,
    one.unknown.length ? ` · ${t("unknown", { side, words: one.unknown.map(context.visible).join(", ") })}` : "");
  return [
    make("div", { class: "compare-two" }, card("A", names[0], line(a, 0), about(a, "A")), card("B", names[1], line(b, 1), about(b, "B"))),
    make("p", { class: "quiet compare-same", text: t(a.output === b.output ? "same" : "differ") }),
    told.languages ? make("p", { quiet: t("languages", { a: told.languages[0][1], b: told.languages[1][1] }) }) : null,
  ];
};

// rows: {names, a: [p], b: [p]}. A table with a bar for each number, and a sentence on the largest difference.
export const probabilities = (context, rows, { first, whole }) => {
  const { t, make, shown } = context;
  let most = 0;
  rows.names.forEach((_, index) => { if (Math.abs(rows.b[index] - rows.a[index]) > Math.abs(rows.b[most] - rows.a[most])) most = index; });
  const gap = rows.names.length ? rows.b[most] - rows.a[most] : 0;
  const sentence = Math.abs(gap) < SMALL ? t("tinyP", { d: shown(Math.max(Math.abs(gap), 1e-6)) })
    : t("largestP", { name: context.visible(rows.names[most].replace(/^▁(?=.)/u, "")), a: shown(rows.a[most]), b: shown(rows.b[most]) });
  const bar = (side, p) => make("td", { class: "number" }, make("span", { class: "compare-p" },
    make("span", { class: "compare-gauge", "aria-hidden": true }, make("span", { class: `compare-fill-${side}`, style: { width: `${100 * p}%` } })), make("span", { text: shown(p) })));
  const signed = (x) => {
    const cell = make("td", { class: "number compare-signed", text: x > 0 ? `+${shown(x)}` : shown(x) });
    const paint = () => Object.assign(cell.style, { backgroundColor: context.signedColour(x), color: context.signedInk(x) });
    paint();
    document.addEventListener("themechange", paint, { signal: context.signal });
    return cell;
  };
  const table = make("table", { class: "compare-table" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col", text: first }), ["A", "B"].map((side) => make("th", { scope: "col" }, badge(make, side), make("span", { class: "hidden", text: side }))),
      make("th", { scope: "col", text: t("difference") }))),
    make("tbody", {}, rows.names.map((name, index) => make("tr", { class: index === most && Math.abs(gap) >= SMALL ? "compare-most" : "" },
      make("th", { scope: "row" }, context.bidi(name)), bar("a", rows.a[index]), bar("b", rows.b[index]), signed(rows.b[index] - rows.a[index])))),
    whole ? make("tfoot", {}, make("tr", {}, make("th", { scope: "row", text: t("whole") }), whole.map((x) => make("td", { class: "number", text: shown(x) })),
      make("td", { class: "number", text: shown(whole[1] - whole[0]) }))) : null);
  return [make("p", { class: "compare-sentence", text: sentence }), make("div", { class: "compare-scroll", tabindex: 0, role: "region", "aria-label": t("probabilities") }, table)];
};
