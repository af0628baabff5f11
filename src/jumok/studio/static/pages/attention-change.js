// What the model says with all heads and without some, and how the probabilities of what it said change.

const MOST = 64;

// show(answer, [{name, text}] of heads that are gone, the words of the button that takes one away). restore(name), restoreAll().
export const changeOf = (context, { restore, restoreAll }) => {
  const { make, t, shown, bidi } = context;
  const box = make("div", { class: "attention-change" });
  const percent = (share) => shown((share ?? NaN) * 100);
  const meter = (share, kind) => make("span", { class: `attention-meter ${kind}`, style: { width: `${(share ?? 0) * 64}px` }, "aria-hidden": true });
  const number = (share) => make("td", { class: "number", title: share === null ? "" : String(share), text: percent(share) });
  const said = (label, text, kind = "") => make("div", { class: `attention-said-line ${kind}` },
    make("span", { quiet: label }), text ? bidi(text) : make("bdi", { text: t("nothing") }));

  const tableOf = (before, after) => {
    const events = before.events.slice(0, MOST);
    const groups = events.some((event) => event.group);
    const others = events.some((event, index) => after && event.likeliest.length && after.events[index].likeliest[0][0] !== event.likeliest[0][0]);
    const rows = events.map((event, index) => {
      const now = after?.events[index];
      const best = now?.likeliest[0];
      const other = best && best[0] !== (event.likeliest[0] ?? [])[0];
      const lost = now && event.probability - (now.probability ?? 0) > 0.25;
      return make("tr", { class: lost ? "attention-lost" : "" },
        make("th", { scope: "row" }, bidi(event.name), groups ? make("span", { quiet: ` ${event.group}` }) : null),
        make("td", { class: "attention-bars" }, meter(event.probability, "before"), now ? meter(now.probability, "after") : null),
        number(event.probability), now ? number(now.probability) : null,
        now && others ? make("td", {}, other ? [bidi(best[0]), " ", make("span", { class: "quiet number", text: percent(best[1]) })] : "") : null);
    });
    const heads = [t("word"), "", `${t("before")} %`, ...(after ? [`${t("after")} %`, ...(others ? [t("gives")] : [])] : [])];
    return make("div", { class: "attention-scroll", tabindex: 0, role: "region", "aria-label": t("change") }, make("table", {},
      make("thead", {}, make("tr", {}, heads.map((text) => (text ? make("th", { scope: "col", text }) : make("td"))))), make("tbody", {}, rows)));
  };

  box.show = ({ outcome, changed }, gone, button) => {
    box.replaceChildren(...[
      gone.length ? make("div", { class: "row" }, gone.map((one) => make("span", { class: "attention-chip" }, one.text,
        make("button", { class: "small", "aria-label": `${t("back")}: ${one.text}`, title: t("back"), text: "×", onclick: () => restore(one.name) }))),
      gone.length > 1 ? make("button", { class: "small", text: t("restore"), onclick: restoreAll }) : null)
        : make("p", { quiet: `${t("headsNone")} ${t("changeLead", { button })}` }),
      changed ? said(t("withAll"), outcome.text) : null,
      changed ? said(t("withoutSome"), changed.text, changed.text === outcome.text ? "" : "attention-other") : null,
      changed && changed.text === outcome.text ? make("p", { quiet: t("same") }) : null,
      outcome.events.length ? tableOf(outcome, changed) : null,
      outcome.events.length > MOST ? make("p", { quiet: t("only", { n: MOST, all: outcome.events.length }) }) : null,
    ].filter(Boolean));
  };
  return box;
};
