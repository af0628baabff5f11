// What a page is given: words, state, questions to the studio, and the parts that all pages share.
import { asker } from "./asking.js";
import { channels, colour, legend, paint, signedColour, signedInk, theme } from "./colour.js";
import * as controls from "./controls.js";
import { css, penOf } from "./drawing.js";
import { matrix, scaleOf, stamp } from "./matrix.js";
import { bidi, make, shown, visible } from "./text.js";
import { shellSpeaker, speaker } from "./words.js";

// draw(pen, width, height) in CSS pixels; the canvas has redraw() and resize(width, height).
const canvasFor = (signal) => (width, height, draw, label = "") => {
  const element = make("canvas", { role: "img", "aria-label": label });
  let size = [width, height];
  element.redraw = () => draw(penOf(element, ...size), ...size);
  element.resize = (...sides) => {
    size = sides;
    element.redraw();
  };
  document.addEventListener("themechange", element.redraw, { signal });
  element.redraw();
  return element;
};

// shell: {language, page, state, run, runs, set, go, notice, refresh, link, recorder, signal}
export const contextFor = (shell, words) => {
  const t = speaker(words, shell.language);
  const own = shellSpeaker(shell.language);
  const { signal } = shell;
  return {
    t, language: shell.language, run: shell.run, runs: shell.runs, signal,
    get state() { return shell.state(); },
    get theme() { return theme(); },
    set: shell.set, go: shell.go, notice: shell.notice, link: shell.link, refreshRuns: shell.refresh,
    ...asker(shell.recorder, own, signal),
    make, controls, canvas: canvasFor(signal),
    matrix: (options) => matrix(options, { t: own, signal }), stamp, scaleOf,
    colour, signedColour, signedInk, channels, paint, legend, css,
    shown, visible, bidi,
  };
};
