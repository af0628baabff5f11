"use strict";
(() => {
  const data = JSON.parse(document.getElementById("gates-data").textContent);
  const place = document.getElementById("gates");
  // cividis for gates (0 to 1), purple to orange for states (negative to positive)
  const STATE = [[45,0,75],[84,39,136],[128,115,172],[178,171,210],[216,218,235],[247,247,247],[254,224,182],[253,184,99],[224,130,20],[179,88,6],[127,59,8]];

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const colour = cividis.mixed;
  const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

  const choose = element("div", "choose"), readout = element("p", "readout"), frame = element("div", "frame");
  const chooser = (label, names) => {
    const made = element("label", "", label), select = element("select");
    names.forEach((name, index) => { const option = element("option", "", name); option.value = index; select.append(option); });
    made.append(select);
    choose.append(made);
    select.addEventListener("change", show);
    return select;
  };
  const quantities = Object.keys(data.readings[0].states);
  const reading = chooser("reading", data.readings.map((one) => one.name));
  const quantity = chooser("shown", quantities);
  if (quantities.includes("forget gate")) quantity.value = quantities.indexOf("forget gate");
  const scale = element("div", "scale"), low = element("span"), strip = element("canvas"), high = element("span");
  strip.width = 128; strip.height = 1;
  scale.append(low, strip, high);
  choose.append(scale);
  const map = element("canvas", "map"), tokens = element("div", "tokens");
  map.tabIndex = 0;
  map.setAttribute("role", "img");
  readout.setAttribute("aria-live", "polite");
  frame.append(map, tokens);
  place.append(choose, readout, frame);

  let state, order, values, at = null, pinned = false, cell = 1, row = 1;

  // units that hold the longest on top: by their forget or update gate, else by the size of their state
  function arranged(one) {
    const name = ["forget gate", "update gate", "hidden state"].find((each) => each in one.states);
    const { units, bytes } = one.states[name], all = bytesOf(bytes), held = new Float64Array(units);
    all.forEach((value, index) => { held[index % units] += name === "hidden state" ? Math.abs(value - 127.5) : value; });
    return Array.from(held.keys()).sort((a, b) => held[b] - held[a]);
  }

  function show() {
    const one = data.readings[reading.value], name = quantities[quantity.value];
    state = one.states[name];
    values = bytesOf(state.bytes);
    order = arranged(one);
    const count = data.tokens.length, stops = name.endsWith("gate") ? undefined : STATE; // undefined: cividis
    cell = Math.max(22, Math.min(64, Math.floor(900 / count)));
    row = Math.max(2, Math.min(10, Math.floor(380 / state.units)));
    map.width = count; map.height = state.units;
    map.style.width = `${count * cell}px`; map.style.height = `${state.units * row}px`;
    map.setAttribute("aria-label", `${name}, ${one.name}: ${state.units} units over ${count} tokens`);
    const ink = map.getContext("2d"), image = ink.createImageData(count, state.units);
    order.forEach((unit, y) => {
      for (let x = 0; x < count; x++) image.data.set([...colour(values[x * state.units + unit] / 255, stops), 255], 4 * (y * count + x));
    });
    ink.putImageData(image, 0, 0);
    const pen = strip.getContext("2d"), line = pen.createImageData(128, 1);
    for (let x = 0; x < 128; x++) line.data.set([...colour(x / 127, stops), 255], 4 * x);
    pen.putImageData(line, 0, 0);
    low.textContent = state.low.toPrecision(2).replace("-", "−").replace("0.0", "0"); high.textContent = state.high.toPrecision(2);
    const largest = Math.max(...one.gradient, 1e-30);
    tokens.replaceChildren(...data.tokens.map((token, x) => {
      const column = element("div"), bar = element("div", "bar"), inner = element("i");
      column.style.width = `${cell}px`;
      inner.style.height = `${100 * one.gradient[x] / largest}%`;
      bar.append(inner);
      column.title = `‖∂h_T/∂x_t‖ = ${one.gradient[x]} at distance ${one.distance[x]}`;
      column.append(bar, element("div", "number", one.gradient[x].toPrecision(2)), element("span", "word", token));
      return column;
    }));
    tell();
  }

  function tell() {
    [...tokens.children].forEach((column, x) => column.classList.toggle("on", at !== null && at.x === x));
    if (at === null) { readout.textContent = "‖∂h_T/∂x_t‖ below each token; point at the map for a unit's number"; return; }
    const one = data.readings[reading.value], name = quantities[quantity.value], unit = order[at.y];
    const step = (state.high - state.low) / 255, value = state.low + step * values[at.x * state.units + unit];
    const summary = name.endsWith("gate") ? `mean over units ${state.summary[at.x].toFixed(3)}` : `norm over units ${state.summary[at.x].toFixed(3)}`;
    readout.replaceChildren(
      element("strong", "", `${name} ${value.toFixed(3).replace("-", "−")}`),
      document.createTextNode(` (±${(step / 2).toFixed(3)}) of unit ${unit} at “${data.tokens[at.x]}” · ${summary} · ‖∂h_T/∂x_t‖ ${one.gradient[at.x]} at distance ${one.distance[at.x]}${pinned ? " · pinned" : ""}`),
    );
  }

  function find(event) {
    const box = map.getBoundingClientRect();
    const x = Math.floor((event.clientX - box.left) / box.width * data.tokens.length);
    const y = Math.floor((event.clientY - box.top) / box.height * state.units);
    return { x: Math.min(Math.max(x, 0), data.tokens.length - 1), y: Math.min(Math.max(y, 0), state.units - 1) };
  }
  map.addEventListener("pointermove", (event) => { if (!pinned) { at = find(event); tell(); } });
  map.addEventListener("pointerleave", () => { if (!pinned) { at = null; tell(); } });
  map.addEventListener("click", (event) => { pinned = !pinned; at = find(event); tell(); });
  map.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }, move = moves[event.key];
    if (event.key === "Escape") { at = null; pinned = false; } else if (event.key === "Enter") { pinned = !pinned; at = at || { x: 0, y: 0 }; }
    else if (move) {
      const from = at || { x: 0, y: 0 };
      at = at === null ? from : {
        x: Math.min(Math.max(from.x + move[0], 0), data.tokens.length - 1), y: Math.min(Math.max(from.y + move[1], 0), state.units - 1),
      };
    } else return;
    event.preventDefault();
    tell();
  });
  show();
})();
