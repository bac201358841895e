// What the quantization view knows, without drawing: states, orders, parts of a histogram, words for numbers.
import type {
  QuantizationAccuracy,
  QuantizationChoice,
  QuantizationDocument,
  QuantizationObservers,
  QuantizationOutcome,
} from "../contract.ts";
import { bytes, number, percent, seconds } from "../common/format.ts";

export type Shown = "all" | "quantized" | "float" | "unfused" | "edited";

export const SHOWN: Readonly<Record<Shown, string>> = {
  all: "all operators",
  quantized: "quantized",
  float: "in floats",
  unfused: "not fused",
  edited: "decided by hand",
};

export const UNFUSED = "quantized, not fused";

/** Types that the switch offers, with their words. */
export const DTYPES: Readonly<Record<string, string>> = {
  int8: "int8, fixed scales",
  "int8 dynamic": "int8, scales at run time",
  "int8 weights": "int8 weights only",
  int4: "int4 weights, int8 inputs",
  "int4 dynamic": "int4 weights, int8 at run time",
  "int4 weights": "int4 weights only",
  float: "keep in floats",
};

export const GRANULARITIES: Readonly<Record<string, string>> = {
  channel: "a scale for each channel",
  tensor: "one scale",
  "32": "groups of 32",
  "64": "groups of 64",
  "128": "groups of 128",
};

export const OBSERVERS: Readonly<Record<string, string>> = {
  min_max: "min/max",
  moving_average: "moving average",
  histogram: "histogram",
  percentile: "percentile",
  mse: "least squared error",
};

/** The shape that says the state without colour. */
export function sign(state: string): string {
  return state === "float" ? "○" : state === UNFUSED ? "◐" : "●";
}

export function isShown(doc: QuantizationDocument, row: number, shown: Shown): boolean {
  const state = doc.state.get(row);
  switch (shown) {
    case "all":
      return true;
    case "quantized":
      return state !== "float";
    case "float":
      return state === "float";
    case "unfused":
      return state === UNFUSED;
    case "edited":
      return doc.edited[row] === 1;
  }
}

/** How many operators there are of each kind. */
export function countsOf(doc: QuantizationDocument): Record<Shown, number> {
  const found: Record<Shown, number> = { all: 0, quantized: 0, float: 0, unfused: 0, edited: 0 };
  for (let row = 0; row < doc.node.length; row++) {
    for (const shown of Object.keys(found) as Shown[]) if (isShown(doc, row, shown)) found[shown]++;
  }
  return found;
}

/** Rows of the observers of an operator, each with what it sees. */
export function usesOf(doc: QuantizationDocument, row: number): { observer: number; role: string }[] {
  const found = [];
  for (let at = doc.use_start[row]!; at < doc.use_start[row + 1]!; at++) {
    found.push({ observer: doc.use[at]!, role: doc.role.get(at) });
  }
  return found;
}

/** Why an operator is as it is: how it is quantized, or why not, and what the backend said. */
export function reasonOf(doc: QuantizationDocument, row: number): string {
  const reason = doc.how.get(row) || doc.why.get(row);
  const backend = doc.backend_why.get(row);
  return backend ? `${reason}; not fused: ${backend}` : reason;
}

export function choiceOf(doc: QuantizationDocument, row: number): QuantizationChoice | null {
  return doc.choices[doc.choice[row]!] ?? null;
}

/** Decibels; without any noise there are none. */
export function decibels(value: number | null | undefined): string {
  if (value === Infinity) return "exact";
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return value === -Infinity ? "no signal" : `${value.toFixed(1).replace("-", "−")} dB`;
}

/** A small share keeps two digits: a few of a million values are worth to be seen. */
export function share(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (value === 0) return "0 %";
  return value < 5e-4 ? `${(100 * value).toPrecision(2)} %` : percent(value);
}

export function scaleText(seen: QuantizationObservers, at: number): string {
  const scales = seen.scales[at]!;
  if (scales === 0) return seen.kind.get(at) === "dynamic" ? "at run time" : "–";
  if (scales === 1) return number(seen.scale[at]!);
  return `${number(seen.scale_min[at]!)} … ${number(seen.scale[at]!)}`;
}

export function zeroText(seen: QuantizationObservers, at: number): string {
  return seen.scales[at] ? String(seen.zero_point[at]) : "–";
}

/** How many of the integers the values that were seen reach, and how many there are. */
export function integersOf(seen: QuantizationObservers, at: number): { used: number; of: number } | null {
  if (seen.scales[at] !== 1) return null;
  const low = Math.max(seen.min[at]!, seen.low[at]!);
  const high = Math.min(seen.max[at]!, seen.high[at]!);
  if (!(high >= low)) return null;
  const of = seen.quant_max[at]! - seen.quant_min[at]! + 1;
  return { used: Math.min(of, Math.round((high - low) / seen.scale[at]!) + 1), of };
}

export interface Bin {
  readonly low: number;
  readonly high: number;
  readonly count: number;
  /** Most of it lies outside the range that is represented. */
  readonly clipped: boolean;
}

/** The bins of an observer's histogram. */
export function binsOf(seen: QuantizationObservers, at: number): Bin[] {
  const [start, end] = [seen.bins_start[at]!, seen.bins_start[at + 1]!];
  const width = (seen.bins_high[at]! - seen.bins_low[at]!) / Math.max(1, end - start);
  return Array.from({ length: end - start }, (_, bin) => {
    const low = seen.bins_low[at]! + bin * width;
    const middle = low + width / 2;
    const clipped = middle < seen.low[at]! || middle > seen.high[at]!;
    return { low, high: low + width, count: seen.counts[start + bin]!, clipped };
  });
}

export interface Channel {
  /** The first channel that it stands for, and the last. */
  readonly first: number;
  readonly last: number;
  readonly min: number;
  readonly max: number;
  readonly scale: number;
}

export function channelsOf(seen: QuantizationObservers, at: number): Channel[] {
  const [start, end] = [seen.channel_start[at]!, seen.channel_start[at + 1]!];
  const total = seen.channels[at]!;
  const step = end > start ? Math.ceil(total / (end - start)) : 1;
  return Array.from({ length: end - start }, (_, place) => ({
    first: place * step,
    last: Math.min(total, (place + 1) * step) - 1,
    min: seen.channel_min[start + place]!,
    max: seen.channel_max[start + place]!,
    scale: seen.channel_scale[start + place]!,
  }));
}

export function channelName(channel: Channel): string {
  return channel.first === channel.last
    ? `channel ${channel.first}`
    : `channels ${channel.first}–${channel.last}`;
}

/** Round numbers within a range, at most so many. */
export function ticks(low: number, high: number, most: number): number[] {
  const range = high - low;
  if (!(range > 0) || most < 1) return [];
  const rough = range / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough)!;
  const found: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at++) found.push(at * step);
  return found;
}

/** A tick's number, as short as its neighbours allow. */
export function tickText(value: number): string {
  if (value === 0) return "0";
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** The line above the table. */
export function summary(doc: QuantizationDocument, accuracy: QuantizationAccuracy | null): string {
  const counts = countsOf(doc);
  const parts = [`${counts.quantized} of ${counts.all} operators quantized`];
  if (counts.unfused) parts.push(`${counts.unfused} not fused by ${doc.backend || "a backend"}`);
  if (doc.stage === "prepared") parts.push("not calibrated yet");
  else parts.push(`${doc.samples} calibration ${doc.samples === 1 ? "sample" : "samples"}`);
  if (accuracy?.measured) {
    const samples = `${accuracy.samples} ${accuracy.samples === 1 ? "sample" : "samples"}`;
    parts.push(`outputs ${decibels(accuracy.sqnr_db ?? Infinity)} on ${samples}`);
  }
  return parts.join(" · ");
}

/** The number of a column of the accuracy; NaN before it was measured. */
export function measured(
  accuracy: QuantizationAccuracy | null,
  column: "total" | "own" | "inherited" | "saturation",
  row: number,
): number {
  return accuracy?.measured ? (accuracy[column][row] ?? NaN) : NaN;
}

/** What lowering again did, in a line. */
export function told(outcome: QuantizationOutcome): string {
  const parts = [outcome.text];
  if (outcome.ran.length) {
    const size = outcome.bytes_after - outcome.bytes_before;
    parts.push(size ? `program ${bytes(outcome.bytes_before)} → ${bytes(outcome.bytes_after)}` : `program ${bytes(outcome.bytes_after)} as before`);
  }
  if (outcome.measured && outcome.ran.length) {
    parts.push(`outputs ${decibels(outcome.sqnr_before ?? Infinity)} → ${decibels(outcome.sqnr_after ?? Infinity)}`);
    parts.push(`${outcome.affected} of ${outcome.operators} operators measured again`);
  }
  if (outcome.ran.length) parts.push(seconds(outcome.seconds));
  return parts.join(" · ");
}
