// The colours of all pictures: cividis from 0 to 1, legible for everybody, and two ways from the paper for signed numbers.

const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
  [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
];
// blue is below nothing, orange above it; nothing is the paper
const SIGNED = {
  light: [[8, 64, 129], [67, 128, 190], [158, 195, 226], [247, 247, 246], [248, 190, 142], [217, 118, 42], [140, 62, 4]],
  dark: [[146, 203, 255], [72, 140, 205], [38, 76, 117], [27, 31, 38], [117, 68, 25], [209, 119, 43], [255, 194, 133]],
};
const SHADES = 1024;

export const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

// Pixels of a canvas for one of the page: the screen's, or as many as an export wants.
export const sharpness = { ratio: 0 };
export const pixelRatio = () => sharpness.ratio || devicePixelRatio || 1;

const mixed = (share, along) => {
  const at = Math.min(Math.max(share, 0), 1) * (along.length - 1);
  const low = Math.min(Math.floor(at), along.length - 2);
  return along[low].map((from, channel) => Math.round(from + (along[low + 1][channel] - from) * (at - low)));
};
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const table = (along, bend = (x) => x) => (
  Uint32Array.from({ length: SHADES + 1 }, (_, index) => packed(mixed(bend(index / SHADES), along))));
const TABLES = {
  plain: table(CIVIDIS), bright: table(CIVIDIS, Math.sqrt), light: table(SIGNED.light), dark: table(SIGNED.dark),
};
const shade = (share) => Math.min(SHADES, Math.max(0, Math.round(share * SHADES)));

export const channels = (x) => mixed(x, CIVIDIS);
export const signedChannels = (x) => mixed((x + 1) / 2, SIGNED[theme()]);
const written = (parts) => `rgb(${parts.join(", ")})`;

// 0 … 1 as a colour of CSS; −1 … 1 as one
export const colour = (x) => written(channels(x));
export const signedColour = (x) => written(signedChannels(x));

// The ink that can be read on such a colour.
const inkOn = ([red, green, blue]) => (red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? "#14171c" : "#ffffff");
export const signedInk = (x) => inkOn(signedChannels(x));

// Into `pixels` (Uint32Array of an ImageData) the colours of `data` on a scale; what is not a number stays transparent.
export const paint = (pixels, data, { signed = false, scale = 1, bright = false } = {}) => {
  const shades = signed ? TABLES[theme()] : TABLES[bright ? "bright" : "plain"];
  for (let index = 0; index < pixels.length; index += 1) {
    const share = data[index] / (scale || 1);
    pixels[index] = Number.isNaN(share) ? 0 : shades[shade(signed ? (share + 1) / 2 : share)];
  }
};

// A bar with the scale's ends, for under a picture.
export const legend = (canvas, { signed = false, bright = false } = {}) => {
  [canvas.width, canvas.height] = [256, 1];
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(256, 1);
  const data = Float32Array.from({ length: 256 }, (_, x) => (signed ? (x / 255) * 2 - 1 : x / 255));
  paint(new Uint32Array(image.data.buffer), data, { signed, bright });
  pen.putImageData(image, 0, 0);
};
