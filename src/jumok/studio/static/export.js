// Export of the view that is shown: a drawing (SVG), a picture (PNG), or a page that works without the studio (HTML).
import { asker, Recorder } from "./asking.js";
import { sharpness } from "./colour.js";

// pixels of a picture for one of the page
const SHARP = 2;
const [HTML, SVG] = ["http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"];
const NOT_DRAWN = "script, style, link, dialog";

// ------------------------------------------------------------ styles: each element's own, but for what it has anyway

// what an element of a name looks like that nobody has styled
const plainStyles = () => {
  const frame = document.createElement("iframe");
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  Object.assign(frame.style, { position: "fixed", left: "-9999px", width: "1024px", height: "64px" });
  document.body.append(frame);
  const inside = frame.contentDocument;
  const drawn = inside.body.appendChild(inside.createElementNS(SVG, "svg"));
  const known = new Map();
  const of = (element) => {
    const name = `${element.namespaceURI} ${element.localName} ${element.type ?? ""}`;
    if (!known.has(name)) {
      const bare = inside.createElementNS(element.namespaceURI, element.localName);
      if (element.localName === "input") bare.setAttribute("type", element.type);
      (element.namespaceURI === SVG ? drawn : inside.body).append(bare);
      const found = frame.contentWindow.getComputedStyle(bare);
      known.set(name, new Map([...found].map((key) => [key, found.getPropertyValue(key)])));
      bare.remove();
    }
    return known.get(name);
  };
  return { of, remove: () => frame.remove() };
};

const INHERITED = /^(?:color|font|line-height|letter-spacing|text-align|white-space|word-|overflow-wrap|list-style|fill|stroke|visibility|text-anchor|dominant-baseline)/;
const LEFT_OUT = /^(?:-|block-size|inline-size|(?:min|max)-(?:block|inline)|perspective-origin|transform-origin|cursor|transition|animation|inset-|(?:margin|padding|border)-(?:block|inline))/;
const stylesOf = (element, pseudo, plain) => {
  const found = getComputedStyle(element, pseudo);
  const lines = [];
  for (const key of found) {
    const value = found.getPropertyValue(key);
    if (!LEFT_OUT.test(key) && (INHERITED.test(key) || plain.get(key) !== value)) lines.push(`${key}:${value}`);
  }
  return lines.join(";").replace(/position:(?:sticky|fixed)/, "position:relative");
};

// ------------------------------------------------------------ a copy of the view that needs nothing around it

const KEPT = new Set(["type", "min", "max", "step", "colspan", "rowspan", "lang", "dir", "open", "value", "start"]);
// in XML
const ILLEGAL = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const legal = (text) => text.replace(ILLEGAL, "\ufffd");

// the element that stands for this one where there are no scripts
const stood = (node) => {
  const other = (name, text) => {
    const element = document.createElementNS(HTML, name);
    if (text !== undefined) element.append(legal(text));
    return element;
  };
  if (node.localName === "canvas") {
    const image = other("img");
    image.setAttribute("src", node.toDataURL("image/png"));
    image.setAttribute("alt", legal(node.getAttribute("aria-label") ?? ""));
    return image;
  }
  if (node.localName === "select") return other("div", node.selectedOptions[0]?.textContent ?? "");
  if (node.localName === "textarea") return other("div", node.value);
  if (node.localName === "input" && ["text", "search", "number"].includes(node.type)) return other("div", node.value);
  const copy = document.createElementNS(node.namespaceURI, node.localName);
  for (const { name, value } of node.attributes) {
    const kept = node.namespaceURI === SVG ? !/^(?:class|style|on)/.test(name) : KEPT.has(name);
    if (kept) copy.setAttribute(name, legal(value));
  }
  if (node.localName === "input") {
    copy.setAttribute("value", legal(node.value));
    if (node.checked) copy.setAttribute("checked", "");
  }
  return copy;
};

const copied = (view, width) => {
  const plain = plainStyles();
  // elements that look the same share a class
  const classes = new Map();
  const copy = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(legal(node.data));
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(NOT_DRAWN)) return null;
    const shape = getComputedStyle(node);
    if (shape.display === "none") return null;
    const result = stood(node);
    let rules = `{${stylesOf(node, null, plain.of(result))}`;
    if (result.localName !== node.localName) rules += `;width:${shape.width};height:${shape.height};white-space:nowrap;overflow:hidden`;
    rules += "}";
    for (const pseudo of ["::before", "::after"]) {
      if (!["none", "normal", ""].includes(getComputedStyle(node, pseudo).content)) {
        rules += `${pseudo}{${stylesOf(node, pseudo, plain.of(document.createElement("span")))}}`;
      }
    }
    if (!classes.has(rules)) classes.set(rules, `s${classes.size}`);
    result.setAttribute("class", classes.get(rules));
    if (result.localName === node.localName) result.append(...[...node.childNodes].map(copy).filter(Boolean));
    return result;
  };
  const body = copy(view);
  plain.remove();
  const sheet = document.createElementNS(HTML, "style");
  sheet.textContent = [...classes].map(([rules, name]) => `.${name}${rules.replaceAll("}::", `}\n.${name}::`)}`).join("\n")
    + `\n.${body.getAttribute("class")}{width:${width}px;margin:0}`;
  body.prepend(sheet);
  return body;
};

const drawing = (view) => {
  const box = view.getBoundingClientRect();
  const [width, height] = [Math.ceil(box.width), Math.ceil(view.scrollHeight)];
  const whole = document.createElementNS(SVG, "svg");
  whole.setAttribute("width", width);
  whole.setAttribute("height", height);
  whole.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const paper = document.createElementNS(SVG, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  const inside = document.createElementNS(SVG, "foreignObject");
  inside.setAttribute("width", width);
  inside.setAttribute("height", height);
  inside.append(copied(view, width));
  whole.append(paper, inside);
  return { text: new XMLSerializer().serializeToString(whole), width, height };
};

const picture = async ({ text, width, height }) => {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * SHARP, height * SHARP];
  const pen = canvas.getContext("2d");
  pen.scale(SHARP, SHARP);
  pen.drawImage(image, 0, 0);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
};

// Canvases are drawn with as many pixels as a picture has, and then as before.
const sharply = async (act) => {
  const again = async (ratio) => {
    sharpness.ratio = ratio;
    document.dispatchEvent(new Event("themechange"));
    await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
  };
  await again(SHARP);
  try {
    return act();
  } finally {
    await again(0);
  }
};

const page = async (shell, t) => {
  const { json } = asker(new Recorder(), t, new AbortController().signal);
  const told = await json(`/api/offline/${shell.page}`);
  const answers = shell.recorder.answers();
  const here = ({ name }) => name === shell.header.run?.name || answers.some(
    ([question]) => question.includes(JSON.stringify(name)) || question.includes(`=${encodeURIComponent(name)}`));
  const state = { ...shell.state, lang: shell.language, theme: document.documentElement.dataset.theme, run: shell.header.run?.name };
  // of runs that are not in this view the file says nothing
  const data = { page: shell.page, state, language: shell.language, runs: shell.runs.filter(here), answers, cut: shell.recorder.cut };
  const text = JSON.stringify(data).replaceAll("<", "\\u003c");
  const [before, after] = told.page.split(told.mark);
  return new Blob([before, `<script type="application/json" id="offline">${text}</script>`, after], { type: "text/html" });
};

const saved = (blob, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

// kind: "png", "svg" or "html". Gives the name of the file.
export const exported = async (kind, { view, shell, t }) => {
  const name = `jumok-${shell.page}.${kind}`;
  if (kind === "html") saved(await page(shell, t), name);
  else {
    const drawn = await sharply(() => drawing(view));
    saved(kind === "svg" ? new Blob([drawn.text], { type: "image/svg+xml" }) : await picture(drawn), name);
  }
  return name;
};
