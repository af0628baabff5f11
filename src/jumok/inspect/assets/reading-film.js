"use strict";
// A film for each picture: character by character, the map of where it looked, laid over the picture on a canvas.
// Maps come as bytes (reading_film.py says how); text only ever goes in as text.
(async () => {
  const data = JSON.parse(document.getElementById("reading-data").textContent);
  const MARK = "#ff5a36", FAINT = 0.5, STRONG = 0.85; // how much of the picture is covered, as in reading_picture.py
  const STEP = 900, FADE = 220; // milliseconds: a character can be read; from one map to the next
  const UNSURE = 0.5;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const signed = (value, digits) => {
    const text = Math.abs(value).toFixed(digits);
    return value < 0 && Number(text) ? `−${text}` : text;
  };
  const colours = Array.from({ length: 256 }, (_, level) => cividis.mixed(level / 255));
  let playing = null; // one film at a time

  const film = async (section) => {
    const { frames, grid, box, word } = data[Number(section.dataset.index)];
    const source = section.querySelector(".source"), place = section.querySelector(".film");
    if (!place) return;
    await source.decode();
    const [width, height] = [source.naturalWidth, source.naturalHeight];
    const fine = Math.max(1, Math.round(960 / Math.max(width, height))); // canvas pixels for one of the picture
    const [wide, high] = [width * fine, height * fine];

    // ---------------------------------------------------------- the page

    const stage = make("div", "stage"), canvas = make("canvas");
    const room = Math.min(880, Math.max(160, (width / height) * 260));
    for (const one of [stage, section.querySelector(".strip")]) one.style.maxWidth = `${room}px`;
    [canvas.width, canvas.height] = [wide, high];
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    stage.append(canvas);
    const controls = make("div", "controls");
    controls.setAttribute("role", "group");
    controls.setAttribute("aria-label", `Film of ${word}`);
    const button = (className, text, label) => {
      const made = make("button", className, text);
      made.type = "button";
      if (label) made.setAttribute("aria-label", label);
      controls.append(made);
      return made;
    };
    const back = button("", "◀", "One character back"), play = button("play", "Play"), next = button("", "▶", "One character on");
    const speed = make("select");
    [["½×", 0.5], ["1×", 1], ["2×", 2], ["4×", 4]].forEach(([name, value]) => {
      const option = make("option", "", name);
      option.value = value;
      option.selected = value === 1;
      speed.append(option);
    });
    const chosen = make("label", "", "speed ");
    chosen.append(speed);
    controls.append(chosen);
    const readout = make("p", "readout"), list = make("ol", "characters");
    const chips = frames.map((frame, number) => {
      const item = make("li"), chip = make("button", frame.sure < UNSURE ? "unsure" : "");
      chip.type = "button";
      chip.append(make("b", "", frame.character), make("small", "", `${(100 * frame.sure).toFixed(0)} %`));
      chip.setAttribute("aria-label", `Character ${number + 1}: ${frame.character}, ${(100 * frame.sure).toFixed(0)} % sure`);
      item.append(chip);
      list.append(item);
      return chip;
    });
    section.querySelector(".strip").before(stage);
    section.querySelector(".strip").after(controls, list, readout);
    place.remove();
    const followers = [...section.querySelectorAll("[data-frame]")];

    // ---------------------------------------------------------- drawing

    const under = make("canvas");
    [under.width, under.height] = [wide, high];
    const pen = under.getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingEnabled = false;
    pen.drawImage(source, 0, 0, wide, high);
    const coloured = pen.getImageData(0, 0, wide, high).data, grey = new Uint8ClampedArray(wide * high);
    for (let at = 0; at < grey.length; at += 1) grey[at] = (coloured[4 * at] + coloured[4 * at + 1] + coloured[4 * at + 2]) / 3;
    // for each pixel of a side: the cell before it, the one behind it, and how far between them; -1 where there is no map
    const between = (pixels, cells, first, last) => {
      const side = { low: new Int16Array(pixels).fill(-1), high: new Int16Array(pixels).fill(-1), share: new Float32Array(pixels) };
      for (let pixel = 0; pixel < pixels; pixel += 1) {
        const at = (((pixel + 0.5) / pixels - first) / (last - first)) * cells - 0.5;
        if (at < -0.5 || at > cells - 0.5) continue;
        const inside = Math.min(Math.max(at, 0), cells - 1);
        side.low[pixel] = Math.floor(inside);
        side.high[pixel] = Math.min(side.low[pixel] + 1, cells - 1);
        side.share[pixel] = inside - side.low[pixel];
      }
      return side;
    };
    const [down, across] = [between(high, grid[0], box[1], box[3]), between(wide, grid[1], box[0], box[2])];
    const maps = frames.map((frame) => Float32Array.from(atob(frame.map), (letter) => letter.charCodeAt(0)));
    const ink = canvas.getContext("2d"), picture = ink.createImageData(wide, high);
    const line = new Float32Array(grid[1]);
    const paint = (values, centre, spot) => {
      const bytes = picture.data;
      for (let y = 0, at = 0; y < high; y += 1) {
        const above = down.low[y] * grid[1], below = down.high[y] * grid[1], share = down.share[y];
        for (let cell = 0; cell < grid[1]; cell += 1) {
          line[cell] = above < 0 ? 0 : values[above + cell] * (1 - share) + values[below + cell] * share;
        }
        for (let x = 0; x < wide; x += 1, at += 1) {
          const left = across.low[x], part = across.share[x];
          const level = left < 0 ? 0 : line[left] * (1 - part) + line[across.high[x]] * part;
          const cover = FAINT + ((STRONG - FAINT) * level) / 255, colour = colours[Math.round(level)];
          const rest = (1 - cover) * grey[at], byte = 4 * at;
          bytes[byte] = cover * colour[0] + rest;
          bytes[byte + 1] = cover * colour[1] + rest;
          bytes[byte + 2] = cover * colour[2] + rest;
          bytes[byte + 3] = 255;
        }
      }
      ink.putImageData(picture, 0, 0);
      marks(centre, spot);
    };
    const marks = ([x, y], spot) => {
      const size = (7 * wide) / (canvas.clientWidth || room), inside = (value) => Math.min(Math.max(value, 0), 1);
      for (const [colour, thick] of [["#ffffff", size * 0.6], [MARK, size * 0.32]]) {
        ink.beginPath();
        ink.arc(inside(x) * wide, inside(y) * high, size, 0, 2 * Math.PI);
        ink.lineWidth = thick; ink.strokeStyle = colour;
        ink.stroke();
      }
      for (const [edge, tip] of [[0, size * 1.4], [high, high - size * 1.4]]) {
        ink.beginPath();
        ink.moveTo(inside(spot) * wide - size * 0.9, edge);
        ink.lineTo(inside(spot) * wide + size * 0.9, edge);
        ink.lineTo(inside(spot) * wide, tip);
        ink.closePath();
        ink.fillStyle = MARK; ink.fill();
        ink.lineWidth = size * 0.15; ink.strokeStyle = "#ffffff"; ink.stroke();
      }
    };

    // ---------------------------------------------------------- time

    let current = 0, shown = { values: maps[0], centre: frames[0].centre, place: frames[0].place }, timer = 0, fading = 0;
    const mix = (from, to, share) => from + (to - from) * share;
    const show = (number, smooth) => {
      current = number;
      const frame = frames[number], goal = { values: maps[number], centre: frame.centre, place: frame.place }, from = shown;
      window.cancelAnimationFrame(fading);
      const settle = () => { shown = goal; paint(goal.values, goal.centre, goal.place); };
      if (!smooth || still.matches) settle();
      else {
        const began = performance.now(), lasts = Math.min(FADE, STEP / Number(speed.value) / 2);
        const draw = (now) => {
          const share = Math.min(1, Math.max(0, (now - began) / lasts));
          if (share === 1) { settle(); return; }
          shown = {
            values: goal.values.map((value, cell) => mix(from.values[cell], value, share)),
            centre: goal.centre.map((value, axis) => mix(from.centre[axis], value, share)),
            place: mix(from.place, goal.place, share),
          };
          paint(shown.values, shown.centre, shown.place);
          fading = window.requestAnimationFrame(draw);
        };
        fading = window.requestAnimationFrame(draw);
      }
      chips.forEach((chip, each) => { if (each === number) chip.setAttribute("aria-current", "true"); else chip.removeAttribute("aria-current"); });
      followers.forEach((one) => one.classList.toggle("on", Number(one.dataset.frame) === number));
      back.disabled = number === 0;
      next.disabled = number === frames.length - 1;
      const side = frame.drift === 0 ? "" : frame.drift > 0 ? ", to its right" : ", to its left";
      readout.replaceChildren(
        make("strong", "", `${number + 1} of ${frames.length}: ${frame.character}`),
        document.createTextNode(` · ${(100 * frame.sure).toFixed(1)} % sure · drift ${signed(frame.drift, 2)} character widths (${signed(100 * frame.share, 1)} % of the width)${side} · largest weight ${Number(frame.most.toPrecision(2))}`),
      );
      canvas.setAttribute("aria-label", `The picture with the map of character ${number + 1} of ${frames.length}, ${frame.character}`);
    };
    const own = { stop: () => {
      window.clearTimeout(timer);
      timer = 0;
      if (playing === own) playing = null;
      play.textContent = "Play";
      readout.setAttribute("aria-live", "polite");
    } };
    const tick = () => {
      timer = window.setTimeout(() => {
        if (current === frames.length - 1) { own.stop(); return; }
        show(current + 1, true);
        tick();
      }, STEP / Number(speed.value));
    };
    const start = () => {
      if (playing) playing.stop();
      playing = own;
      readout.setAttribute("aria-live", "off"); // a film is not read aloud, a frame that was asked for is
      play.textContent = "Pause";
      if (current === frames.length - 1) show(0, false);
      tick();
    };
    const toggle = () => (timer ? own.stop() : start());
    const step = (number) => { own.stop(); show(Math.min(Math.max(number, 0), frames.length - 1), true); };
    play.addEventListener("click", toggle);
    canvas.addEventListener("click", toggle);
    back.addEventListener("click", () => step(current - 1));
    next.addEventListener("click", () => step(current + 1));
    speed.addEventListener("change", () => { if (timer) { window.clearTimeout(timer); tick(); } });
    let before = null; // what was there before the pointer came: -1, a film that went on
    chips.forEach((chip, number) => {
      chip.addEventListener("click", () => { before = null; step(number); });
      chip.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "touch") return;
        before ??= { number: current, went: timer !== 0 };
        own.stop();
        show(number, false);
      });
    });
    list.addEventListener("pointerleave", () => {
      if (before === null) return;
      const { number, went } = before;
      before = null;
      show(number, false);
      if (went) start();
    });
    section.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select, summary")) return;
      const goal = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: frames.length - 1 }[event.key];
      if (goal !== undefined) { event.preventDefault(); before = null; step(goal); }
      else if (event.key === " " && !event.target.matches("button")) { event.preventDefault(); toggle(); }
    });
    own.stop();
    show(0, false);
    section.classList.add("ready");
    section.dataset.ready = "yes";
    return { start, canvas };
  };

  const films = [];
  for (const section of document.querySelectorAll(".reading")) films.push(await film(section));
  const first = films.find((one) => one);
  if (first && !still.matches) first.start(); // once; then it rests
  document.body.dataset.ready = "yes";
})();
