import { describe, expect, it } from "vitest";
import { limitOf, ProfileModel, quantile } from "./model.ts";
import { batchOf, sample } from "./sample.ts";

const RUNNING = {
  state: "running",
  executions: 0,
  history: new Float32Array(0),
  history_execution: new Int32Array(0),
} as const;

describe("quantile", () => {
  it("interpolates linearly, as numpy does", () => {
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
    expect(quantile([1, 2, 3, 4, 5], 0.1)).toBeCloseTo(1.4);
    expect(quantile([7], 0.9)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe("a profile that is complete", () => {
  const model = new ProfileModel(
    sample([
      { name: "a", median: 6 },
      { name: "b", median: 2 },
      { name: "c", median: 1, parent: 1 },
      { name: "d" },
    ]),
  );

  it("shares all time among instructions, not among what runs inside them", () => {
    expect(model.share(0) + model.share(1)).toBeCloseTo(1);
    expect(model.share(0)).toBe(0.75);
    expect(model.share(2)).toBe(0.125);
    expect(model.instructions()).toEqual([0, 1, 3]);
    expect(model.inside[1]).toEqual([2]);
  });

  it("counts a row less that does not run each time", () => {
    const half = new ProfileModel(
      sample([
        { name: "a", median: 4 },
        { name: "b", median: 8, count: 5 },
      ]),
    );
    expect(half.share(1)).toBe(0.5);
  });

  it("takes nothing from another run", () => {
    expect(model.apply(batchOf([0, 1]))).toBe(false);
    expect(model.times(0).median).toBe(6);
  });
});

describe("a profile that fills", () => {
  const fresh = () =>
    new ProfileModel(sample([{ name: "a" }, { name: "b" }, { name: "c" }], RUNNING));

  it("has the sums of the batches, in the order of its own rows", () => {
    const model = fresh();
    expect(model.apply(batchOf([2, 0]))).toBe(true);
    expect(model.mean[2]).toBe(3);
    expect(model.mean[0]).toBe(1);
    expect(model.count[1]).toBe(10); // not in the batch: as the document says
    expect([model.min[2], model.max[2]]).toEqual([2.5, 3.5]);
    expect(model.executions).toBe(2);
  });

  it("takes percentiles of the sampled executions", () => {
    const model = fresh();
    model.apply(batchOf([0, 1, 2]));
    expect(model.times(1).median).toBe(2);
    expect(model.times(1).p10).toBeCloseTo(1.6);
    expect(model.times(1).p90).toBeCloseTo(2.4);
    model.apply(batchOf([0, 1, 2], { sampled: 1, samples: Float32Array.from([9, NaN, 9]) }));
    expect(model.times(0).median).toBe(1.5);
    expect(model.times(1).median).toBe(2); // did not run in that one
  });

  it("forgets old samples", () => {
    const model = fresh();
    model.apply(batchOf([0], { samples: Float32Array.from([1000, 1000]) }));
    for (let i = 0; i < 60; i++) model.apply(batchOf([0], { samples: Float32Array.from([1, 3]) }));
    expect(model.times(0).p90).toBe(3);
  });

  it("does not show executions twice that the document has already", () => {
    const model = new ProfileModel(sample([{ name: "a" }], { state: "running" })); // 0 to 3
    model.apply(batchOf([0], { first: 2, recent: Float32Array.from([7, 7, 8, 9]) }));
    expect(model.history).toEqual([10, 9, 11, 20, 8, 9]);
    expect(model.historyExecution).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("ignores batches of a run before, and rows that it does not have", () => {
    const model = fresh();
    expect(model.apply(batchOf([0], { run: 7 }))).toBe(false);
    expect(model.apply(batchOf([-1, 99]))).toBe(true);
    expect(model.times(0).median).toBeNaN();
  });

  it("keeps the history short without losing the slowest", () => {
    const model = fresh();
    for (let i = 0; i < 60; i++) {
      const recent = new Float32Array(100).fill(1);
      if (i === 20) recent[37] = 50;
      model.apply(batchOf([0], { recent, first: 100 * i }));
    }
    expect(model.history.length).toBeLessThanOrEqual(4096);
    const at = model.history.indexOf(50);
    expect(model.historyExecution[at]).toBe(2037);
    expect(model.historyExecution).toEqual([...model.historyExecution].sort((a, b) => a - b));
  });
});

describe("the roofline", () => {
  const peaks = { gflops: 100, gbytes: 20, cache_bytes: 1 };

  it("is bound by memory left of the ridge", () => {
    const limit = limitOf(1e6, 1e6, 0.1, peaks); // 1 FLOP/byte, 10 GFLOP/s
    expect(limit).toMatchObject({ intensity: 1, attainable: 20, bound: "memory" });
    expect(limit.reached).toBeCloseTo(10);
    expect(limit.part).toBeCloseTo(0.5);
  });

  it("is bound by arithmetic at and beyond the ridge", () => {
    expect(limitOf(5e6, 1e6, 0.1, peaks).bound).toBe("compute");
    expect(limitOf(50e6, 1e6, 1, peaks)).toMatchObject({ attainable: 100, bound: "compute" });
    expect(limitOf(50e6, 1e6, 1, peaks).part).toBeCloseTo(0.5);
  });

  it("tells the part of the bandwidth for what computes nothing", () => {
    expect(limitOf(0, 1e6, 0.1, peaks).part).toBeCloseTo(0.5);
  });

  it("claims nothing where work or limits are not known", () => {
    expect(limitOf(NaN, NaN, 1, peaks).bound).toBe("");
    expect(limitOf(1e6, 1e6, 1, null).attainable).toBeNaN();
  });
});
