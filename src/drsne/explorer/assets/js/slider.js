// The slider below the map. It morphs while it is dragged, and then goes on to the nearest map.

import { byId, element, userText } from "./elements.js";
import { short } from "./numbers.js";

const SHOWN_SCORES = { trustworthiness: "Trustworthiness", concentration_correlation: "Concentration correlation" };

export class Slider {
  constructor(dataset, onMove) {
    this.dataset = dataset;
    this.onMove = onMove; // (position, settled)
    this.last = dataset.maps.length - 1;
    this.map = dataset.start;
    this.input = byId("slider");
    byId("dock").hidden = this.last === 0;
    if (this.last === 0) return;
    this.input.max = String(this.last);
    this.input.addEventListener("input", () => this.drag(Number(this.input.value)));
    this.input.addEventListener("change", () => this.go(Math.round(Number(this.input.value))));
    byId("previous").addEventListener("click", () => this.step(-1));
    byId("next").addEventListener("click", () => this.step(1));
    this.ticks = dataset.maps.map((map, i) => this.tick(map, i));
    byId("ticks").append(...this.ticks);
    this.show(this.map);
  }

  tick(map, i) {
    const button = element(
      "button",
      { type: "button", class: "tick", tabindex: "-1", title: map.title, onclick: () => this.go(i) },
      userText(map.tick),
    );
    button.style.setProperty("--at", String(i / this.last));
    // Of many maps, only some are named.
    if (i % Math.ceil(this.dataset.maps.length / 12) && i !== this.last) button.classList.add("minor");
    return button;
  }

  drag(position) {
    this.show(Math.round(position));
    this.onMove(position, false);
  }

  step(by) {
    this.go(this.map + by);
  }

  go(map) {
    if (this.last === 0) return;
    const target = Math.min(this.last, Math.max(0, map));
    this.input.value = String(target);
    this.show(target);
    this.onMove(target, true);
  }

  show(map) {
    this.map = map;
    const { title } = this.dataset.maps[map];
    this.input.value = this.input.matches(":active") ? this.input.value : String(map);
    this.input.setAttribute("aria-valuetext", title);
    byId("map-title").replaceChildren(userText(title));
    this.ticks.forEach((tick, i) => tick.classList.toggle("current", i === map));
    byId("previous").disabled = map === 0;
    byId("next").disabled = map === this.last;
    const known = Object.entries(SHOWN_SCORES).filter(([name]) => Number.isFinite(this.dataset.scores[name]?.[map]));
    byId("map-scores").replaceChildren(
      ...known.map(([name, text]) =>
        element("span", { class: "score" }, `${text} `, element("b", {}, short(this.dataset.scores[name][map]))),
      ),
    );
  }
}
