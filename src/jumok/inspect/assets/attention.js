"use strict";
// Draws every <section class="attention" data-index="N"> from the JSON on the page. Text only ever goes in as text.
(() => {
  const { mixed } = cividis;
  const colour = (weight) => `rgb(${mixed(weight).join(", ")})`;
  const shown = (weight) => (weight === null ? "no number" : weight.toFixed(3));
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const line = (name, title, tokens, language) => {
    const row = make("div", `line ${name}`);
    row.append(make("b", "", title));
    const chips = tokens.map((token) => {
      const chip = make("span", "chip", token);
      if (language) chip.lang = language;
      row.append(chip);
      return chip;
    });
    return [row, chips];
  };

  const draw = (place, sentence, spoken) => {
    const { source, target, weights, sides } = sentence; // of keys and queries: 0 is the source, 1 the output
    const languages = sides.map((side) => spoken[side]);
    const titles = sides.map((side) => ["source", "output"][side]);
    const [sourceLine, sourceChips] = line("source", titles[0], source, languages[0]);
    const [targetLine, targetChips] = line("target", titles[1], target, languages[1]);
    const readout = make("p", "readout");
    readout.setAttribute("aria-live", "polite");
    const table = make("table");
    const head = make("tr");
    head.append(make("th", "corner", "query ↓ looks at key →"));
    const columns = source.map((token) => {
      const cell = make("th");
      cell.scope = "col";
      cell.title = token;
      const text = make("span", "", token);
      if (languages[0]) text.lang = languages[0];
      cell.append(text);
      head.append(cell);
      return cell;
    });
    table.createTHead().append(head);
    const body = table.createTBody();
    const buttons = [];
    const cells = [];
    const rows = target.map((token, t) => {
      const row = body.insertRow();
      const header = make("th");
      header.scope = "row";
      const button = make("button", "", token);
      button.type = "button";
      button.title = token;
      button.tabIndex = t === 0 ? 0 : -1;
      button.setAttribute("aria-pressed", "false");
      if (languages[1]) button.lang = languages[1];
      header.append(button);
      row.append(header);
      buttons.push(button);
      cells.push(weights[t].map((weight, s) => {
        const cell = row.insertCell();
        if (weight === null) cell.className = "none";
        else cell.style.backgroundColor = colour(weight);
        cell.dataset.t = t;
        cell.dataset.s = s;
        return cell;
      }));
      return row;
    });
    const map = make("div", "map");
    map.append(table);
    place.append(sourceLine, targetLine, readout, map);

    let pinned = null;
    const clear = () => place.querySelectorAll(".on").forEach((element) => element.classList.remove("on"));
    const say = (t, s) => {
      readout.replaceChildren();
      if (t === null) {
        readout.textContent = "Point at a cell for its number; click or press Enter to pin a row.";
        return;
      }
      const keys = s !== null ? [s] : source.map((_, index) => index)
        .sort((a, b) => (weights[t][b] ?? -1) - (weights[t][a] ?? -1)).slice(0, 3);
      readout.append(make("strong", "", target[t]), " looks at ");
      keys.forEach((key, index) => {
        readout.append(index ? ", " : "", make("strong", "", source[key]), ` ${shown(weights[t][key])}`);
      });
    };
    const show = (t, s) => {
      clear();
      say(t, s);
      sourceChips.forEach((chip, index) => {
        const weight = t === null ? null : weights[t][index];
        const rgb = weight === null ? null : mixed(weight);
        chip.style.backgroundColor = rgb ? `rgb(${rgb.join(", ")})` : "";
        chip.style.color = rgb ? (rgb[0] * 0.3 + rgb[1] * 0.6 + rgb[2] * 0.1 > 125 ? "#111" : "#fff") : "";
      });
      if (t === null) return;
      rows[t].classList.add("on");
      targetChips[t].classList.add("on");
      if (s === null) return;
      cells[t][s].classList.add("on");
      columns[s].classList.add("on");
      sourceChips[s].classList.add("on");
    };
    const pin = (t) => {
      pinned = pinned === t ? null : t;
      table.classList.toggle("pinned", pinned !== null);
      rows.forEach((row, index) => row.classList.toggle("pin", index === pinned));
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(index === pinned)));
      show(pinned ?? t, null);
    };
    const rest = () => show(pinned, null);

    table.addEventListener("pointerover", (event) => {
      const cell = event.target.closest("td");
      const row = event.target.closest("tbody tr");
      if (cell) show(Number(cell.dataset.t), Number(cell.dataset.s));
      else if (row) show(rows.indexOf(row), null);
    });
    table.addEventListener("pointerleave", rest);
    table.addEventListener("click", (event) => {
      const row = event.target.closest("tbody tr");
      if (row) pin(rows.indexOf(row));
    });
    targetChips.forEach((chip, t) => {
      chip.addEventListener("pointerenter", () => show(t, null));
      chip.addEventListener("pointerleave", rest);
      chip.addEventListener("click", () => pin(t));
    });
    let column = null;
    buttons.forEach((button, t) => {
      button.addEventListener("focus", () => show(t, column));
      button.addEventListener("blur", rest);
      button.addEventListener("keydown", (event) => {
        const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
        if (event.key === "Escape") {
          column = null;
          if (pinned !== null) pin(pinned);
          rest();
        } else if (step) {
          event.preventDefault();
          if (step[1]) column = Math.min(Math.max((column ?? -1) + step[1], 0), source.length - 1);
          const next = Math.min(Math.max(t + step[0], 0), target.length - 1);
          buttons.forEach((other, index) => { other.tabIndex = index === next ? 0 : -1; });
          if (next === t) show(t, column);
          else buttons[next].focus();
        }
      });
    });
    show(null, null);
  };

  const data = JSON.parse(document.getElementById("attention-data").textContent);
  document.querySelectorAll(".attention").forEach((place) => {
    draw(place, data.sentences[Number(place.dataset.index)], data.languages);
  });
})();
