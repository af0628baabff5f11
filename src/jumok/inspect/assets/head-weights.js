"use strict";
// Weights from the bytes that canvas.py wrote: a step for each row, and how many steps each weight is (255: no number).
const headWeights = (() => {
  const bytesOf = (text) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const plain = atob(text);
    const bytes = new Uint8Array(plain.length);
    for (let index = 0; index < plain.length; index += 1) bytes[index] = plain.charCodeAt(index);
    return bytes;
  };
  const unpacked = async (text, rows) => {
    const inflater = new DecompressionStream("deflate");
    const writer = inflater.writable.getWriter();
    writer.write(bytesOf(text));
    writer.close();
    const buffer = await new Response(inflater.readable).arrayBuffer();
    return { steps: new Float32Array(buffer, 0, rows), bytes: new Uint8Array(buffer, rows * 4) };
  };
  // neighbouring tokens of one word together; what belongs to no word stands for itself
  const grouped = (side) => {
    const starts = [];
    side.words.forEach((word, index) => {
      if (word < 0 || index === 0 || side.words[index - 1] !== word) starts.push(index);
    });
    const sizes = starts.map((start, index) => (starts[index + 1] ?? side.words.length) - start);
    const names = starts.map((start, index) => side.texts[side.words[start]]
      ?? side.tokens.slice(start, start + sizes[index]).join(""));
    return { starts, sizes, names };
  };
  const single = (side) => ({
    starts: side.tokens.map((_, index) => index), sizes: side.tokens.map(() => 1), names: side.tokens,
  });
  // summed over a key's tokens, averaged over a query's; and how far that may be from the truth
  const weightsOf = (map, group, unit) => {
    const { keys, queries } = group.units[unit];
    const width = group.keys.tokens.length;
    const columns = keys.starts.length;
    const weights = new Float32Array(queries.starts.length * columns);
    const wrong = new Float32Array(queries.starts.length);
    queries.starts.forEach((start, t) => {
      for (let row = start; row < start + queries.sizes[t]; row += 1) {
        const step = map.steps[row];
        wrong[t] += step / 2 / queries.sizes[t];
        for (let s = 0; s < columns; s += 1) {
          let sum = 0;
          for (let key = keys.starts[s]; key < keys.starts[s] + keys.sizes[s]; key += 1) {
            const byte = map.bytes[row * width + key];
            sum += byte === 255 ? NaN : byte;
          }
          weights[t * columns + s] += (sum * step) / queries.sizes[t];
        }
      }
    });
    return { weights, wrong, rows: queries.starts.length, columns, keys, queries };
  };
  // "0.424 ± 0.003": what is shown is never farther from the model's own number than is said
  const number = (weight, wrong) => {
    if (Number.isNaN(weight)) return "no number";
    if (wrong === 0) return weight === 0 ? "0" : weight.toFixed(3);
    const digits = Math.min(Math.max(-Math.floor(Math.log10(wrong)), 3), 9);
    const bound = Math.ceil((wrong + 0.5 * 10 ** -digits) * 10 ** digits - 1e-6) / 10 ** digits;
    return `${weight.toFixed(digits)} ± ${bound.toFixed(digits)}`;
  };
  return { unpacked, grouped, single, weightsOf, number };
})();
