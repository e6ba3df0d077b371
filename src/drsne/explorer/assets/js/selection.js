// The panel of the selected rows: what they are, and how they leave the page.

import { byId, element, say, swatch, userText } from "./elements.js";
import { count, rowsText } from "./numbers.js";
import { Summary } from "./summary.js";

const LISTED = 100; // number of rows in the list

export class Selection {
  constructor(dataset, plot, colours, tooltip) {
    Object.assign(this, { dataset, plot, colours, tooltip });
    this.rows = [];
    this.summary = new Summary(dataset, colours);
    byId("download").addEventListener("click", () => this.download());
    byId("copy").addEventListener("click", () => this.copy());
    byId("zoom-selection").addEventListener("click", () => this.plot.fit({ rows: this.rows }));
    byId("deselect").addEventListener("click", () => this.set([]));
    this.refresh();
  }

  // Selects rows that are shown. The plot learns about it unless it said so itself.
  set(rows, { fromPlot = false } = {}) {
    const shown = this.plot.visibleRows && new Set(this.plot.visibleRows);
    this.rows = shown ? rows.filter((row) => shown.has(row)) : rows;
    if (!fromPlot) this.plot.select(this.rows);
    if (rows.length) byId("selection-panel").open = true;
    this.refresh();
  }

  refresh() {
    const { rows } = this;
    byId("selection-count").textContent = rows.length ? count(rows.length) : "";
    byId("selection-empty").hidden = rows.length > 0;
    byId("selection-body").hidden = rows.length === 0;
    if (!rows.length) return;
    const share = ((100 * rows.length) / this.dataset.n).toFixed(1);
    byId("selection-text").textContent = `${rowsText(rows.length)} selected, ${share} % of all`;
    const map = this.plot.map;
    byId("summary").replaceChildren(...this.summary.classes(rows), ...this.summary.numbers(rows, map));
    const title = rows.length > LISTED ? `First ${LISTED} of ${rowsText(rows.length)}` : "Rows";
    byId("rows-title").textContent = title;
    byId("rows").replaceChildren(...rows.slice(0, LISTED).map((row) => this.line(row)));
  }

  line(row) {
    const { dataset, colours } = this;
    const point = () => this.tooltip.show(row);
    const leave = () => this.tooltip.show(null);
    const shown = colours.column ? colours.column.shownText(row, this.plot.map) : "";
    return element(
      "li",
      {},
      element(
        "button",
        {
          type: "button",
          class: "row",
          onmouseenter: point,
          onfocus: point,
          onmouseleave: leave,
          onblur: leave,
          onclick: () => this.plot.fit({ rows: [row] }),
        },
        swatch(colours.colourOf(row)),
        element("span", { class: "row-name" }, dataset.names ? userText(dataset.name(row)) : `Row ${row}`),
        element("span", { class: "row-value" }, userText(shown)),
      ),
    );
  }

  download() {
    const blob = new Blob([this.dataset.csv(this.rows, this.plot.map)], { type: "text/csv;charset=utf-8" });
    const address = URL.createObjectURL(blob);
    const link = element("a", { href: address, download: "selection.csv" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    say(`Saved ${rowsText(this.rows.length)} as selection.csv`);
  }

  async copy() {
    const text = this.rows.join(", ");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copyOldWay(text); // pages from a disk, and frames of a notebook, may not use the clipboard directly
    }
    say(`Copied ${count(this.rows.length)} row numbers`);
  }
}

function copyOldWay(text) {
  const area = element("textarea", { class: "away", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
