// The beam tree: a column for each step, in it the hypotheses from the likeliest down, lines to what they continue.
import { drawn } from "./translate-ribbon.js";

// of the root, nodes, columns; rows of the living, of others
const [ROOT, WIDTH, PITCH, HIGH, LOW, TOP] = [64, 118, 146, 36, 24, 28];
const left = (step) => (step ? ROOT + 30 + (step - 1) * PITCH : 2);
const GIVEN_UP = ["beam", "stopped", "cancelled"];
export const fixed = (x) => {
  if (x === null || !Number.isFinite(x)) return "−∞";
  const text = Math.abs(x).toFixed(2);
  return x < 0 && /[1-9]/.test(text) ? `−${text}` : text;
};
const plain = (piece) => (piece.length > 1 ? piece.replace(/^▁/, "") : piece);

// What a search answered as a tree: nodes by number, each with its children, its tokens and whether anything came of it.
export const grown = (found) => {
  const root = { number: 0, parent: null, step: 0, token: null, total: 0, score: 0, fate: "root", children: [], tokens: [] };
  const nodes = new Map([[0, root]]);
  for (const [number, parent, step, token, total, score, fate] of found.nodes) {
    const above = nodes.get(parent);
    const node = { number, parent: above, step, token, total, score, fate, children: [], piece: found.pieces[token] };
    node.ends = token === found.end;
    node.tokens = node.ends ? above.tokens : [...above.tokens, token];
    above.children.push(node);
    nodes.set(number, node);
  }
  for (const node of [...nodes.values()].reverse()) {
    node.lives = node.fate === "finished" || node.fate === "cut" || node.children.some((child) => child.lives);
  }
  return nodes;
};
export const spelled = (node, found) => node.tokens.map((token) => found.pieces[token]).join("").replaceAll("▁", " ").trim();

// force(tokens) when a node is clicked.
export const beamTree = (context, force) => {
  const { make, t, bidi } = context;
  const view = { nodes: new Map(), buttons: new Map(), current: 0 };
  const lines = drawn("svg", { "aria-hidden": true });
  const sheet = make("div", { class: "translate-sheet" });
  const frame = make("div", { class: "translate-tree", role: "group", "aria-label": t("tree") }, sheet);
  const told = make("div", { class: "translate-told", "aria-live": "polite" });
  const kinds = ["Best", "Alive", "Finished", "Pruned", "Forced"].map((name) => make("span", { class: `translate-key ${name.toLowerCase()}`, text: t(`key${name}`) }));
  const box = make("div", { class: "translate-beam" }, make("p", { class: "translate-keys quiet" }, kinds), frame, told);

  // options: {found, beam, prefix, shown (the output that is shown), pruned, now (tokens of the current step)}
  box.update = (options) => {
    Object.assign(view, options);
    view.nodes = grown(view.found);
    view.best = new Set([0, ...(view.found.outputs[view.shown]?.nodes ?? [])]);
    kinds[4].hidden = !view.prefix.length;
    place();
    draw();
    box.mark(view.now);
    tell(null);
  };
  const isForced = (node) => node.step > 0 && !node.ends && node.step <= view.prefix.length;
  const isSeen = (node) => view.pruned || !GIVEN_UP.includes(node.fate);

  const place = () => {
    const heights = [];
    for (const node of view.nodes.values()) {
      if (!isSeen(node)) continue;
      const high = GIVEN_UP.includes(node.fate) ? LOW : HIGH;
      node.x = left(node.step);
      node.y = (heights[node.step] ??= TOP) + high / 2;
      heights[node.step] += high;
    }
    view.size = [left(heights.length - 1) + WIDTH + 4, Math.max(...heights) + 4];
    view.steps = heights.length;
  };

  const draw = () => {
    const [width, height] = view.size;
    view.buttons = new Map();
    [sheet.style.width, sheet.style.height] = [`${width}px`, `${height}px`];
    for (const [name, value] of [["width", width], ["height", height], ["viewBox", `0 0 ${width} ${height}`]]) lines.setAttribute(name, value);
    const [edges, buttons] = [[], []];
    for (const node of view.nodes.values()) {
      if (!isSeen(node)) continue;
      const kind = kindOf(node);
      if (node.parent) {
        const [x, y, z] = [node.parent.x + (node.parent.step ? WIDTH : ROOT), node.parent.y, (PITCH - WIDTH) / 2 + 8];
        edges.push([view.best.has(node.number) ? 2 : GIVEN_UP.includes(node.fate) ? 0 : 1, drawn("path", { class: kind, d: `M${x} ${y}C${x + z} ${y} ${node.x - z} ${node.y} ${node.x} ${node.y}` })]);
      }
      buttons.push(button(node, kind));
    }
    // the best is drawn last
    lines.replaceChildren(...edges.sort((a, b) => a[0] - b[0]).map(([, path]) => path));
    const titles = Array.from({ length: view.steps - 1 }, (_, step) => make("span", {
      class: "translate-step quiet", text: t("stepTitle", { step: step + 1 }), style: { left: `${left(step + 1)}px` },
    }));
    sheet.replaceChildren(lines, ...titles, ...buttons);
    if (!view.buttons.has(view.current)) view.current = 0;
    view.buttons.get(view.current).tabIndex = 0;
  };
  const kindOf = (node) => [
    GIVEN_UP.includes(node.fate) ? "pruned" : node.fate === "finished" || node.fate === "cut" ? "finished" : node.lives || node.fate === "root" ? "alive" : "alive dead",
    view.best.has(node.number) ? "best" : "", isForced(node) ? "forced" : "",
  ].filter(Boolean).join(" ");

  const button = (node, kind) => {
    const label = node.fate === "root" ? t("begin") : node.ends ? `‹${t("end")}›` : plain(node.piece);
    const element = make("button", {
      class: `translate-node ${kind}`, tabindex: -1, dataset: { node: node.number, token: node.token ?? "" },
      style: { left: `${node.x}px`, top: `${node.y}px` },
      "aria-label": node.fate === "root" ? t("begin") : `${context.visible(label)}, ${t("stepTitle", { step: node.step })}, ${t("normalised")} ${fixed(node.score)}. ${fate(node)}`,
      onclick: (event) => {
        // a first tap only looks
        if (event.pointerType === "touch" && view.told !== node.number) tell(node);
        else force(node.tokens);
      },
      onpointerenter: (event) => { if (event.pointerType !== "touch") tell(node); },
      onfocus: () => { if (element.matches(":focus-visible")) tell(node); },
    }, bidi(label), node.fate === "root" ? null : make("span", { class: "number", text: fixed(node.score) }));
    view.buttons.set(node.number, element);
    return element;
  };

  // ------------------------------------------------------------ what became of a node

  const fate = (node) => {
    const outputs = view.found.outputs;
    const rank = outputs.findIndex((one) => one.nodes.at(-1) === node.number);
    if (node.fate === "root") return t("fateRoot");
    if (GIVEN_UP.includes(node.fate)) return t({ beam: "fateBeam", stopped: "fateStopped", cancelled: "fateCancelled" }[node.fate], { beam: view.beam });
    if (isForced(node)) return t("fateForced");
    if (node.fate === "cut") return t("fateCut");
    if (node.fate === "finished") return rank >= 0 ? t("fateFinished", { rank: rank + 1 }) : t("fateOutdone", { count: outputs.length });
    return t(node.lives ? "fateAlive" : "fateDead", { beam: view.beam });
  };
  const tell = (node) => {
    view.told = node?.number ?? null;
    if (!node) {
      told.replaceChildren(make("p", { quiet: t("treeHint") }));
      return;
    }
    const number = (key, value) => [make("span", { quiet: `${t(key)} ` }), make("b", { class: "number", text: context.shown(value) }), " "];
    told.replaceChildren(
      make("p", { class: "translate-so-far" }, node.tokens.length || node.ends ? [bidi(spelled(node.ends ? node : node.parent, view.found) || t("begin"), { class: "quiet" }), " ", make("strong", {}, node.ends ? `‹${t("end")}›` : bidi(plain(node.piece)))] : make("strong", { text: t("begin") })),
      make("p", {}, node.parent ? [number("total", node.total), number("normalised", node.score), number("probability", Math.exp(node.total - node.parent.total))] : []),
      make("p", { text: fate(node) }));
  };
  frame.addEventListener("pointerleave", () => { if (!frame.contains(document.activeElement)) tell(null); });

  // ------------------------------------------------------------ keyboard

  const move = (number) => {
    if (!view.buttons.has(number)) return;
    view.buttons.get(view.current).tabIndex = -1;
    view.current = number;
    const element = view.buttons.get(number);
    element.tabIndex = 0;
    element.focus();
    tell(view.nodes.get(number));
  };
  frame.addEventListener("focusin", (event) => {
    const number = Number(event.target.dataset.node);
    if (!view.buttons.has(number) || number === view.current) return;
    view.buttons.get(view.current).tabIndex = -1;
    view.current = number;
    event.target.tabIndex = 0;
  });
  frame.addEventListener("keydown", (event) => {
    const node = view.nodes.get(view.current);
    const column = [...view.nodes.values()].filter((one) => one.step === node.step && isSeen(one));
    const children = node.children.filter(isSeen);
    const target = {
      ArrowLeft: () => node.parent, ArrowRight: () => children.find((one) => view.best.has(one.number)) ?? children[0],
      ArrowUp: () => column[column.indexOf(node) - 1], ArrowDown: () => column[column.indexOf(node) + 1],
      Home: () => view.nodes.get(0), End: () => view.nodes.get(view.found.outputs[view.shown]?.nodes.at(-1)),
    }[event.key];
    if (!target) return;
    event.preventDefault();
    event.stopPropagation();
    const next = target();
    if (next) move(next.number);
  });

  // The nodes of the word that is looked at, on the way of the output that is shown.
  box.mark = (places) => {
    view.now = places;
    const way = view.found?.outputs[view.shown]?.nodes ?? [];
    const on = new Set(places.map((place) => way[place]));
    for (const [number, element] of view.buttons) element.classList.toggle("now", on.has(number));
  };
  box.hasFocus = () => frame.contains(document.activeElement);
  box.focusTokens = (tokens) => {
    const found = [...view.nodes.values()].find((node) => !node.ends && String(node.tokens) === String(tokens));
    if (found) move(found.number);
  };
  return box;
};

// The n-best as a table; choose(rank).
export const bestList = (context, { outputs, shown }, choose) => {
  const { make, t } = context;
  const head = ["rank", "text", "total", "normalised"].map((key) => make("th", { scope: "col", class: key, text: t(key) }));
  const rows = outputs.map((one, rank) => make("tr", { class: rank === shown ? "on" : "" },
    make("td", { class: "number", text: rank + 1 }),
    make("td", {}, make("button", { "aria-pressed": String(rank === shown), onclick: () => choose(rank) }, context.bidi(one.text))),
    make("td", { class: "number", text: context.shown(one.log_probability) }), make("td", { class: "number", text: context.shown(one.score) })));
  return make("table", { class: "translate-list" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
};
