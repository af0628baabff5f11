"use strict";
// Misread words: filters, search, order, pages. Everything from data is written as text, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("reading-data").textContent);
  const form = document.querySelector("form.filters");
  const list = document.querySelector(".examples");
  const found = document.querySelector(".found");
  const pages = document.querySelector("nav.pages");
  const buttons = [...document.querySelectorAll("[data-field]")];

  // a row: number, file, written, read, how sure, kind, script, length, confusions, share that is wrong, picture
  const fields = { kind: (row) => [row[5]], script: (row) => [row[6]], size: (row) => [row[7]], confusion: (row) => row[8] };
  const word = (stretches) => stretches.map(([text]) => text).join("");
  const size = (row) => [...word(row[2])].length;
  const orders = {
    unsure: (a, b) => a[4] - b[4],
    far: (a, b) => b[9] - a[9],
    long: (a, b) => size(b) - size(a),
    data: (a, b) => a[0] - b[0],
  };
  const plain = (text) => text.normalize("NFC").toLowerCase();
  const percent = (share) => `${(Math.floor(1000 * share) / 10).toFixed(1)} %`; // never 100 % of what is not quite sure
  const many = (count) => count.toLocaleString("en");
  const make = (name, className = "", ...inner) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...inner);
    return element;
  };

  const written = (stretches, className) => {
    if (!stretches.length) return [make("i", "quiet", "(nothing)")];
    return stretches.map(([text, differs]) => (differs ? make("mark", className, text) : text));
  };

  const draw = (row) => {
    const [number, file, truth, read, sure, kind, , , , , picture] = row;
    const image = make("img");
    image.src = picture;
    image.alt = `“${word(truth)}”, read as “${word(read)}”`;
    const told = make("dl", "words",
      make("dt", "", "written"), make("dd", "", ...written(truth, "gold")),
      make("dt", "", "read"), make("dd", "", ...written(read, "said")));
    const about = make("p", "about", `${percent(sure)} sure · ${data.kinds[kind]}`);
    return make("article", "example", make("div", "picture", image), told, about,
      make("p", "file", `no. ${many(number)} · ${file}`));
  };

  let haystacks = null; // made when something is searched for the first time
  let chosen = data.rows;
  let page = 0;

  const show = () => {
    const last = Math.max(0, Math.ceil(chosen.length / data.page) - 1);
    page = Math.min(Math.max(page, 0), last);
    const from = page * data.page;
    const rows = chosen.slice(from, from + data.page);
    list.replaceChildren(...rows.map(draw));
    found.textContent = chosen.length
      ? `${many(chosen.length)} of ${many(data.rows.length)}; here ${many(from + 1)} to ${many(from + rows.length)}`
      : `0 of ${many(data.rows.length)}: nothing fits`;
    const turn = (said, label, to) => {
      const button = make("button", "", said);
      button.type = "button";
      button.setAttribute("aria-label", label);
      button.disabled = to < 0 || to > last || to === page;
      button.addEventListener("click", () => {
        page = to;
        show();
        found.scrollIntoView({ block: "nearest" });
      });
      return button;
    };
    pages.replaceChildren(...(last === 0 ? [] : [
      turn("«", "first page", 0), turn("‹", "page before", page - 1), make("span", "", `page ${page + 1} of ${last + 1}`),
      turn("›", "next page", page + 1), turn("»", "last page", last),
    ]));
  };

  const choose = () => {
    const asked = Object.entries(fields).filter(([name]) => form.elements[name].value !== "");
    const wanted = plain(form.elements.search.value.trim());
    if (wanted && !haystacks) {
      haystacks = new Map(data.rows.map((row) => [row, plain(`${word(row[2])}\n${word(row[3])}\n${row[1]}`)]));
    }
    chosen = data.rows.filter((row) => asked.every(([name, of]) => of(row).includes(Number(form.elements[name].value)))
      && (!wanted || haystacks.get(row).includes(wanted)));
    const order = orders[form.elements.order.value];
    if (order) chosen = [...chosen].sort(order);
    buttons.forEach((button) => {
      button.setAttribute("aria-pressed", String(form.elements[button.dataset.field].value === button.dataset.value));
    });
    page = 0;
    show();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", choose);
  form.addEventListener("reset", () => setTimeout(choose)); // after the fields are empty
  buttons.forEach((button) => button.addEventListener("click", () => {
    const off = button.getAttribute("aria-pressed") === "true";
    Object.keys(fields).forEach((name) => { form.elements[name].value = ""; });
    form.elements[button.dataset.field].value = off ? "" : button.dataset.value;
    choose();
    if (!off) document.getElementById("examples").scrollIntoView({ block: "start" });
  }));
  choose();
})();
