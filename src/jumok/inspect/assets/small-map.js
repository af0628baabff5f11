"use strict";
// A map as large as a stamp: each of its pixels is the largest weight of a patch, so that nothing strong is lost.
const drawSmall = (() => {
  const SMALL = 96;
  return (small, map, group) => {
    const rows = group.queries.tokens.length;
    const columns = group.keys.tokens.length;
    const [height, width] = [Math.min(rows, SMALL), Math.min(columns, SMALL)];
    const highest = new Float32Array(height * width);
    const edges = Uint32Array.from({ length: width + 1 }, (_, x) => Math.ceil((x * columns) / width));
    const { bytes, steps } = map;
    for (let t = 0; t < rows; t += 1) {
      const start = Math.floor((t * height) / rows) * width;
      const step = steps[t];
      for (let x = 0, at = t * columns; x < width; x += 1) {
        let most = 0;
        for (const end = t * columns + edges[x + 1]; at < end; at += 1) {
          if (bytes[at] > most && bytes[at] < 255) most = bytes[at];
        }
        if (most * step > highest[start + x]) highest[start + x] = most * step;
      }
    }
    [small.width, small.height] = [width, height];
    const pen = small.getContext("2d");
    const image = pen.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let index = 0; index < pixels.length; index += 1) {
      pixels[index] = cividis.pixel(highest[index]);
    }
    pen.putImageData(image, 0, 0);
  };
})();
