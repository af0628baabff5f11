"use strict";
// The examples of an evaluation: filters, search, order, pages. Everything from data is written as text, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("evaluation-data").textContent);
  const form = document.querySelector("form.filters");
  const list = document.querySelector(".examples");
  const found = document.querySelector(".found");
  const pages = document.querySelector("nav.pages");
  const cells = [...document.querySelectorAll("[data-gold], [data-predicted]")];
  const LONG = 600; // characters of a text that are shown at first
  const AROUND = 80; // characters before a place that must be seen in a longer text

  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const number = (value) => String(Number(Math.abs(value) < 0.001 || Math.abs(value) >= 1000
    ? value.toPrecision(4) : value.toFixed(3))).replaceAll("-", "−");
  const plain = (text) => text.normalize("NFC").toLowerCase();
  const by = (key) => (a, b) => key(b) - key(a);
  const make = (name, className = "", ...inner) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...inner);
    return element;
  };

  // ---------------------------------------------------------------- text with marks

  const hits = (text) => {
    const wanted = plain(form.elements.search.value.trim());
    const lower = text.toLowerCase();
    const places = [];
    if (!wanted || lower.length !== text.length) return places; // where lower case is longer, no place is sure
    for (let at = lower.indexOf(wanted); at >= 0 && places.length < 200; at = lower.indexOf(wanted, at + wanted.length)) {
      places.push([at, at + wanted.length, "hit"]);
    }
    return places;
  };

  const marked = (text, marks, start = 0, end = text.length) => {
    const cuts = new Set([start, end]);
    marks.forEach(([from, to]) => [from, to].forEach((cut) => { if (cut > start && cut < end) cuts.add(cut); }));
    const edges = [...cuts].sort((a, b) => a - b);
    return edges.slice(0, -1).map((from, index) => {
      const part = text.slice(from, edges[index + 1]);
      const kinds = new Set(marks.filter((mark) => mark[0] <= from && from < mark[1]).map((mark) => mark[2]));
      const hit = kinds.delete("hit") ? make("mark", "hit", part) : part;
      if (!kinds.size) return hit;
      return make("mark", kinds.size > 1 ? "both" : [...kinds][0], hit);
    });
  };

  // A text of any length: the long ones open around their first mark
  const passage = (text, className, marks = []) => {
    const element = make("p", className);
    if (data.language) element.lang = data.language;
    const all = [...marks, ...hits(text)];
    if (text.length <= LONG) {
      element.append(...marked(text, all));
      return element;
    }
    const first = all.length ? Math.min(...all.map((mark) => mark[0])) : 0;
    const start = first + AROUND > LONG ? first - AROUND : 0;
    const end = Math.min(text.length, Math.max(start + LONG, ...marks.map((mark) => mark[1])));
    const more = make("button", "more", "more");
    more.type = "button";
    more.addEventListener("click", () => element.replaceChildren(...marked(text, all)));
    element.append(start ? "… " : "", ...marked(text, all, start, end), end < text.length ? " …" : "", more);
    return element;
  };

  const verdict = (...rows) => make("dl", "verdict", ...rows.filter(Boolean).map(([name, value, className]) => (
    make("div", "", make("dt", "", name), make("dd", className ?? "", value)))));

  const meter = (share, off) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "meter");
    svg.setAttribute("aria-hidden", "true");
    [["100%", ""], [`${100 * share}%`, off ? "part off" : "part"]].forEach(([width, name]) => {
      const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      box.setAttribute("width", width);
      box.setAttribute("height", "100%");
      box.setAttribute("rx", "2");
      box.setAttribute("class", name);
      svg.append(box);
    });
    return svg;
  };

  const texts = (row) => {
    const both = make("div", "", passage(row[1], "text"));
    if (row[2] !== null) both.append(passage(row[2], "text second"));
    return both;
  };
  const name = (place) => data.names[place] || "(empty)";

  // ---------------------------------------------------------------- the kinds of examples

  const kinds = {
    labels: { // number, text, second, gold, predicted, probability, loss
      words: (row) => `${row[1]}\n${row[2] ?? ""}`,
      shown: { wrong: (row) => row[3] !== row[4], right: (row) => row[3] === row[4] },
      orders: { loss: by((row) => row[6]), sure: by((row) => row[5]), unsure: by((row) => -row[5]) },
      fits: (row, gold, predicted) => (gold === null || row[3] === gold) && (predicted === null || row[4] === predicted),
      draw: (row) => {
        const right = row[3] === row[4];
        const told = verdict(
          ["gold", name(row[3])],
          ["predicted", `${right ? "✓" : "✗"} ${name(row[4])}`, right ? "good" : "bad"],
          ["probability", percent(row[5])],
          ["loss", row[6].toFixed(2)],
        );
        return [texts(row), make("div", "", told, meter(row[5], !right))];
      },
    },
    numbers: { // number, text, second, gold, predicted
      words: (row) => `${row[1]}\n${row[2] ?? ""}`,
      shown: { high: (row) => row[4] > row[3], low: (row) => row[4] < row[3] },
      orders: { best: by((row) => -Math.abs(row[4] - row[3])), true: by((row) => row[3]) },
      draw: (row) => {
        const error = row[4] - row[3];
        const told = `${error > 0 ? "+" : ""}${number(error)}`;
        return [texts(row), verdict(["true", number(row[3])], ["predicted", number(row[4])], ["error", told, error ? "bad" : "good"])];
      },
    },
    tags: { // number, words, gold, predicted
      words: (row) => row[1].join(" "),
      wrong: (row) => row[2].reduce((sum, tag, place) => sum + (tag !== row[3][place]), 0),
      shown: { wrong: (row) => kinds.tags.wrong(row) > 0, right: (row) => kinds.tags.wrong(row) === 0 },
      orders: {
        share: by((row) => kinds.tags.wrong(row) / Math.max(1, row[1].length)),
        long: by((row) => row[1].length),
      },
      fits: (row, gold, predicted) => row[2].some((tag, place) => (
        (gold === null || tag === gold) && (predicted === null || row[3][place] === predicted))),
      draw: (row) => {
        const outside = (place) => (data.names[place] === "O" ? "" : name(place));
        const words = row[1].map((word, place) => {
          const [gold, said] = [row[2][place], row[3][place]];
          const off = gold !== said;
          const spoken = make("span", "", ...marked(word, hits(word)));
          if (data.language) spoken.lang = data.language;
          return make("span", off ? "word off" : "word",
            make("small", "", off ? name(gold) : outside(gold)), spoken, make("small", off ? "bad" : "", off ? name(said) : ""));
        });
        return [make("div", "words", ...words)];
      },
    },
    answers: { // number, question, context, gold texts, gold places, said (text and place) or null, best, exact, f1
      words: (row) => `${row[1]}\n${data.contexts[row[2]]}`,
      sure: (row) => (row[6].length ? row[6][0][1] : 0),
      shown: {
        wrong: (row) => !row[7],
        right: (row) => Boolean(row[7]),
        apart: (row) => row[8] === 0,
        none: (row) => row[3].length === 0,
      },
      orders: { sure: by((row) => kinds.answers.sure(row)), unsure: by((row) => -kinds.answers.sure(row)) },
      draw: (row) => {
        const [, question, context, gold, places, said, best, exact, f1] = row;
        const marks = places.map(([from, to]) => [from, to, "gold"]);
        if (said) marks.push([...said[1], "said"]);
        const middle = make("div", "", passage(question, "question"), passage(data.contexts[context], "text", marks));
        const none = "no answer";
        const told = verdict(
          ["gold", gold.length ? gold.join(" · ") : none],
          ["predicted", `${exact ? "✓" : "✗"} ${said ? said[0] : none}`, exact ? "good" : "bad"],
          ["F1", percent(f1)],
          best.length ? ["probability", percent(best[0][1])] : null,
        );
        const side = make("div", "", told);
        if (best.length > 1) {
          const others = best.map(([text, probability]) => make("li", "", `${text || none} (${percent(probability)})`));
          side.append(make("details", "", make("summary", "", `the ${best.length} best`), make("ol", "", ...others)));
        }
        return [middle, side];
      },
    },
  };
  kinds.images = { // as labels, where the text is the name of a file; and the image
    ...kinds.labels,
    missing: " (images that were right are not kept here)",
    shown: { sure: (row) => row[5] >= 0.9, unsure: (row) => row[5] < 0.5 },
    draw: (row) => {
      const image = make("img");
      image.src = row[7];
      image.alt = `${name(row[3])}, taken for ${name(row[4])}`;
      const told = verdict(["gold", name(row[3])], ["predicted", name(row[4]), "bad"], ["probability", percent(row[5])]);
      return [image, told, meter(row[5], true), passage(row[1], "file")];
    },
  };
  const kind = kinds[data.kind];
  let haystacks = null; // made when something is searched for the first time
  let chosen = data.rows;
  let page = 0;

  // ---------------------------------------------------------------- choosing and drawing

  const draw = () => {
    const last = Math.max(0, Math.ceil(chosen.length / data.page) - 1);
    page = Math.min(Math.max(page, 0), last);
    const rows = chosen.slice(page * data.page, (page + 1) * data.page);
    list.replaceChildren(...rows.map((row) => make("article", "example", make("span", "number", row[0].toLocaleString("en")), ...kind.draw(row))));
    const total = data.rows.length.toLocaleString("en");
    const from = page * data.page;
    found.textContent = chosen.length
      ? `${chosen.length.toLocaleString("en")} of ${total}; here ${(from + 1).toLocaleString("en")} to ${(from + rows.length).toLocaleString("en")}`
      : `0 of ${total}: nothing fits${kind.missing ?? ""}`;
    const turn = (said, label, to) => {
      const button = make("button", "", said);
      button.type = "button";
      button.setAttribute("aria-label", label);
      button.disabled = to < 0 || to > last || to === page;
      button.addEventListener("click", () => {
        page = to;
        draw();
        document.querySelector(".found").scrollIntoView({ block: "nearest" });
      });
      return button;
    };
    pages.replaceChildren(...(last === 0 ? [] : [
      turn("«", "first page", 0), turn("‹", "page before", page - 1), make("span", "", `page ${page + 1} of ${last + 1}`),
      turn("›", "next page", page + 1), turn("»", "last page", last),
    ]));
  };

  const value = (field) => form.elements[field]?.value || null;
  const place = (field) => (value(field) === null ? null : Number(value(field)));

  const choose = () => {
    const [gold, predicted] = [place("gold"), place("predicted")];
    const keep = kind.shown[value("shown")];
    const wanted = plain(form.elements.search.value.trim());
    if (wanted && !haystacks) haystacks = new Map(data.rows.map((row) => [row, plain(kind.words(row))]));
    chosen = data.rows.filter((row) => (!keep || keep(row))
      && ((gold === null && predicted === null) || kind.fits(row, gold, predicted))
      && (!wanted || haystacks.get(row).includes(wanted)));
    const order = value("order");
    if (order) chosen = [...chosen].sort(order === "file" ? (a, b) => a[0] - b[0] : kind.orders[order]);
    cells.forEach((cell) => {
      const same = (field, now) => (cell.dataset[field] === undefined ? now === null : Number(cell.dataset[field]) === now);
      const pressed = (gold !== null || predicted !== null) && same("gold", gold) && same("predicted", predicted);
      cell.setAttribute("aria-pressed", String(pressed));
    });
    page = 0;
    draw();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", choose);
  form.addEventListener("reset", () => setTimeout(choose)); // after the fields are empty
  cells.forEach((cell) => cell.addEventListener("click", () => {
    const off = cell.getAttribute("aria-pressed") === "true";
    ["gold", "predicted"].forEach((field) => { form.elements[field].value = off ? "" : cell.dataset[field] ?? ""; });
    form.elements.shown.value = "";
    choose();
    if (!off) document.getElementById("examples").scrollIntoView({ block: "start" });
  }));
  choose();
})();
