// The lab's experiments in order: the claim, something to turn, what was measured, and to run it.
import { livePart } from "./lessons-live.js";
import { resultPart } from "./lessons-results.js";
import words from "../words/lessons.json" with { type: "json" };

export default {
  name: "lessons",
  styles: true,
  words,
  needs: () => true,

  async show(place, context) {
    const { make, t } = context;
    const { language } = context;
    const load = async () => (await context.json("/api/lessons/list", { language })).lessons;
    let lessons = await load();
    const index = Math.max(0, lessons.findIndex(({ name }) => name === context.state.lesson));
    const { name, number } = lessons[index];

    // Which were read is in the address, too: a bit for each.
    const before = Number.isInteger(context.state.seen) && context.state.seen > 0 ? context.state.seen : 0;
    const read = (before % 2 ** lessons.length) | (1 << index);
    context.set({ lesson: name, seen: read });
    const kept = { seen: read, ...Object.fromEntries(["run", "lang", "theme"].filter((key) => key in context.state).map((key) => [key, context.state[key]])) };
    const href = (lesson) => context.link("lessons", { ...kept, lesson });

    // ------------------------------------------------------------ the list

    const rows = make("ol", { class: "lessons-list" });
    const drawList = () => rows.replaceChildren(...lessons.map((one, at) => make("li", {},
      make("a", { href: href(one.name), "aria-current": one.name === name ? "page" : null },
        make("span", { class: "lessons-number", "aria-hidden": true, text: one.number }),
        make("span", { class: "lessons-title", text: one.title }),
        make("span", { class: "quiet lessons-held", text: t("heldOf", { held: one.held, of: one.of }) }),
        (read >> at) & 1 ? make("span", { class: "lessons-seen" }, make("span", { "aria-hidden": true, text: "✓" }), make("span", { class: "hidden", text: t("seen") })) : null))));
    drawList();
    const chooser = context.controls.select(t("lesson"), lessons.map((one) => [one.name, `${one.number}. ${one.title}`]), name, (lesson) => context.go({ page: "lessons", lesson, seen: kept.seen }));
    chooser.classList.add("lessons-chooser");

    // ------------------------------------------------------------ the lesson

    const lesson = await context.json("/api/lessons/lesson", { name, language });
    const result = resultPart(context, lesson, async () => {
      lessons = await load();
      drawList();
    });
    const text = (key) => make("section", {}, make("h3", { text: t(key) }), make("p", { text: lesson[key] }));
    const step = (at, word, kind) => (lessons[at] ? make("a", { class: `lessons-step lessons-${kind}`, rel: kind, href: href(lessons[at].name) },
      make("span", { quiet: t(word) }), make("span", { text: `${lessons[at].number}. ${lessons[at].title}` })) : make("span"));
    const live = lesson.live ? make("div", { class: "lessons-parts" }) : null;
    const content = make("article", { class: "lessons-lesson", "aria-labelledby": "lessons-heading" },
      make("p", { class: "quiet lessons-place" }, t("place", { number, count: lessons.length })),
      make("h2", { id: "lessons-heading", text: lesson.title }),
      make("div", { class: "lessons-texts" }, text("claimed"), text("measured")),
      make("p", { class: "quiet lessons-source" }, t("from", { source: "" }), make("span", { lang: "en", text: lesson.source })),
      live, result.element,
      make("nav", { class: "lessons-steps", "aria-label": t("list") }, step(index - 1, "previous", "prev"), step(index + 1, "next", "next")));
    place.append(make("div", { class: "lessons-page" },
      make("nav", { class: "lessons-nav", "aria-label": t("list") }, rows, chooser), content));
    const current = rows.querySelector("[aria-current]");
    // the list, not the page
    rows.parentElement.scrollTop = Math.max(0, current.offsetTop - rows.parentElement.clientHeight / 2);
    if (live) live.append(await livePart(context, lesson));
    await result.show();
  },
};
