import { describe, expect, it } from "vitest";
import type { PartitionMeasure } from "../contract.ts";
import { COST, answerTo } from "./fake.ts";
import { costChange, difference, verdict, withoutPath } from "./words.ts";

const measure = (changes: Partial<PartitionMeasure>): PartitionMeasure => ({
  name: "Time", unit: "ms", before: 10, after: 10, better: "less", note: "", ...changes,
});
const REQUEST = { method: "forward", action: "erase" as const, rows: [1, 2], handles: [], module: null, tag: null, tags: [], backend: null };

describe("difference", () => {
  it("tells better from worse by the quantity", () => {
    expect(difference(measure({ after: 5 }))).toEqual({ text: "−5.00 ms (−50 %)", kind: "better" });
    expect(difference(measure({ name: "SQNR", unit: "dB", better: "more", before: 90, after: 80 }))).toEqual({ text: "−10.0 dB", kind: "worse" });
    expect(difference(measure({ unit: "count", better: "neither", before: 37, after: 36 }))).toEqual({ text: "−1", kind: "same" });
  });

  it("takes what is within the scatter of times for the same", () => {
    expect(difference(measure({ after: 10.2 })).kind).toBe("same");
    expect(difference(measure({ unit: "bytes", before: 10_000, after: 10_200 })).kind).toBe("worse");
  });

  it("says nothing where one side is missing, and no percents of nothing", () => {
    expect(difference(measure({ after: null }))).toEqual({ text: "–", kind: "same" });
    expect(difference(measure({ unit: "bytes", before: 0, after: 1024 }))).toEqual({ text: "+1.00 KiB", kind: "worse" });
    expect(difference(measure({ unit: "bytes", before: 1e9, after: 1e9 - 128 }))).toEqual({ text: "−128 B (under 0.1 %)", kind: "better" });
  });
});

describe("answers", () => {
  it("tell what crosses before and after, and what else changes", () => {
    expect(costChange(COST, COST)).toBe("crossing 4.00 KiB, as before");
    expect(costChange(COST, { partitions: 3, delegated: 2, crossing_bytes: 1024, constant_bytes: 512 })).toBe(
      "crossing 4.00 KiB → 1.00 KiB (−3.00 KiB), partitions 2 → 3, delegated 3 → 2, constants inside +512 B",
    );
  });

  it("are short beside a button", () => {
    expect(verdict(answerTo(REQUEST))).toBe("2 nodes, crossing −1.00 KiB");
    expect(verdict(answerTo(REQUEST, { changed: new Int32Array() }))).toBe("changes nothing");
    expect(verdict(answerTo(REQUEST, { legal: false, message: "it isn't convex (a -> b)" }))).toBe("it isn't convex");
    expect(withoutPath("size (2, 3) is too large")).toBe("size (2, 3) is too large");
  });
});
