// Numbers as text, and statistics of columns.

const WHOLE = new Intl.NumberFormat("en");

export const count = (value) => WHOLE.format(value);

export const rowsText = (value) => `${count(value)} ${value === 1 ? "row" : "rows"}`;

export function short(value) {
  if (!Number.isFinite(value)) return "missing";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return minus(WHOLE.format(value));
  if (size >= 1e6 || size < 1e-3) return minus(value.toExponential(2));
  if (size >= 1000) return minus(WHOLE.format(Math.round(value)));
  return minus(value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3));
}

const minus = (text) => text.replace("-", "\u2212");

// The shortest decimal number that is the same as the value, in single precision if the value is stored so.
export function exact(value, single) {
  if (!Number.isFinite(value)) return "";
  if (!single || Number.isInteger(value)) return String(value);
  for (let digits = 1; digits <= 9; digits++) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === Math.fround(value)) return String(text);
  }
  return String(value);
}

export function mean(values) {
  let sum = 0;
  let known = 0;
  for (const value of values) {
    if (Number.isFinite(value)) {
      sum += value;
      known += 1;
    }
  }
  return known ? sum / known : Number.NaN;
}

// The finite values in ascending order.
export function sorted(values) {
  return Float32Array.from(values).filter(Number.isFinite).sort();
}

export function quantile(ascending, level) {
  if (!ascending.length) return Number.NaN;
  const place = level * (ascending.length - 1);
  const low = Math.floor(place);
  const high = Math.ceil(place);
  return ascending[low] + (ascending[high] - ascending[low]) * (place - low);
}
