// Describes a selection beside all rows: counts of the labels, and means and medians of the numbers.

import { element, swatch, userText, wordText } from "./elements.js";
import { count, mean, quantile, short, sorted } from "./numbers.js";
import { classColours, missingColour } from "./palettes.js";

const MOST_CLASSES = 12;

export class Summary {
  constructor(dataset, colours) {
    Object.assign(this, { dataset, colours });
    this.overall = new Map(); // statistics of all rows, by column and map
  }

  // The classes of the label, or else of the column that the points are coloured by.
  classes(rows) {
    const column = this.dataset.label ?? (this.colours.column?.isText ? this.colours.column : null);
    if (!column) return [];
    const all = this.colours.countsOf(column);
    const codes = column.values(0);
    const found = new Map();
    for (const row of rows) found.set(codes[row], (found.get(codes[row]) ?? 0) + 1);
    const listed = [...found].sort((a, b) => b[1] - a[1]);
    const lines = listed
      .slice(0, MOST_CLASSES)
      .map(([code, number]) => this.classLine(column, code, number, all[code], rows.length));
    const title = element("caption", {}, "By ", userText(column.name));
    const head = element("tr", {}, ...["", "rows", "of class"].map((text) => element("th", { scope: "col" }, text)));
    const parts = [
      element("table", { class: "counts" }, title, element("thead", {}, head), element("tbody", {}, ...lines)),
    ];
    if (listed.length > MOST_CLASSES)
      parts.push(element("p", { class: "hint" }, `and ${count(listed.length - MOST_CLASSES)} more`));
    return parts;
  }

  classLine(column, code, number, total, size) {
    const theme = this.colours.theme.name;
    const word = column.words[code];
    const colour =
      column === this.colours.column ? this.colours.classColour(code) : classColours(code + 1, theme)[code];
    const share = element("span", { class: "share" });
    share.style.setProperty("--share", String(number / size));
    share.style.setProperty("--colour", word === null ? missingColour(theme) : colour);
    return element(
      "tr",
      {},
      element(
        "th",
        { scope: "row" },
        element("span", { class: "cell" }, swatch(word === null ? missingColour(theme) : colour), wordText(word)),
        share,
      ),
      element("td", {}, count(number)),
      element("td", {}, `${((100 * number) / total).toFixed(number === total ? 0 : 1)} %`),
    );
  }

  numbers(rows, map) {
    const columns = this.dataset.columns.filter((column) => !column.isText);
    if (!columns.length) return [];
    const lines = columns.map((column) => {
      const values = column.values(map);
      const some = statistics(rows.map((row) => values[row]));
      const all = this.ofAll(column, map);
      const cell = (name) =>
        element("td", {}, short(some[name]), element("span", { class: "other" }, short(all[name])));
      const head = element(
        "th",
        { scope: "row", title: column.name },
        userText(column.name),
        element("span", { class: "other" }, "all rows"),
      );
      return element("tr", {}, head, cell("mean"), cell("median"));
    });
    const head = element("tr", {}, ...["", "mean", "median"].map((text) => element("th", { scope: "col" }, text)));
    const title = element("caption", {}, "Numbers");
    return [element("table", {}, title, element("thead", {}, head), element("tbody", {}, ...lines))];
  }

  ofAll(column, map) {
    const key = `${this.dataset.columns.indexOf(column)} ${column.followsMap ? map : 0}`;
    if (!this.overall.has(key)) this.overall.set(key, statistics(column.values(map)));
    return this.overall.get(key);
  }
}

function statistics(values) {
  return { mean: mean(values), median: quantile(sorted(values), 0.5) };
}
