// What is measured, as far as it is known: the document, and what a run that goes on adds to it.
import type { MachinePeaks, ProfileBatch, ProfileDocument } from "../contract.ts";

/** How many of the latest times of a row its percentiles are of while a run goes on. */
const WINDOW = 96;
const HISTORY = 4096;

export interface Times {
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
}

export interface Progress {
  readonly repeat: number;
  readonly seconds: number;
}

export class ProfileModel {
  readonly document: ProfileDocument;
  readonly rows: number;
  /** What runs inside the delegate that a row calls. */
  readonly inside: readonly (readonly number[])[];
  readonly count: Float64Array;
  readonly mean: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly history: number[];
  readonly historyExecution: number[];
  peaks: MachinePeaks | null;
  executions: number;
  elapsed: number;
  dropped: number;
  private readonly median: Float64Array;
  private readonly p10: Float64Array;
  private readonly p90: Float64Array;
  private readonly window: Float32Array;
  private readonly filled: Uint32Array;
  private readonly stale: Uint8Array;
  private live = false;
  private whole: { sum: number; version: number } = { sum: 0, version: -1 };
  private version = 0;

  constructor(document: ProfileDocument) {
    this.document = document;
    this.rows = document.name.length;
    this.count = document.count.slice();
    this.mean = document.mean.slice();
    this.min = document.min.slice();
    this.max = document.max.slice();
    this.median = document.median.slice();
    this.p10 = document.p10.slice();
    this.p90 = document.p90.slice();
    this.window = new Float32Array(document.state === "running" ? this.rows * WINDOW : 0);
    this.filled = new Uint32Array(this.rows);
    this.stale = new Uint8Array(this.rows);
    this.history = [...document.history];
    this.historyExecution = [...document.history_execution];
    this.peaks = document.peaks;
    this.executions = document.executions;
    this.elapsed = document.elapsed;
    this.dropped = document.dropped;
    const inside: number[][] = Array.from({ length: this.rows }, () => []);
    document.parent.forEach((parent, row) => {
      if (parent >= 0) inside[parent]!.push(row);
    });
    this.inside = inside;
  }

  get measured(): boolean {
    return this.executions > 0;
  }

  /** Rows that are instructions, in order. */
  instructions(): number[] {
    const found: number[] = [];
    for (let row = 0; row < this.rows; row++) if (this.document.parent[row]! < 0) found.push(row);
    return found;
  }

  /** Takes in what has happened; false if it belongs to another run. */
  apply(batch: ProfileBatch): boolean {
    if (batch.run !== this.document.run || this.document.state !== "running") return false;
    this.live = true;
    this.version++;
    this.executions = batch.executions;
    this.elapsed = batch.elapsed;
    this.dropped = batch.dropped;
    const width = batch.row.length;
    for (let at = 0; at < width; at++) {
      const row = batch.row[at]!;
      if (row < 0 || row >= this.rows) continue;
      this.count[row] = batch.count[at]!;
      this.mean[row] = batch.count[at]! ? batch.sum[at]! / batch.count[at]! : NaN;
      this.min[row] = batch.min[at]!;
      this.max[row] = batch.max[at]!;
      for (let sample = 0; sample < batch.sampled; sample++) {
        this.remember(row, batch.samples[sample * width + at]!);
      }
    }
    // The document that began the run may have the first of them already.
    const known = this.historyExecution[this.historyExecution.length - 1] ?? -1;
    batch.recent.forEach((duration, index) => {
      const execution = batch.first + index * batch.stride;
      if (execution <= known) return;
      this.history.push(duration);
      this.historyExecution.push(execution);
    });
    this.thin();
    return true;
  }

  /** Median and the 10th and 90th percentile of a row, ms; NaN where nothing was measured. */
  times(row: number): Times {
    if (this.live && this.stale[row]) {
      const size = Math.min(this.filled[row]!, WINDOW);
      const sorted = this.window.slice(row * WINDOW, row * WINDOW + size).sort();
      this.median[row] = quantile(sorted, 0.5);
      this.p10[row] = quantile(sorted, 0.1);
      this.p90[row] = quantile(sorted, 0.9);
      this.stale[row] = 0;
    }
    return { median: this.median[row]!, p10: this.p10[row]!, p90: this.p90[row]! };
  }

  /** Milliseconds of all instructions in an execution: their medians added. */
  sum(): number {
    if (this.whole.version !== this.version) {
      let sum = 0;
      for (let row = 0; row < this.rows; row++) {
        if (this.document.parent[row]! < 0) sum += this.cost(row);
      }
      this.whole = { sum, version: this.version };
    }
    return this.whole.sum;
  }

  /** Median time of a row, less where it does not run in each execution. */
  cost(row: number): number {
    const { median } = this.times(row);
    return median > 0 && this.executions ? (median * this.count[row]!) / this.executions : 0;
  }

  /** The part of all time that a row takes; those of all instructions add up to 1. */
  share(row: number): number {
    const sum = this.sum();
    return sum > 0 ? this.cost(row) / sum : NaN;
  }

  /** Median of whole executions. */
  total(): Times {
    if (!this.live) {
      const { total_median, total_p10, total_p90 } = this.document;
      return { median: total_median ?? NaN, p10: total_p10 ?? NaN, p90: total_p90 ?? NaN };
    }
    const sorted = Float64Array.from(this.history.slice(-1024)).sort();
    return {
      median: quantile(sorted, 0.5),
      p10: quantile(sorted, 0.1),
      p90: quantile(sorted, 0.9),
    };
  }

  private remember(row: number, time: number): void {
    if (Number.isNaN(time)) return;
    this.window[row * WINDOW + (this.filled[row]! % WINDOW)] = time;
    this.filled[row]!++;
    this.stale[row] = 1;
  }

  /** Keeps the history short: of neighbours the slower one stays. */
  private thin(): void {
    while (this.history.length > HISTORY) {
      const length = Math.ceil(this.history.length / 2);
      for (let index = 0; index < length; index++) {
        const [left, right] = [2 * index, Math.min(2 * index + 1, this.history.length - 1)];
        const chosen = this.history[left]! >= this.history[right]! ? left : right;
        this.history[index] = this.history[chosen]!;
        this.historyExecution[index] = this.historyExecution[chosen]!;
      }
      this.history.length = this.historyExecution.length = length;
    }
  }
}

/** A quantile of sorted numbers, linearly interpolated; NaN of none. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  if (!sorted.length) return NaN;
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low]! + (place - low) * (sorted[high]! - sorted[low]!);
}

export interface Limit {
  /** Operations per byte. */
  readonly intensity: number;
  /** Reached, 1e9 operations a second. */
  readonly reached: number;
  /** Reached, 1e9 bytes a second. */
  readonly bytesRate: number;
  /** What the machine allows at this intensity, 1e9 operations a second. */
  readonly attainable: number;
  /** The part of it that is reached, by whichever limit binds. */
  readonly part: number;
  readonly bound: "compute" | "memory" | "";
}

/** Where work stands under the roofline. Times are ms. */
export function limitOf(
  flops: number,
  bytes: number,
  time: number,
  peaks: MachinePeaks | null,
): Limit {
  const intensity = flops / bytes;
  const reached = time > 0 ? flops / time / 1e6 : NaN;
  const bytesRate = time > 0 ? bytes / time / 1e6 : NaN;
  if (!peaks || !(bytes > 0)) {
    return { intensity, reached, bytesRate, attainable: NaN, part: NaN, bound: "" };
  }
  const attainable = Math.min(peaks.gflops, intensity * peaks.gbytes);
  const compute = intensity * peaks.gbytes >= peaks.gflops;
  const part = compute ? reached / attainable : bytesRate / peaks.gbytes;
  return { intensity, reached, bytesRate, attainable, part, bound: compute ? "compute" : "memory" };
}
