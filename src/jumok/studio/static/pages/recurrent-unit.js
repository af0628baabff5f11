// One unit at one token: what it kept, what was written, what it let out, as an equation with its numbers.

export const unitCard = (context) => {
  const { make, t, shown, bidi } = context;
  const box = make("div", { class: "recurrent-unit card", "aria-live": "polite" });
  const bar = (value, reach) => {
    const share = Math.min(1, Math.abs(value) / (reach || 1)) * 50;
    return make("span", { class: "recurrent-bar", "aria-hidden": true }, make("i", {
      style: { left: `${value < 0 ? 50 - share : 50}%`, width: `${share}%`, background: context.signedColour(value < 0 ? -0.7 : 0.7) },
    }));
  };
  const row = (sign, name, factors, value, reach, strong) => make("tr", { class: strong ? "recurrent-sum" : "" },
    make("td", { text: sign }), make("th", { scope: "row" }, name, factors ? make("small", { class: "quiet number", text: factors }) : null),
    make("td", {}, bar(value, reach)), make("td", { class: "number" }, make("b", { text: shown(value) })));

  // view: {kind, token, unit, step, numbers: {name: value}, before: {name: value} or null}
  box.tell = ({ kind, token, unit, numbers, before }) => {
    const now = (name) => numbers[name];
    const past = (name) => (before ? before[name] : 0);
    const rows = [];
    const parts = t("unit", { unit, token: "\u0000" }).split("\u0000");
    let equations = [t("rnnEquation")];
    if (kind === "lstm") {
      const kept = now("forget gate") * past("cell state");
      const written = now("cell state") - kept;
      const reach = Math.max(...[kept, written, now("cell state"), now("hidden state")].map(Math.abs), 1e-6);
      equations = [t("cellEquation"), t("hiddenEquation")];
      rows.push(row("", t("kept"), `f ${shown(now("forget gate"))} × ${shown(past("cell state"))}`, kept, reach),
        row("+", t("written"), `i ${shown(now("input gate"))} × g`, written, reach),
        row("=", t("cell"), "cₜ", now("cell state"), reach, true),
        row("→", t("hidden"), `o ${shown(now("output gate"))} × tanh(${shown(now("cell state"))})`, now("hidden state"), reach, true));
    } else if (kind === "gru") {
      const kept = now("update gate") * past("hidden state");
      const written = now("hidden state") - kept;
      const reach = Math.max(...[kept, written, now("hidden state")].map(Math.abs), 1e-6);
      equations = [t("gruEquation")];
      rows.push(row("", t("kept"), `z ${shown(now("update gate"))} × ${shown(past("hidden state"))}`, kept, reach),
        row("+", t("written"), `(1 − ${shown(now("update gate"))}) × n`, written, reach),
        row("=", t("hidden"), "hₜ", now("hidden state"), reach, true));
    } else {
      const reach = Math.max(Math.abs(past("hidden state")), Math.abs(now("hidden state")), 1e-6);
      rows.push(row("", t("before"), "hₜ₋₁", past("hidden state"), reach), row("→", t("hidden"), "hₜ", now("hidden state"), reach, true));
    }
    box.replaceChildren(make("h3", {}, parts[0], bidi(token), parts[1]),
      make("p", { class: "recurrent-equation" }, equations.map((one) => make("span", { text: one }))),
      make("table", {}, make("tbody", {}, rows)), before ? "" : make("p", { quiet: t("start") }));
  };
  return box;
};
