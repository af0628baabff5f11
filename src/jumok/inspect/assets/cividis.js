"use strict";
// The colours of all pages: cividis from 0 to 1, legible for everybody. `mixed` takes other stops too.
const cividis = (() => {
  const stops = [
    [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
    [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
  ];
  const SHADES = 1024;
  let brightened = false; // whether faint weights are brightened: colour follows √α
  const mixed = (share, along = stops) => {
    const at = Math.min(Math.max(share, 0), 1) * (along.length - 1);
    const low = Math.min(Math.floor(at), along.length - 2);
    return along[low].map((from, channel) => Math.round(from + (along[low + 1][channel] - from) * (at - low)));
  };
  const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  const place = (weight) => (brightened ? Math.sqrt(weight) : weight); // on the scale, from 0 to 1
  const table = new Uint32Array(SHADES + 1);
  const brighten = (wanted) => {
    brightened = wanted;
    for (let index = 0; index <= SHADES; index += 1) table[index] = packed(mixed(place(index / SHADES)));
  };
  brighten(false);
  return {
    mixed, place, brighten,
    of: (weight) => mixed(place(weight)),
    pixel: (weight) => table[Math.min(SHADES, Math.round(weight * SHADES))],
  };
})();
