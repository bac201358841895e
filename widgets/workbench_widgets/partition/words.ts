// Answers in words.
import type { PartitionAnswer, PartitionCost, PartitionMeasure } from "../contract.ts";
import { bytes, count, delta, ms, number } from "../common/format.ts";

const ROUND = 0.5;

/** `crossing 21.3 MiB → 19.6 MiB (−1.75 MiB)`. */
export function costChange(before: PartitionCost, after: PartitionCost): string {
  const change = after.crossing_bytes - before.crossing_bytes;
  const crossing =
    Math.abs(change) < ROUND
      ? `crossing ${bytes(after.crossing_bytes)}, as before`
      : `crossing ${bytes(before.crossing_bytes)} → ${bytes(after.crossing_bytes)} (${delta(change, bytes)})`;
  const parts = [crossing];
  if (after.partitions !== before.partitions) parts.push(`partitions ${before.partitions} → ${after.partitions}`);
  if (after.delegated !== before.delegated) parts.push(`delegated ${before.delegated} → ${after.delegated}`);
  const constants = after.constant_bytes - before.constant_bytes;
  if (Math.abs(constants) >= ROUND) parts.push(`constants inside ${delta(constants, bytes)}`);
  return parts.join(", ");
}

/** A message without the path at its end, which is shown on its own. */
export function withoutPath(message: string): string {
  return message.replace(/ \([^()]* -> [^()]*\)$/, "");
}

/** What a button says behind its name. */
export function verdict(answer: PartitionAnswer): string {
  if (!answer.legal) return withoutPath(answer.message);
  if (!answer.changed.length) return "changes nothing";
  const change = answer.cost_after.crossing_bytes - answer.cost_before.crossing_bytes;
  const nodes = `${count(answer.changed.length)} node${answer.changed.length === 1 ? "" : "s"}`;
  return `${nodes}, crossing ${Math.abs(change) < ROUND ? "as before" : delta(change, bytes)}`;
}

export function measured(measure: PartitionMeasure, value: number | null): string {
  if (value === null) return measure.unit === "dB" ? "exact" : "–";
  if (measure.unit === "ms") return ms(value);
  if (measure.unit === "bytes") return bytes(value);
  if (measure.unit === "dB") return `${value.toFixed(1)} dB`;
  return measure.unit === "error" ? number(value) : count(value);
}

/** The difference, with a word for good or bad that needs no colour. */
export function difference(measure: PartitionMeasure): { text: string; kind: "better" | "worse" | "same" } {
  const { before, after } = measure;
  if (before === null || after === null) return { text: "–", kind: "same" };
  const change = after - before;
  if (change === 0) return { text: "same", kind: "same" };
  const sign = change > 0 ? "+" : "−";
  const relative = before !== 0 && measure.unit !== "dB" && measure.unit !== "count";
  const percent = Math.abs((100 * change) / before);
  const share = !relative ? "" : percent < 0.05 ? " (under 0.1 %)" : ` (${sign}${percent < 10 ? percent.toPrecision(2) : percent.toFixed(0)} %)`;
  const text = `${sign}${measured(measure, Math.abs(change))}${share}`;
  if (measure.better === "neither") return { text, kind: "same" };
  // Times scatter: a difference below 3 % is none.
  if (measure.unit === "ms" && Math.abs(change) < 0.03 * before) return { text, kind: "same" };
  return { text, kind: change < 0 === (measure.better === "less") ? "better" : "worse" };
}
