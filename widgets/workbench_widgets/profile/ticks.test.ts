import { describe, expect, it } from "vitest";
import { logTicks, step, timeTicks } from "./ticks.ts";

describe("steps", () => {
  it("are 1, 2 or 5 times a power of ten", () => {
    expect(step(10, 10)).toBe(1);
    expect(step(10, 9)).toBe(2);
    expect(step(10, 4)).toBe(5);
    expect(step(1e-3, 3)).toBeCloseTo(5e-4);
    expect(step(0, 3)).toBe(1);
  });
});

describe("time", () => {
  const texts = (low: number, high: number, most: number) =>
    timeTicks(low, high, most).map((tick) => tick.text);

  it("is written in the unit that fits", () => {
    expect(texts(0, 2000, 4)).toEqual(["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"].slice(0, 5));
    expect(texts(0, 20, 4)).toEqual(["0 ms", "5 ms", "10 ms", "15 ms", "20 ms"]);
    expect(texts(0, 0.02, 4)).toEqual(["0 µs", "5 µs", "10 µs", "15 µs", "20 µs"]);
    expect(texts(0, 2e-5, 2)).toEqual(["0 ns", "10 ns", "20 ns"]);
  });

  it("has digits enough to tell marks apart when zoomed in", () => {
    const found = texts(12.001, 12.004, 4);
    expect(found).toEqual(["12.001 ms", "12.002 ms", "12.003 ms", "12.004 ms"]);
    expect(new Set(found).size).toBe(found.length);
  });

  it("stays within its range and number", () => {
    for (const most of [1, 3, 12]) {
      const ticks = timeTicks(3.3, 17.9, most);
      expect(ticks.length).toBeLessThanOrEqual(most + 1);
      expect(ticks.every((tick) => tick.value >= 3.3 && tick.value <= 17.9)).toBe(true);
    }
  });
});

describe("logarithmic scales", () => {
  it("label powers of ten, and mark what is between", () => {
    const ticks = logTicks(0.1, 100);
    expect(ticks.filter((tick) => tick.major).map((tick) => tick.text)).toEqual([
      "0.1",
      "1",
      "10",
      "100",
    ]);
    expect(ticks.length).toBe(3 * 9 + 1);
    expect(ticks.map((tick) => tick.value)).toEqual(
      [...ticks.map((tick) => tick.value)].sort((a, b) => a - b),
    );
  });

  it("label more where there are few powers", () => {
    const major = logTicks(1, 10).filter((tick) => tick.major);
    expect(major.map((tick) => tick.text)).toEqual(["1", "2", "5", "10"]);
  });

  it("refuse what has no logarithm", () => {
    expect(logTicks(0, 10)).toEqual([]);
    expect(logTicks(10, 10)).toEqual([]);
  });
});
