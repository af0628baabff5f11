// What is looked at: the text or texts that the run's task needs, a translation to force, a language, a checkpoint.

// ask({text, second, target, tag, update}) with what has changed. The element has fill(values).
export const formOf = (context, ask) => {
  const { make, t, run, controls } = context;
  const translates = run.task === "translation";
  const twice = ["answering", "regression"].includes(run.task) || run.task === "classification";
  const labels = {
    text: translates ? t("sentence") : run.task === "answering" ? t("question") : t("text"),
    second: run.task === "answering" ? t("context") : t("second"), target: t("target"),
  };
  const fields = {};
  const send = () => ask(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, input(field).value])));
  const input = (field) => field.querySelector("input");
  const add = (name, attributes = {}) => { fields[name] = controls.field(labels[name], "", send, { maxlength: 8000, dir: "auto", ...attributes }); };
  add("text", translates && run.languages ? { lang: run.languages[0] } : {});
  if (twice) add("second");
  if (translates) add("target", { placeholder: t("own"), ...(run.languages ? { lang: run.languages[1] } : {}) });
  const extra = make("div", { class: "attention-extra" });
  const box = make("div", { class: `attention-form attention-form-${Object.keys(fields).length}` }, Object.values(fields), extra,
    controls.button(t("look"), send, "main"));
  box.fill = ({ tags = [], tag, update, ...values }) => {
    for (const [name, field] of Object.entries(fields)) input(field).value = values[name] ?? "";
    const known = run.checkpoints ?? [];
    extra.replaceChildren(...[
      tags.length > 1 ? controls.select(t("tag"), tags, tag ?? tags[0], (chosen) => ask({ tag: chosen })) : null,
      known.length > 1 ? controls.select(t("checkpoint"), [[null, t("best")], ...known.map((one) => [one, t("update", { n: one.toLocaleString(context.language) })])],
        update ?? null, (chosen) => ask({ update: chosen })) : null,
    ].filter(Boolean));
  };
  return box;
};
