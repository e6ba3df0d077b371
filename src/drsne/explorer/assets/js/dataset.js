// The rows of the page: maps, columns and names.

import { exact, quantile, short, sorted } from "./numbers.js";

const SAMPLE = 50000; // number of values from which the range of colours of a column is taken
const CODE_MISSING = 65535;
const NUMBER = /^\s*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf(inity)?|nan)\s*$/i;

export class Column {
  constructor(described, arrays) {
    const { name, about, diverging, words, low, step } = described;
    Object.assign(this, { name, about, diverging, words, low, step });
    this.isText = described.words !== null;
    this.parts = described.values.map((number) => arrays[number]);
    this.followsMap = this.parts.length > 1;
    this.decoded = new Map();
    this.cachedRange = null;
  }

  // The codes of a column of text, or the numbers of a column of numbers in a map.
  values(map) {
    if (!this.followsMap) return this.parts[0];
    if (!this.decoded.has(map)) {
      const found = Float32Array.from(this.parts[map], (code) =>
        code === CODE_MISSING ? Number.NaN : this.low + code * this.step,
      );
      this.decoded.set(map, found);
    }
    return this.decoded.get(map);
  }

  // The word of a row (null if it is missing), or its number.
  at(row, map) {
    const value = this.values(map)[row];
    return this.isText ? this.words[value] : value;
  }

  shownText(row, map) {
    const value = this.at(row, map);
    if (value === null) return "missing";
    return this.isText ? value : short(value);
  }

  csvText(row, map) {
    const value = this.at(row, map);
    return this.isText ? (value ?? "") : exact(value, this.values(map) instanceof Float32Array);
  }

  // The ends of the colours: the middle 98 % of all values, in all maps.
  get range() {
    if (!this.cachedRange) {
      const all = this.parts.map((_, map) => this.values(map));
      const total = all.reduce((sum, part) => sum + part.length, 0);
      const step = Math.max(1, Math.floor(total / SAMPLE));
      const some = sorted(
        all.flatMap((part) => Array.from({ length: Math.ceil(part.length / step) }, (_, i) => part[i * step])),
      );
      this.cachedRange = some.length ? [quantile(some, 0.01), quantile(some, 0.99)] : [0, 1];
    }
    return this.cachedRange;
  }
}

export class Dataset {
  constructor({ meta, arrays }) {
    this.title = meta.title;
    this.version = meta.version;
    this.n = meta.rows;
    this.names = meta.names;
    this.start = meta.start;
    this.maps = meta.maps.map((map) => ({ title: map.title, tick: map.tick, x: arrays[map.x], y: arrays[map.y] }));
    this.scores = meta.scores;
    this.baseline = meta.baseline;
    this.columns = meta.columns.map((described) => new Column(described, arrays));
    this.label = meta.label === null ? null : this.columns[meta.label];
  }

  name(row) {
    return this.names ? this.names[row] : String(row);
  }

  // The rows whose name, label or text contains the query. Row numbers must be equal to it.
  search(query) {
    const wanted = query.trim().toLowerCase();
    if (!wanted) return [];
    const found = new Uint8Array(this.n);
    if (this.names) {
      for (let row = 0; row < this.n; row++) if (this.names[row].toLowerCase().includes(wanted)) found[row] = 1;
    } else if (/^\d+$/.test(wanted) && Number(wanted) < this.n) found[Number(wanted)] = 1;
    for (const column of this.columns) {
      if (!column.isText) continue;
      const matches = column.words.map((word) => word !== null && word.toLowerCase().includes(wanted));
      if (!matches.includes(true)) continue;
      const codes = column.values(0);
      for (let row = 0; row < this.n; row++) if (matches[codes[row]]) found[row] = 1;
    }
    const rows = [];
    for (let row = 0; row < this.n; row++) if (found[row]) rows.push(row);
    return rows;
  }

  // Comma-separated values (RFC 4180) of the rows, with the columns as they are in a map.
  csv(rows, map) {
    const header = ["row", ...(this.names ? ["name"] : []), ...this.columns.map((column) => column.name)];
    const lines = [header.map(quoted).join(",")];
    for (const row of rows) {
      const cells = [String(row), ...(this.names ? [this.names[row]] : [])];
      for (const column of this.columns) cells.push(column.csvText(row, map));
      lines.push(cells.map(quoted).join(","));
    }
    return `${lines.join("\n")}\n`;
  }
}

// Text that a spreadsheet would take for a formula has an apostrophe before it, as with drsne embed --spreadsheet-safe.
function guarded(text) {
  if (NUMBER.test(text)) return text;
  return /^[\t\r]/.test(text) || /^[=+\-@]/.test(text.trimStart().normalize("NFKC")) ? `'${text}` : text;
}

function quoted(cell) {
  const text = guarded(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
