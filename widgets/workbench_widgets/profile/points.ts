// Where instructions stand under the roofline.
import { limitOf, type Limit, type ProfileModel } from "./model.ts";

export interface Point {
  readonly row: number;
  readonly time: number;
  readonly limit: Limit;
}

/** Rows with counted work and measured time: those that stand somewhere under the roof. Slowest first. */
export function pointsOf(model: ProfileModel): Point[] {
  const { document } = model;
  const points: Point[] = [];
  for (let row = 0; row < model.rows; row++) {
    // The inside of a delegate stands for its call where work and times of all of it are known.
    const inner = model.inside[row]!;
    if (inner.length && inner.every((child) => drawable(model, child))) continue;
    const parent = document.parent[row]!;
    if (parent >= 0 && !model.inside[parent]!.every((child) => drawable(model, child))) continue;
    if (!drawable(model, row)) continue;
    const time = model.times(row).median;
    points.push({
      row,
      time,
      limit: limitOf(document.flops[row]!, document.bytes[row]!, time, model.peaks),
    });
  }
  return points.sort((a, b) => b.time - a.time);
}

function drawable(model: ProfileModel, row: number): boolean {
  return (
    model.document.flops[row]! > 0 && model.document.bytes[row]! > 0 && model.times(row).median > 0
  );
}

export interface Ranges {
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
}

/** Whole decades that hold all points and the ridge. */
export function rangesOf(
  points: readonly Point[],
  peaks: { gflops: number; gbytes: number } | null,
): Ranges {
  const xs = points.map((point) => point.limit.intensity);
  const ys = points.map((point) => point.limit.reached);
  if (peaks) {
    xs.push(peaks.gflops / peaks.gbytes);
    ys.push(peaks.gflops);
  }
  return { x: decades(xs), y: decades(ys) };
}

function decades(values: readonly number[]): readonly [number, number] {
  const usable = values.filter((value) => value > 0 && Number.isFinite(value));
  if (!usable.length) return [0.1, 10];
  const low = 10 ** Math.floor(Math.log10(Math.min(...usable) * 0.85));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...usable) * 1.5));
  return [low, Math.max(high, low * 10)];
}

/** A logarithmic scale from a range to pixels. */
export function scaleOf(
  range: readonly [number, number],
  from: number,
  to: number,
): (value: number) => number {
  const low = Math.log(range[0]);
  const span = Math.log(range[1]) - low || 1;
  return (value) => from + ((Math.log(value) - low) / span) * (to - from);
}
