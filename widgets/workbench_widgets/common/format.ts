// Numbers as people read them.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `12.5 KiB`; exact below 1 KiB. */
export function bytes(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "–";
  let size = Math.abs(value);
  let unit = 0;
  // From where rounding would show 1024 of a unit.
  while (size >= (unit === 0 ? 1024 : 1023.5) && unit < BYTES.length - 1) {
    size /= 1024;
    unit++;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)} ${BYTES[unit]}`;
}

/** Milliseconds: `1.25 ms`, `830 µs`, `2.40 s`. */
export function ms(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  // From where rounding would show 1000 of a unit.
  if (size >= 999.5) return `${sign}${size < 999_500 ? (size / 1000).toPrecision(3) : count(size / 1000)} s`;
  if (size >= 0.9995) return `${sign}${size.toPrecision(3)} ms`;
  if (size >= 0.9995e-3) return `${sign}${(size * 1e3).toPrecision(3)} µs`;
  return size === 0 ? "0" : `${sign}${(size * 1e6).toFixed(0)} ns`;
}

/** A count with thin separators: `12,345`. */
export function count(value: number | null): string {
  return value === null || !Number.isFinite(value) ? "–" : Math.round(value).toLocaleString("en-US");
}

/** Three significant digits, or an exponent where that is shorter. */
export function number(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return size >= 999.5 ? value.toFixed(0) : value.toPrecision(3);
}

export function percent(share: number | null): string {
  return share === null || !Number.isFinite(share) ? "–" : `${share < 0 ? "−" : ""}${Math.abs(100 * share).toFixed(1)} %`;
}

/** A difference with its sign. */
export function delta(value: number | null, format: (value: number) => string): string {
  if (value === null || !Number.isFinite(value)) return "–";
  return value > 0 ? `+${format(value)}` : format(value);
}

/** Text cut in its middle, which keeps the ends that tell names apart. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}

/** Seconds: `0.42 s`, `12.0 s`, `830 ms`. */
export function seconds(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value < 0.1) return ms(1000 * value);
  return `${value < 10 ? value.toFixed(2) : value.toFixed(1)} s`;
}
