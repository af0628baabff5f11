// Subwords and words of the two sides of an attention, special tokens, and the part of a map that is shown.

// The units of one side: their names, the first token of each, the unit of each token, and which are no part of a text.
const unitsOf = ({ tokens, words, texts }, byWords) => {
  const side = { names: [], firsts: [], of: [], special: [] };
  tokens.forEach((token, place) => {
    const word = words[place];
    const goes = byWords && word !== null && place > 0 && words[place - 1] === word;
    if (goes && texts[word] === undefined) side.names[side.names.length - 1] += token;
    if (!goes) {
      side.names.push(byWords && word !== null && texts[word] !== undefined ? texts[word] : token);
      side.firsts.push(place);
      side.special.push(word === null && token !== "[MASK]");
    }
    side.of.push(side.names.length - 1);
  });
  return side;
};

export const sidesOf = (group, byWords) => ({ queries: unitsOf(group.queries, byWords), keys: unitsOf(group.keys, byWords) });

// Whether words and subwords are two things here.
export const differs = (group) => ["queries", "keys"].some((side) => (
  unitsOf(group[side], true).names.length !== group[side].tokens.length));
export const hasSpecial = (group) => ["queries", "keys"].some((side) => unitsOf(group[side], true).special.some(Boolean));

// What is shown of a map: the numbers of the rows and columns that are left, their names, and the weights.
export const shownPart = ({ queries, keys }, data, special) => {
  const left = (side) => [...side.names.keys()].filter((one) => special || !side.special[one]);
  const [rows, columns] = [left(queries), left(keys)];
  const width = keys.names.length;
  const whole = rows.length === queries.names.length && columns.length === width;
  let part = data;
  if (!whole) {
    part = new Float32Array(rows.length * columns.length);
    rows.forEach((row, t) => columns.forEach((column, s) => { part[t * columns.length + s] = data[row * width + column]; }));
  }
  return { rows, columns, data: part, rowNames: rows.map((one) => queries.names[one]), columnNames: columns.map((one) => keys.names[one]) };
};

export const largestOf = (data, columns, row) => {
  let best = 0;
  for (let s = 1; s < columns; s += 1) if (data[row * columns + s] > data[row * columns + best]) best = s;
  return best;
};

// "3.5,7.2" in the address
export const readPins = (text) => String(text ?? "").split(",").filter((pin) => /^\d+\.\d+$/.test(pin))
  .map((pin) => pin.split(".").map(Number)).slice(0, 2);
export const writePins = (pins) => pins.map((pin) => pin.join(".")).join(",") || null;
