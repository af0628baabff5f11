// A map over a picture: the picture in grey, and over it the map's colours, interpolated between the middles of cells.

// how much of the picture is covered where nothing, and where most, was looked at
const [FAINT, STRONG] = [0.5, 0.85];
const MARK = "#ff5a36";
const LEVELS = 255;

// For each pixel of a side: the cell before it, the one behind it, and how far between them; −1 where there is no map.
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

// image: an <img> that is loaded; longest: pixels of the longer side. Gives {width, height, onto(canvas, values), cellAt(x, y), frame(canvas, cell)}.
export const painter = (image, [rows, columns], [left, top, right, bottom], longest, channels) => {
  const scale = longest / Math.max(image.naturalWidth, image.naturalHeight);
  const [width, height] = [image.naturalWidth, image.naturalHeight].map((side) => Math.max(1, Math.round(side * scale)));
  const under = document.createElement("canvas");
  [under.width, under.height] = [width, height];
  const pen = under.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingEnabled = scale < 1;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, width, height);
  const seen = pen.getImageData(0, 0, width, height).data;
  const grey = new Uint8ClampedArray(width * height);
  for (let at = 0; at < grey.length; at += 1) grey[at] = (seen[4 * at] + seen[4 * at + 1] + seen[4 * at + 2]) / 3;
  const [down, across] = [between(height, rows, top, bottom), between(width, columns, left, right)];
  const colours = Array.from({ length: LEVELS + 1 }, (_, level) => channels(level / LEVELS));
  const line = new Float32Array(columns);

  const onto = (canvas, values) => {
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const ink = canvas.getContext("2d");
    const picture = ink.createImageData(width, height);
    const most = values.reduce((one, other) => Math.max(one, other), 0) || 1;
    for (let y = 0, at = 0; y < height; y += 1) {
      const [above, below, share] = [down.low[y] * columns, down.high[y] * columns, down.share[y]];
      for (let cell = 0; cell < columns; cell += 1) {
        line[cell] = above < 0 ? 0 : (values[above + cell] * (1 - share) + values[below + cell] * share) / most;
      }
      for (let x = 0; x < width; x += 1, at += 1) {
        const [from, part] = [across.low[x], across.share[x]];
        const level = from < 0 ? 0 : line[from] * (1 - part) + line[across.high[x]] * part;
        const cover = FAINT + (STRONG - FAINT) * level;
        const colour = colours[Math.round(level * LEVELS)];
        const rest = (1 - cover) * grey[at];
        for (let channel = 0; channel < 3; channel += 1) picture.data[4 * at + channel] = cover * colour[channel] + rest;
        picture.data[4 * at + 3] = LEVELS;
      }
    }
    ink.putImageData(picture, 0, 0);
  };
  // The cell of the grid under a place of the picture (from 0 to 1), or null.
  const cellAt = (x, y) => {
    const [row, column] = [Math.floor(((y - top) / (bottom - top)) * rows), Math.floor(((x - left) / (right - left)) * columns)];
    return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null;
  };
  // A cell that somebody went to, on a canvas of ours.
  const frame = (canvas, [row, column]) => {
    const ink = canvas.getContext("2d");
    const [wide, high] = [((right - left) * width) / columns, ((bottom - top) * height) / rows];
    [ink.lineWidth, ink.strokeStyle] = [5, MARK];
    ink.strokeRect(left * width + column * wide, top * height + row * high, wide, high);
  };
  return { width, height, onto, cellAt, frame };
};

// The centre of a map, and the character's place, on the canvas of a painter.
export const marks = (canvas, [x, y], place, size) => {
  const ink = canvas.getContext("2d");
  const { width, height } = canvas;
  const inside = (value) => Math.min(Math.max(value, 0), 1);
  for (const [colour, thick] of [["#ffffff", size * 0.6], [MARK, size * 0.32]]) {
    ink.beginPath();
    ink.arc(inside(x) * width, inside(y) * height, size, 0, 2 * Math.PI);
    [ink.lineWidth, ink.strokeStyle] = [thick, colour];
    ink.stroke();
  }
  for (const [edge, tip] of [[0, size * 1.4], [height, height - size * 1.4]]) {
    ink.beginPath();
    ink.moveTo(inside(place) * width - size * 0.9, edge);
    ink.lineTo(inside(place) * width + size * 0.9, edge);
    ink.lineTo(inside(place) * width, tip);
    ink.closePath();
    [ink.fillStyle, ink.lineWidth, ink.strokeStyle] = [MARK, size * 0.15, "#ffffff"];
    ink.fill();
    ink.stroke();
  }
};
