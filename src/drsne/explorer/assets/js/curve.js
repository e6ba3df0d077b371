// The trade-off curve of a path: trustworthiness against concentration correlation, one point for each map.

import { byId, svgElement } from "./elements.js";
import { short } from "./numbers.js";

const WIDTH = 320;
const HEIGHT = 206;
const FRAME = { left: 56, right: 14, top: 14, bottom: 40 };
const APART = 22; // smallest distance between two labels

export class Curve {
  constructor(dataset, onChoose) {
    const x = dataset.scores.concentration_correlation ?? [];
    const y = dataset.scores.trustworthiness ?? [];
    this.known = x.length > 1 && [...x, ...y].every(Number.isFinite);
    byId("trade-off").hidden = !this.known;
    if (!this.known) return;
    this.maps = dataset.maps;
    const levels = Number.isFinite(dataset.baseline) ? [...y, dataset.baseline] : y;
    this.toX = scale(x, FRAME.left, WIDTH - FRAME.right);
    this.toY = scale(levels, HEIGHT - FRAME.bottom, FRAME.top);
    this.places = x.map((value, i) => [this.toX.at(value), this.toY.at(y[i])]);
    this.svg = svgElement("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Trade-off curve" });
    this.svg.append(...this.axes(), ...this.baseline(dataset.baseline), this.line());
    this.marker = svgElement("circle", { class: "marker", r: "8" });
    this.svg.append(this.marker, ...this.dots(x, y, onChoose), ...this.labels());
    byId("curve").append(this.svg);
    this.show(dataset.start);
  }

  axes() {
    const bottom = HEIGHT - FRAME.bottom;
    const parts = [];
    for (const value of this.toX.ticks) {
      const at = this.toX.at(value);
      parts.push(svgElement("line", { class: "grid", x1: at, x2: at, y1: FRAME.top, y2: bottom }));
      parts.push(
        svgElement("text", { class: "axis", x: at, y: bottom + 14, "text-anchor": "middle" }, this.toX.text(value)),
      );
    }
    for (const value of this.toY.ticks) {
      const at = this.toY.at(value);
      parts.push(svgElement("line", { class: "grid", x1: FRAME.left, x2: WIDTH - FRAME.right, y1: at, y2: at }));
      parts.push(
        svgElement(
          "text",
          { class: "axis", x: FRAME.left - 6, y: at + 3.5, "text-anchor": "end" },
          this.toY.text(value),
        ),
      );
    }
    const middle = (FRAME.left + WIDTH - FRAME.right) / 2;
    const side = (FRAME.top + bottom) / 2;
    parts.push(
      svgElement(
        "text",
        { class: "name", x: middle, y: HEIGHT - 8, "text-anchor": "middle" },
        "concentration correlation",
      ),
    );
    parts.push(
      svgElement(
        "text",
        { class: "name", transform: `translate(10 ${side}) rotate(-90)`, "text-anchor": "middle" },
        "trustworthiness",
      ),
    );
    return parts;
  }

  baseline(value) {
    if (!Number.isFinite(value)) return [];
    const at = this.toY.at(value);
    const line = svgElement("line", { class: "baseline", x1: FRAME.left, x2: WIDTH - FRAME.right, y1: at, y2: at });
    line.append(svgElement("title", {}, `Trustworthiness at \u03bb = 0: ${short(value)}`));
    return [line];
  }

  line() {
    return svgElement("polyline", { class: "path", points: this.places.map((place) => place.join(",")).join(" ") });
  }

  dots(x, y, onChoose) {
    this.buttons = this.places.map(([cx, cy], i) => {
      const text = `${this.maps[i].title}: trustworthiness ${short(y[i])}, concentration correlation ${short(x[i])}`;
      const choose = () => onChoose(i);
      const keys = (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      };
      return svgElement(
        "g",
        { class: "dot", tabindex: "0", role: "button", "aria-label": text, onclick: choose, onkeydown: keys },
        svgElement("circle", { class: "target", cx, cy, r: "12" }),
        svgElement("circle", { class: "spot", cx, cy, r: "4" }),
        svgElement("title", {}, text),
      );
    });
    return this.buttons;
  }

  // The weights beside the points, where they do not overlap. The ends come first.
  labels() {
    const order = this.places.map((_, i) => i).sort((a, b) => this.isEnd(b) - this.isEnd(a));
    const kept = [];
    for (const i of order) {
      const [x, y] = this.places[i];
      if (kept.every((j) => Math.hypot(this.places[j][0] - x, this.places[j][1] - y) > APART)) kept.push(i);
    }
    return kept.map((i) => {
      const [x, y] = this.places[i];
      const right = x > WIDTH - FRAME.right - 24;
      return svgElement(
        "text",
        { class: "weight", x: x + (right ? -12 : 8), y: y - 8, "text-anchor": right ? "end" : "start" },
        this.maps[i].tick,
      );
    });
  }

  isEnd(i) {
    return Number(i === 0 || i === this.maps.length - 1);
  }

  // Marks a position, which can be between two maps.
  show(position) {
    if (!this.known) return;
    const before = Math.floor(position);
    const after = Math.min(before + 1, this.places.length - 1);
    const share = position - before;
    const [x, y] = [0, 1].map((i) => this.places[before][i] * (1 - share) + this.places[after][i] * share);
    this.marker.setAttribute("cx", x);
    this.marker.setAttribute("cy", y);
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === Math.round(position))));
  }
}

// A linear scale with about four round ticks.
function scale(values, from, to) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  const room = (high - low) * 0.08 || 0.005;
  low -= room;
  high += room;
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push(value);
  return {
    ticks,
    at: (value) => from + ((value - low) / (high - low)) * (to - from),
    text: (value) => value.toFixed(digits),
  };
}
