// The search box. Rows that match are drawn large, and all others faintly.

import { byId } from "./elements.js";
import { count } from "./numbers.js";

const PAUSE = 120; // milliseconds after the last key

export class Search {
  constructor(dataset, plot, onSelect) {
    Object.assign(this, { dataset, plot });
    this.input = byId("search");
    this.rows = [];
    this.timer = 0;
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), PAUSE);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      this.run();
      if (this.rows.length) this.plot.fit({ rows: this.rows });
    });
    byId("select-found").addEventListener("click", () => onSelect(this.rows));
    byId("clear-search").addEventListener("click", () => {
      this.clear();
      this.input.focus();
    });
  }

  run() {
    clearTimeout(this.timer);
    const query = this.input.value;
    const visible = this.plot.visibleRows;
    this.rows = this.dataset.search(query);
    if (visible) {
      const shown = new Set(visible);
      this.rows = this.rows.filter((row) => shown.has(row));
    }
    const asked = query.trim() !== "";
    byId("search-result").hidden = !asked;
    byId("found").textContent = this.rows.length === 1 ? "1 match" : `${count(this.rows.length)} matches`;
    byId("select-found").hidden = this.rows.length === 0;
    return this.plot.highlight(this.rows);
  }

  clear() {
    if (!this.input.value) return;
    this.input.value = "";
    this.run();
  }
}
