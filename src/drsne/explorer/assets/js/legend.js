// The key to the colours: a list of classes that can be hidden, or a bar with a histogram.

import { element, svgElement, swatch, wordText } from "./elements.js";
import { count, short } from "./numbers.js";
import { LEVELS } from "./palettes.js";

const MOST = 200; // number of classes in the list; of more classes, the largest are listed
const BINS = 48;
const WIDTH = 288;
const HEIGHT = 44;

export function classCounts(column, n) {
  const counts = new Uint32Array(column.words.length);
  const codes = column.values(0);
  for (let row = 0; row < n; row++) counts[codes[row]] += 1;
  return counts;
}

// One line for each class. A click hides or shows it; "only" hides all others.
export function classLegend({ column, counts, colours, hidden, onToggle, onOnly }) {
  let listed = Array.from(counts, (_, code) => code);
  if (listed.length > MOST) {
    listed = listed.sort((a, b) => counts[b] - counts[a]).slice(0, MOST);
  }
  const lines = listed.map((code) => {
    const shown = !hidden.has(code);
    const word = column.words[code];
    const name = word ?? "missing";
    return element(
      "li",
      { class: shown ? "class" : "class off" },
      element(
        "button",
        { type: "button", class: "toggle", "aria-pressed": String(shown), title: name, onclick: () => onToggle(code) },
        swatch(colours[code % colours.length]),
        element("span", { class: "word" }, wordText(word)),
        element("span", { class: "number" }, count(counts[code])),
      ),
      element(
        "button",
        { type: "button", class: "only", "aria-label": `Show only ${name}`, onclick: () => onOnly(code) },
        "only",
      ),
    );
  });
  const list = element("ul", { class: "classes", "aria-label": `Classes of ${column.name}` }, ...lines);
  const rest = counts.length - listed.length;
  return rest ? [list, element("p", { class: "hint" }, `The ${count(rest)} smallest classes are not listed.`)] : [list];
}

// A histogram of the values in a map, in the colours of the points, above the ends of the scale.
export function colourBar({ column, map, colours, range: [low, high] }) {
  const bins = new Uint32Array(BINS);
  let missing = 0;
  for (const value of column.values(map)) {
    if (Number.isFinite(value))
      bins[Math.min(BINS - 1, Math.max(0, Math.floor(((value - low) / (high - low)) * BINS)))] += 1;
    else missing += 1;
  }
  const most = Math.max(...bins, 1);
  const step = WIDTH / BINS;
  const bars = Array.from(bins, (size, i) => {
    const height = size ? Math.max(1.5, (size / most) * HEIGHT) : 0;
    const fill = colours[Math.round(((i + 0.5) / BINS) * (LEVELS - 1))];
    return svgElement("rect", { x: i * step, y: HEIGHT - height, width: step - 0.8, height, fill, rx: 1 });
  });
  const bar = element("div", { class: "bar" });
  const stops = Array.from({ length: 17 }, (_, i) => colours[Math.round((i / 16) * (LEVELS - 1))]);
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ends = element(
    "div",
    { class: "ends" },
    element("span", {}, short(low)),
    element("span", {}, short((low + high) / 2)),
    element("span", {}, short(high)),
  );
  const chart = svgElement(
    "svg",
    { class: "histogram", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...bars,
  );
  const parts = [chart, bar, ends];
  if (missing) parts.push(element("p", { class: "hint" }, `${count(missing)} values are missing and drawn in grey.`));
  return parts;
}
