// Colours of classes and of values. People with a colour vision deficiency can tell up to eight classes apart.

// The palette of Okabe and Ito, followed by colours of Tol's muted palette. Each theme has the shades that stand out.
const CLASSES = {
  light: [
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#57534e",
    "#b5a400",
    "#332288",
    "#882255",
    "#44aa99",
    "#999933",
    "#cc6677",
    "#117733",
    "#aa4499",
    "#88ccee",
  ],
  dark: [
    "#4ea3e0",
    "#f0ad1f",
    "#1fc195",
    "#f2783a",
    "#e592c0",
    "#8bd0fa",
    "#c9c4bd",
    "#ede15b",
    "#9a8cf0",
    "#d36aa0",
    "#63cdbb",
    "#bcbc5c",
    "#e88a99",
    "#4cae6e",
    "#cf74c4",
    "#bfe3f7",
  ],
};

const RAMP_STOPS = {
  viridis: "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
  cividis: "00224e 1a386f 434e6c 61656f 7d7c78 9b9476 bbae6d dcc75e fee838",
};
const PART = { light: [0, 0.94], dark: [0.2, 1] }; // the part of a ramp that can be seen on the background
// The centre is a grey that can be seen on the background.
const DIVERGING = {
  light: ["#123f7a", "#2f73b8", "#86aed1", "#c4c6c9", "#dd9a78", "#c4532f", "#85200e"],
  dark: ["#8cc4ff", "#4a97e6", "#3f6f9f", "#565b64", "#a86a4c", "#ec8350", "#ffc09c"],
};

export const RAMPS = { viridis: "Viridis", cividis: "Cividis", diverging: "Diverging, centred on 0" };
export const LEVELS = 256; // number of colours of a ramp
const GREY = { light: "#a8adb7", dark: "#5d6470" };

export const missingColour = (theme) => GREY[theme];

export function classColours(number, theme) {
  const first = CLASSES[theme];
  return Array.from({ length: number }, (_, i) =>
    i < first.length ? first[i] : furtherColour(i - first.length, theme),
  );
}

// Colours beyond the palette have hues that are far apart, in three shades.
function furtherColour(i, theme) {
  const light = (theme === "light" ? [0.52, 0.64, 0.42] : [0.74, 0.84, 0.64])[i % 3];
  const hue = (i * 137.508 + 20) % 360;
  const angle = (hue * Math.PI) / 180;
  return hexOf(rgbOf([light, 0.11 * Math.cos(angle), 0.11 * Math.sin(angle)]));
}

export function rampColours(name, theme) {
  const named = RAMP_STOPS[name]?.split(" ").map((hex) => `#${hex}`);
  const stops = (named ?? DIVERGING[theme]).map(labOf);
  const [from, to] = named ? PART[theme] : [0, 1];
  return Array.from({ length: LEVELS }, (_, level) => {
    const place = (from + (to - from) * (level / (LEVELS - 1))) * (stops.length - 1);
    const before = Math.min(Math.floor(place), stops.length - 2);
    const share = place - before;
    return hexOf(rgbOf(stops[before].map((value, i) => value + (stops[before + 1][i] - value) * share)));
  });
}

// Between sRGB and OKLab, in which equal steps look equal.
function labOf(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function rgbOf([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((value) => (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055));
}

function hexOf(rgb) {
  const parts = rgb.map((value) => Math.round(Math.min(1, Math.max(0, value)) * 255));
  return `#${parts.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}
