// The panel that chooses the column and the palette of the colours, and which classes are shown.

import { byId, element } from "./elements.js";
import { classCounts, classLegend, colourBar } from "./legend.js";
import { count } from "./numbers.js";
import { classColours, LEVELS, missingColour, RAMPS, rampColours } from "./palettes.js";

const MOST_COLOURS = 1024; // further classes use these colours again

export class Colours {
  constructor(dataset, plot, theme, { onFilter, onChange }) {
    Object.assign(this, { dataset, plot, theme, onFilter, onChange });
    this.column = dataset.label ?? dataset.columns.find((column) => !column.isText) ?? dataset.columns[0] ?? null;
    this.hidden = new Map(); // of each column, the classes that are hidden
    this.ramps = new Map();
    this.counts = new Map();
    this.chooser = byId("colour-by");
    this.ramp = byId("ramp");
    const options = dataset.columns.map((column, i) => element("option", { value: i }, column.name));
    this.chooser.append(...options, element("option", { value: -1 }, "(one colour)"));
    this.ramp.append(...Object.entries(RAMPS).map(([value, text]) => element("option", { value }, text)));
    this.chooser.value = String(dataset.columns.indexOf(this.column));
    this.chooser.addEventListener("change", () =>
      this.choose(this.dataset.columns[Number(this.chooser.value)] ?? null),
    );
    this.ramp.addEventListener("change", () => {
      this.ramps.set(this.column, this.ramp.value);
      this.refresh();
    });
    byId("show-all").addEventListener("click", () => this.showAll());
    byId("hide-all").addEventListener("click", () => this.hideAll());
    byId("filter-reset").addEventListener("click", () => this.showAll({ everywhere: true }));
  }

  choose(column) {
    this.column = column;
    this.chooser.value = String(this.dataset.columns.indexOf(column));
    return this.refresh();
  }

  get rampName() {
    return this.ramps.get(this.column) ?? (this.column.diverging ? "diverging" : "viridis");
  }

  // The ends of the scale. A diverging scale is symmetric.
  get range() {
    const [low, high] = this.column.range;
    if (this.rampName === "diverging") {
      const end = Math.max(Math.abs(low), Math.abs(high)) || 1;
      return [-end, end];
    }
    return low < high ? [low, high] : [low - 0.5, high + 0.5];
  }

  // Colours the points again, after the column, the map or the theme has changed.
  refresh() {
    const { column } = this;
    const theme = this.theme.name;
    if (!column) {
      this.codes = new Uint8Array(this.dataset.n);
      this.colours = [this.theme.colour("--accent")];
    } else if (column.isText) {
      const number = Math.min(column.words.length, MOST_COLOURS);
      this.colours = classColours(number, theme);
      if (column.words.at(-1) === null && column.words.length <= number)
        this.colours[number - 1] = missingColour(theme);
      this.codes = Uint16Array.from(column.values(0), (code) => code % number);
    } else {
      const [low, high] = this.range;
      const factor = (LEVELS - 1) / (high - low);
      this.colours = [...rampColours(this.rampName, theme), missingColour(theme)];
      this.codes = Uint16Array.from(column.values(this.plot.map), (value) =>
        Number.isFinite(value) ? Math.min(LEVELS - 1, Math.max(0, Math.round((value - low) * factor))) : LEVELS,
      );
    }
    this.drawKey();
    this.onChange();
    return this.plot.colour(this.codes, this.colours);
  }

  // The slider has reached another map.
  mapChanged() {
    return this.column?.followsMap ? this.refresh() : null;
  }

  colourOf(row) {
    return this.colours[this.codes[row]];
  }

  classColour(code) {
    return this.colours[code % this.colours.length];
  }

  countsOf(column) {
    if (!this.counts.has(column)) this.counts.set(column, classCounts(column, this.dataset.n));
    return this.counts.get(column);
  }

  hiddenIn(column) {
    if (!this.hidden.has(column)) this.hidden.set(column, new Set());
    return this.hidden.get(column);
  }

  drawKey() {
    const { column } = this;
    const isText = Boolean(column?.isText);
    byId("about").textContent = column?.about ?? "";
    byId("ramp-field").hidden = isText || !column;
    byId("class-tools").hidden = !isText;
    const key = byId("key");
    const scrolled = key.firstElementChild?.scrollTop ?? 0;
    if (!column) key.replaceChildren();
    else if (isText) {
      const hidden = this.hiddenIn(column);
      const actions = { onToggle: (code) => this.toggle(code), onOnly: (code) => this.only(code) };
      const focused = [...key.querySelectorAll("button")].indexOf(document.activeElement);
      key.replaceChildren(
        ...classLegend({ column, counts: this.countsOf(column), colours: this.colours, hidden, ...actions }),
      );
      key.firstElementChild.scrollTop = scrolled;
      if (focused >= 0) key.querySelectorAll("button")[focused]?.focus();
    } else {
      this.ramp.value = this.rampName;
      key.replaceChildren(...colourBar({ column, map: this.plot.map, colours: this.colours, range: this.range }));
    }
  }

  toggle(code) {
    const hidden = this.hiddenIn(this.column);
    if (!hidden.delete(code)) hidden.add(code);
    this.filter();
  }

  // Shows one class only, or all classes if it is already the only one.
  only(code) {
    const hidden = this.hiddenIn(this.column);
    const number = this.column.words.length;
    const already = hidden.size === number - 1 && !hidden.has(code);
    hidden.clear();
    if (!already) for (let other = 0; other < number; other++) if (other !== code) hidden.add(other);
    this.filter();
  }

  hideAll() {
    const hidden = this.hiddenIn(this.column);
    for (let code = 0; code < this.column.words.length; code++) hidden.add(code);
    this.filter();
  }

  showAll({ everywhere = false } = {}) {
    if (everywhere) this.hidden.clear();
    else this.hiddenIn(this.column).clear();
    this.filter();
  }

  // Classes that are hidden in one column stay hidden when the points are coloured by another.
  filter() {
    const active = [...this.hidden].filter(([, classes]) => classes.size);
    let rows = null;
    if (active.length) {
      rows = [];
      for (let row = 0; row < this.dataset.n; row++) {
        if (active.every(([column, classes]) => !classes.has(column.values(0)[row]))) rows.push(row);
      }
    }
    byId("filter-note").hidden = !rows;
    if (rows) byId("filter-text").textContent = `${count(rows.length)} of ${count(this.dataset.n)} rows shown`;
    this.drawKey();
    const drawn = this.plot.show(rows);
    this.onFilter();
    return drawn;
  }
}
