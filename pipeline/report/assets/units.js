// Numbers as people read them.

function scaled(value, units, base) {
  let unit = 0;
  while (Math.abs(value) >= base && unit < units.length - 1) { value /= base; unit += 1; }
  return `${digits(value)} ${units[unit]}`;
}

/** Three digits that count. */
function digits(value) {
  const size = Math.abs(value);
  if (!size) return "0";
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.995 ? 2 : 3);
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  return scaled(value * 1e9, ["ns", "µs", "ms", "s"], 1000);
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  return value < 1000 ? `${value} B` : scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000);
}

function count(value) {
  if (value === null || value === undefined) return "–";
  return value < 1000 ? String(value) : scaled(value, ["", "k", "M", "G", "T"], 1000).trim();
}

function percent(part) {
  if (part === null || part === undefined || !isFinite(part)) return "–";
  return `${(part * 100).toFixed(part < 0.0995 ? 1 : 0)} %`;
}

function plural(number, word, more) {
  return `${number} ${number === 1 ? word : more || `${word}s`}`;
}

/** The end of a path with its line: `net.py:12`. */
function short(source) {
  return source ? source.split("/").pop() : "unknown line";
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
