// What is shown beside the pointer: the name of a row, its label and its columns.

import { byId, element, swatch, userText, wordText } from "./elements.js";
import { short } from "./numbers.js";

const MOST = 8; // number of columns
const GAP = 14; // pixels

export class Tooltip {
  constructor(dataset, plot, colours) {
    Object.assign(this, { dataset, plot, colours });
    this.row = null;
    this.box = byId("tooltip");
    this.ring = byId("ring");
    plot.scatter.subscribe("view", () => this.place());
  }

  show(row) {
    this.row = row;
    this.box.hidden = this.ring.hidden = row === null;
    if (row === null) return;
    const { dataset } = this;
    const name = dataset.names ? userText(dataset.name(row)) : `Row ${row}`;
    this.box.replaceChildren(element("strong", { class: "tip-name" }, name), element("dl", {}, ...this.lines(row)));
    this.place();
  }

  lines(row) {
    const shown = this.colours.column;
    const listed = [shown, ...this.dataset.columns.filter((column) => column !== shown)].filter(Boolean).slice(0, MOST);
    if (this.dataset.label && !listed.includes(this.dataset.label)) listed[MOST - 1] = this.dataset.label;
    return listed.flatMap((column) => {
      const value = column.at(row, this.plot.map);
      const text = column.isText ? wordText(value) : short(value);
      const mark = column === shown ? swatch(this.colours.colourOf(row)) : null;
      return [element("dt", {}, userText(column.name)), element("dd", {}, mark, text)];
    });
  }

  place() {
    if (this.row === null) return;
    const [x, y] = this.plot.screenPosition(this.row);
    const stage = this.box.parentElement;
    this.ring.style.transform = `translate(${x}px, ${y}px)`;
    const left = x + GAP + this.box.offsetWidth > stage.clientWidth ? x - GAP - this.box.offsetWidth : x + GAP;
    const top = Math.min(Math.max(8, y - this.box.offsetHeight / 2), stage.clientHeight - this.box.offsetHeight - 8);
    this.box.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }
}
