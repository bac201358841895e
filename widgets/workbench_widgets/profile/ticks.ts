// Where the marks of an axis stand, and what is written at them.

export interface Tick {
  readonly value: number;
  readonly text: string;
  /** With a label; others are only drawn. */
  readonly major: boolean;
}

const UNITS: readonly (readonly [number, string])[] = [
  [1000, "s"],
  [1, "ms"],
  [1e-3, "µs"],
  [1e-6, "ns"],
];

/** A round step of 1, 2 or 5 times a power of ten that gives at most so many marks. */
export function step(span: number, most: number): number {
  if (!(span > 0) || !(most > 0)) return 1;
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= raw * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Marks of a time axis in ms; all labels in one unit, with as many digits as tell them apart. */
export function timeTicks(low: number, high: number, most: number): Tick[] {
  const size = step(high - low, most);
  const largest = Math.max(Math.abs(low), Math.abs(high));
  const [unit, name] = UNITS.find(([factor]) => largest >= factor) ?? UNITS[UNITS.length - 1]!;
  const digits = Math.max(0, -Math.floor(Math.log10(size / unit) + 1e-9));
  const ticks: Tick[] = [];
  const first = Math.ceil(low / size - 1e-9);
  for (let index = first; index * size <= high * (1 + 1e-12) && ticks.length < 200; index++) {
    const value = index * size;
    ticks.push({ value, text: `${(value / unit).toFixed(digits)} ${name}`, major: true });
  }
  return ticks;
}

/** Marks of a logarithmic axis: powers of ten with labels, 2 to 9 between them without. */
export function logTicks(low: number, high: number): Tick[] {
  const ticks: Tick[] = [];
  if (!(low > 0) || !(high > low)) return ticks;
  const few = Math.log10(high / low) < 1.5;
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (let digit = 1; digit < 10; digit++) {
      const value = digit * 10 ** power;
      if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
      const major = digit === 1 || (few && (digit === 2 || digit === 5));
      ticks.push({ value, text: plain(value), major });
    }
  }
  return ticks;
}

function plain(value: number): string {
  if (value >= 1e6 || value < 1e-3) return value.toExponential(0);
  return String(Number(value.toPrecision(3)));
}
