// What a lesson computes at once: sliders, and the curves or maps that Python gives for them.
import { plot } from "../plot.js";

const shownPower = (value) => String(2 ** Math.round(value));

// lesson.live: {about, sliders, names, facts}; the values of the sliders are in the state, as v.KEY
export const livePart = async (context, lesson) => {
  const { make, t, controls } = context;
  const { sliders, names, about, facts: factsTitle } = lesson.live;
  const named = (key) => names[key] ?? key;
  const valueOf = ({ key, low, high, value }) => {
    const asked = context.state[`v.${key}`];
    return typeof asked === "number" && asked >= low && asked <= high ? asked : value;
  };
  const place = make("div", { class: "lessons-live-place" });
  const facts = make("dl", { class: "lessons-facts", "aria-live": "polite" });
  let chart = null;
  let maps = null;
  let [busy, again] = [false, false];

  const drawMaps = (found) => {
    const entries = Object.entries(found.maps);
    const count = entries[0][1].length;
    const labels = Array.from({ length: count }, (_, index) => String(index + 1));
    maps ??= new Map();
    if (maps.count !== count) {
      maps.count = count;
      maps.clear();
      place.replaceChildren(...entries.map(([name, rows]) => {
        const map = context.matrix({ label: named(name), rows: labels, columns: labels, data: Float32Array.from(rows.flat()), scale: 1, bright: true, height: 300 });
        maps.set(name, map);
        return make("figure", { class: "lessons-map" }, make("figcaption", { text: named(name) }), map);
      }));
      place.classList.add("lessons-maps");
      return;
    }
    for (const [name, rows] of entries) maps.get(name).update({ data: Float32Array.from(rows.flat()) });
  };
  const drawLines = (found) => {
    const options = {
      label: `${lesson.title}: ${named(found.y)}`,
      title: named(found.y),
      x: { title: named(found.x), log: found.log_x, low: found.log_x ? null : Math.min(0, ...Object.values(found.lines).flat().map(([x]) => x)) },
      y: { log: found.log, low: found.range[0], high: found.range[1] },
      series: Object.entries(found.lines).map(([name, points], index) => ({ name: named(name), points, colour: index, dots: found.dots ? 3 : 0 })),
    };
    if (chart) chart.update(options);
    else {
      chart = plot({ ...options, values: true, height: 300 }, context);
      place.replaceChildren(chart);
    }
  };
  const once = async () => {
    const values = Object.fromEntries(sliders.map((slider) => [slider.key, valueOf(slider)]));
    const found = await context.json("/api/lessons/live", { name: lesson.name, values });
    if (Object.keys(found.maps).length) drawMaps(found);
    else drawLines(found);
    facts.replaceChildren(...Object.entries(found.facts).map(([name, value]) => make("div", {},
      make("dt", { text: named(name) }), make("dd", { class: "number", text: context.shown(value) }))));
    facts.hidden = !Object.keys(found.facts).length;
  };
  // One question at a time: a slider moves faster than it is answered, and only where it stands matters.
  const compute = async () => {
    again = true;
    if (busy) return;
    busy = true;
    try {
      while (again) {
        again = false;
        await once();
      }
    } finally {
      busy = false;
    }
  };
  const bar = make("div", { class: "bar" }, sliders.map((slider) => controls.slider(slider.label, {
    min: slider.low, max: slider.high, step: slider.step, value: valueOf(slider), shown: slider.power ? shownPower : context.shown,
  }, (value) => {
    context.set({ [`v.${slider.key}`]: value });
    compute();
  })));
  const element = make("section", { class: "card lessons-live", "aria-labelledby": "lessons-try" },
    make("h3", { id: "lessons-try", text: t("tryIt") }), make("p", { text: about }), bar, place,
    factsTitle ? make("p", { class: "quiet lessons-facts-title", text: factsTitle }) : null, facts);
  await compute();
  return element;
};
