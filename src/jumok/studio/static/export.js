// Export of the view that is shown: a drawing (SVG), a picture (PNG), or a page that works without the studio (HTML).
import { asker, Recorder } from "./asking.js";
import { sharpness } from "./colour.js";

// pixels of a picture for one of the page
const SHARP = 2;
// of a picture, in pixels of the page
const WIDEST = 4000;
const SVG = "http://www.w3.org/2000/svg";
const NOT_DRAWN = "script, style, link, dialog, .hidden, option, datalist";
// in XML
const ILLEGAL = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const legal = (text) => text.replace(ILLEGAL, "\ufffd");
const round = (value) => Math.round(value * 100) / 100;

const drawn = (name, attributes, ...inside) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(key, typeof value === "number" ? round(value) : legal(String(value)));
  }
  element.append(...inside);
  return element;
};

const clear = (colour) => colour === "transparent" || /, 0\)$|\/ 0\)$/.test(colour);
const px = (value) => parseFloat(value) || 0;

// ------------------------------------------------------------ parts of a drawing

// background and border
const boxOf = (style, { left, top, width, height }) => {
  const sides = ["Top", "Right", "Bottom", "Left"].map((side) => {
    const wide = style[`border${side}Style`] === "none" ? 0 : px(style[`border${side}Width`]);
    return { wide, colour: style[`border${side}Color`], dashed: style[`border${side}Style`] === "dashed" };
  });
  const same = sides.every(({ wide, colour }) => wide === sides[0].wide && colour === sides[0].colour);
  const half = same ? sides[0].wide / 2 : 0;
  const fill = clear(style.backgroundColor) ? "none" : style.backgroundColor;
  const stroke = same && half && !clear(sides[0].colour) ? sides[0].colour : undefined;
  const parts = [];
  if (fill !== "none" || stroke) {
    const round = style.borderTopLeftRadius.endsWith("%") ? Math.min(width, height) / 2 : px(style.borderTopLeftRadius);
    parts.push(drawn("rect", {
      x: left + half, y: top + half, width: Math.max(0, width - 2 * half), height: Math.max(0, height - 2 * half),
      rx: Math.max(0, Math.min(round - half, width / 2, height / 2)) || undefined, fill, stroke,
      "stroke-width": stroke && 2 * half, "stroke-dasharray": stroke && sides[0].dashed ? "3 2" : undefined,
    }));
  }
  if (same) return parts;
  const [right, bottom] = [left + width, top + height];
  const ends = [[left, top, right, top], [right, top, right, bottom], [left, bottom, right, bottom], [left, top, left, bottom]];
  sides.forEach(({ wide, colour }, index) => {
    if (!wide || clear(colour)) return;
    const [x1, y1, x2, y2] = ends[index];
    const [dx, dy] = [[0, wide / 2], [-wide / 2, 0], [0, -wide / 2], [wide / 2, 0]][index];
    parts.push(drawn("line", { x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy, stroke: colour, "stroke-width": wide }));
  });
  return parts;
};

const pen = document.createElement("canvas").getContext("2d");
const written = (text, style, left, top, width, height) => {
  pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = pen.measureText("x");
  return drawn("text", {
    x: left, y: top + (height - up - down) / 2 + up, fill: style.color, "font-family": style.fontFamily.replaceAll('"', "'"),
    "font-size": style.fontSize, "font-weight": style.fontWeight, "font-style": style.fontStyle === "normal" ? undefined : style.fontStyle,
    direction: style.direction === "rtl" ? "rtl" : undefined, "xml:space": "preserve",
    // letters stay where they were, whatever font there is
    textLength: width || undefined, lengthAdjust: width ? "spacingAndGlyphs" : undefined,
  }, legal(text));
};

// a text of the page, line by line
const lines = (node, style, from) => {
  const range = document.createRange();
  const found = [];
  const letters = [...node.data];
  let [line, place] = [null, 0];
  for (const letter of letters) {
    range.setStart(node, place);
    place += letter.length;
    range.setEnd(node, place);
    const box = range.getClientRects()[0];
    if (box?.width === 0 || !box) continue;
    if (line && Math.abs(box.top - line.top) < box.height / 2) {
      line.text += letter;
      [line.left, line.right] = [Math.min(line.left, box.left), Math.max(line.right, box.right)];
    } else {
      line = { text: letter, left: box.left, right: box.right, top: box.top, height: box.height };
      found.push(line);
    }
  }
  const pre = style.whiteSpace.startsWith("pre");
  const cased = (text) => (style.textTransform === "uppercase" ? text.toUpperCase() : text);
  return found.filter(({ text }) => text.trim()).map(({ text, left, right, top, height }) =>
    written(cased(pre ? text : text.replace(/\s/g, " ")), style, left - from.left, top - from.top, right - left, height));
};

// what is written or drawn before and after an element's own content, which has no place of its own to be asked for
const beside = (node, style, box) => ["::before", "::after"].flatMap((which) => {
  const own = getComputedStyle(node, which);
  if (["none", "normal"].includes(own.content) || own.display === "none" || own.visibility === "hidden") return [];
  const text = own.content.replace(/^"|"$/g, "");
  const [width, height] = [px(own.width), px(own.height)];
  const moved = own.transform.startsWith("matrix(") ? px(own.transform.split(",")[4]) : 0;
  const free = own.position === "absolute";
  const left = box.left + (free ? px(own.left) + moved : px(style.paddingLeft));
  const top = box.top + (free ? px(own.top) : (Math.min(box.height, px(style.lineHeight) || box.height) - height) / 2);
  if (text) return [written(text, own, left, free ? box.top : top, 0, free ? box.height : height || px(own.fontSize) * 1.2)];
  return width && height ? boxOf(own, { left, top, width, height }) : [];
});

// fields and switches, as far as a drawing can have them
const fieldOf = (node, style, box) => {
  const kind = node.localName === "input" ? node.type : node.localName;
  const middle = box.top + box.height / 2;
  if (kind === "range") {
    const share = (node.value - node.min) / (node.max - node.min || 1);
    const x = box.left + 8 + share * (box.width - 16);
    return [drawn("line", { x1: box.left, x2: box.left + box.width, y1: middle, y2: middle, stroke: style.color, "stroke-opacity": 0.35, "stroke-width": 3 }),
      drawn("circle", { cx: x, cy: middle, r: 7, fill: style.accentColor === "auto" ? style.color : style.accentColor })];
  }
  if (["checkbox", "radio"].includes(kind) && style.appearance !== "none") {
    const rx = kind === "radio" ? box.width / 2 : 2;
    const filled = style.accentColor === "auto" ? style.color : style.accentColor;
    return [drawn("rect", { x: box.left, y: box.top, width: box.width, height: box.height, rx, fill: node.checked ? filled : "none", stroke: filled })];
  }
  const text = kind === "select" ? node.selectedOptions[0]?.textContent : kind === "textarea" || ["text", "search", "number"].includes(kind) ? node.value || node.placeholder : undefined;
  if (!text) return [];
  const high = kind === "textarea" ? px(style.lineHeight) + 2 * px(style.paddingTop) : box.height;
  return [written(text.split("\n")[0], style, box.left + px(style.paddingLeft) + 1, box.top, 0, high)];
};

const PRESENTED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "visibility", "display"];
const copied = (node) => {
  const copy = node.cloneNode(false);
  const style = getComputedStyle(node);
  for (const name of ["class", "style", "id"]) copy.removeAttribute(name);
  for (const name of PRESENTED) copy.setAttribute(name, style.getPropertyValue(name).replaceAll('"', "'"));
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(legal(child.data));
    else if (child.nodeType === Node.ELEMENT_NODE) copy.append(copied(child));
  }
  return copy;
};

const pictured = (node, box) => {
  let source = node;
  if (node.localName === "img") {
    source = document.createElement("canvas");
    [source.width, source.height] = [node.naturalWidth || 1, node.naturalHeight || 1];
    source.getContext("2d").drawImage(node, 0, 0);
  }
  const { imageRendering } = getComputedStyle(node);
  return drawn("image", { href: source.toDataURL("image/png"), x: box.left, y: box.top, width: box.width, height: box.height, preserveAspectRatio: "none", "image-rendering": imageRendering },
    drawn("title", {}, legal(node.getAttribute("aria-label") ?? node.alt ?? "")));
};

// ------------------------------------------------------------ the view as a drawing

// Texts as texts, pictures as pictures, boxes as boxes, each where the page has it: any program can open it.
const drawing = (view) => {
  const from = view.getBoundingClientRect();
  const whole = drawn("svg", {});
  const [width, height] = [Math.ceil(from.width), Math.ceil(view.scrollHeight)];
  let clips = 0;
  const draw = (node, into) => {
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data.trim()) into.append(...lines(node, getComputedStyle(node.parentElement), from));
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(NOT_DRAWN)) return;
    const style = getComputedStyle(node);
    const seen = node.getBoundingClientRect();
    if (style.display === "none" || style.opacity === "0") return;
    const box = { left: seen.left - from.left, top: seen.top - from.top, width: seen.width, height: seen.height };
    let place = into;
    if (style.opacity !== "1") into.append(place = drawn("g", { opacity: style.opacity }));
    if (style.visibility !== "hidden") {
      if (style.display !== "contents") place.append(...boxOf(style, box));
      if (node.namespaceURI === SVG) {
        const copy = copied(node);
        for (const [key, value] of [["x", box.left], ["y", box.top], ["width", box.width], ["height", box.height]]) copy.setAttribute(key, round(value));
        place.append(copy);
        return;
      }
      if (["canvas", "img"].includes(node.localName)) {
        if (box.width && box.height) place.append(pictured(node, box));
        return;
      }
      place.append(...beside(node, style, box), ...(node.matches("input, select, textarea") ? fieldOf(node, style, box) : []));
    }
    if (node.matches("select, textarea")) return;
    const cut = style.overflowX !== "visible" && (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1);
    if (cut) {
      const id = `cut${clips++}`;
      place.append(drawn("clipPath", { id }, drawn("rect", { x: box.left, y: box.top, width: box.width, height: box.height })));
      place.append(place = drawn("g", { "clip-path": `url(#${id})` }));
    }
    for (const child of node.childNodes) draw(child, place);
  };
  draw(view, whole);
  for (const [key, value] of [["width", width], ["height", height], ["viewBox", `0 0 ${width} ${height}`]]) whole.setAttribute(key, value);
  whole.prepend(drawn("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }));
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

// Canvases are drawn with as many pixels as a picture has, the view as wide as what can be scrolled in it; and then as before.
const sharply = async (view, act) => {
  const again = async (ratio, width) => {
    sharpness.ratio = ratio;
    view.style.minWidth = width;
    document.dispatchEvent(new Event("themechange"));
    await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
  };
  const beyond = [...view.querySelectorAll("*")].filter((one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX))
    .map((one) => one.scrollWidth - one.clientWidth);
  await again(SHARP, `${Math.min(WIDEST, view.offsetWidth + Math.max(0, ...beyond))}px`);
  try {
    return act();
  } finally {
    await again(0, "");
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
    const drawn = await sharply(view, () => drawing(view));
    saved(kind === "svg" ? new Blob([drawn.text], { type: "image/svg+xml" }) : await picture(drawn), name);
  }
  return name;
};
