// What lies beyond one map: how far each head looks, and what the first layer looks for.
import { plot } from "../plot.js";

// told: the answer of /api/vision/distance. choose(layer). The element has chosen(layer, head).
export const distances = (context, parent, told, choose) => {
  const { t, make, shown } = context;
  const every = told.layers.flatMap(({ layer, pixels }) => pixels.map((value) => [layer, value]));
  const series = (layer, head) => [
    { name: t("chosen"), colour: 1, dots: 6, alone: true, points: layer === null ? [] : head < 0 ? [] : [[layer, told.layers[layer].pixels[head]]] },
    { name: t("heads"), colour: 0, dots: 4, alone: true, points: every },
    { name: t("averages"), colour: 5, points: told.layers.map((one) => [one.layer, one.mean]) },
    { name: t("cnn"), colour: 2, points: told.cnn.distance.map((value, index) => [index, value]) },
    { name: t("uniform"), colour: 4, points: [[0, told.uniform], [told.layers.length - 1, told.uniform]] },
  ].filter((one) => one.points.length);
  const picture = plot({
    label: t("distance"), keys: t("plotKeys"), height: 300, series: series(null, -1), y: { low: 0 },
    x: { title: t("distanceAxis"), whole: true, low: -0.25, high: told.layers.length - 0.75 }, onPin: choose,
    say: (layer) => {
      const found = told.layers[layer];
      if (layer === null || !found) return make("span", { quiet: t("distanceHint") });
      return [make("span", { text: t("distanceSay", { layer }) }), ...found.pixels.map((value, head) => make("span", { class: "number" },
        `${t("head", { head })} `, make("b", { text: t("pixels", { value: shown(value) }) })))];
    },
  }, parent);
  const box = make("section", { class: "vision-distance" }, make("h2", { text: t("distance") }), make("p", { quiet: t("distanceLead") }), picture);
  box.chosen = (layer, head) => picture.update({ series: series(layer, head) });
  return box;
};

// found: floats of /api/vision/filters, (K, C, h, w).
export const filters = (context, { data, shape: [count, colours, height, width], about }) => {
  const { t, make } = context;
  const tiles = Array.from({ length: count }, (_, number) => {
    const one = data.subarray(number * colours * height * width, (number + 1) * colours * height * width);
    const reach = one.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-12);
    const share = (100 * about.shares[number]).toFixed(1);
    const canvas = make("canvas", { class: "vision-filter", role: "img", "aria-label": t("filter", { number: number + 1, share }), title: t("filter", { number: number + 1, share }) });
    [canvas.width, canvas.height] = [width, height];
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(width, height);
    for (let at = 0; at < height * width; at += 1) {
      const level = (channel) => Math.round(128 + (127 * one[Math.min(channel, colours - 1) * height * width + at]) / reach);
      image.data.set([level(0), level(1), level(2), 255], 4 * at);
    }
    pen.putImageData(image, 0, 0);
    return make("figure", {}, canvas, make("figcaption", { class: "number quiet", text: `${share} %` }));
  });
  return make("section", { class: "vision-filters" }, make("h2", { text: t("filters") }), make("p", { quiet: t("filtersLead", { name: t(about.name) }) }),
    make("div", {}, tiles));
};
