import { describe, expect, it } from "vitest";
import { lanesOf, spanAt, stacked, type Span } from "./lanes.ts";
import { sample, timelineOf } from "./sample.ts";

const profile = sample([
  { name: "conv", module: "net.stem" },
  { name: "call", module: "net.body.0", backend: "Demo" },
  { name: "mm", parent: 1, backend: "Demo" },
  { name: "add", parent: 1, backend: "Demo" },
  { name: "guard", module: "", source: "" },
  { name: "norm", module: "net.body.0.norm" },
  { name: "head", module: "net.head" },
]);
const timeline = timelineOf(
  [
    [0, 0, 4],
    [1, 4, 6],
    [2, 4.5, 3, true],
    [3, 8, 1, true],
    [4, 10, 1],
    [5, 11, 2],
    [6, 13, 2],
  ],
  15,
);
const { lanes, spans } = lanesOf(timeline, profile);
const texts = (lane: number) =>
  spans[lane]!.map((span) => `${span.label} ${span.start}-${span.end}`);

describe("lanes", () => {
  it("are the execution, modules as they nest, instructions, the inside of delegates", () => {
    expect(lanes.map((lane) => lane.kind)).toEqual([
      "method",
      "module",
      "module",
      "module",
      "instruction",
      "inside",
    ]);
    expect(texts(0)).toEqual(["forward 0-15"]);
  });

  it("leave out what all modules have in common, but name it once", () => {
    expect(texts(1)).toEqual(["net.stem 0-4", "net.body 4-13", "net.head 13-15"]);
  });

  it("join neighbours of a module, over what nothing is known of", () => {
    expect(texts(2)).toEqual(["0 4-13"]);
    expect(spans[2]![0]!.rows).toEqual([1, 4, 5]);
    expect(texts(3)).toEqual(["norm 11-13"]);
  });

  it("have every event once", () => {
    expect(spans[4]!.flatMap((span) => span.rows)).toEqual([0, 1, 4, 5, 6]);
    expect(spans[5]!.flatMap((span) => span.rows)).toEqual([2, 3]);
  });

  it("nest in time: each span lies within one of the lane above", () => {
    for (const [inner, outer] of [
      [5, 4],
      [4, 0],
      [3, 2],
      [2, 1],
    ] as const) {
      for (const span of spans[inner]!) {
        expect(
          spans[outer]!.some((around) => around.start <= span.start && span.end <= around.end),
        ).toBe(true);
      }
    }
  });

  it("break a module that is left and entered again", () => {
    const again = lanesOf(
      timelineOf(
        [
          [0, 0, 1],
          [6, 1, 1],
          [0, 2, 1],
        ],
        3,
      ),
      profile,
    );
    expect(again.spans[1]!.map((span) => span.label)).toEqual(["net.stem", "net.head", "net.stem"]);
  });

  it("can do without modules, and without a known row", () => {
    const bare = lanesOf(timelineOf([[-1, 0, 1]], 1), sample([{ name: "a", module: "" }]));
    expect(bare.lanes.map((lane) => lane.kind)).toEqual(["method", "instruction"]);
    expect(bare.spans[1]![0]!.label).toBe("?");
  });
});

const span = (start: number, end: number): Span => ({
  lane: 0,
  start,
  end,
  label: "",
  rows: [],
  kind: "inside",
});

describe("stacking", () => {
  it("needs as many lanes as overlap at once", () => {
    expect(
      stacked([span(0, 5), span(1, 2), span(2, 4), span(5, 6)]).map((lane) => lane.length),
    ).toEqual([2, 2]);
    expect(stacked([])).toEqual([]);
  });
});

describe("finding a span", () => {
  const lane = [span(0, 1), span(2, 3), span(3.1, 3.2)];

  it("takes the one under the pointer, or the nearest within reach", () => {
    expect(spanAt(lane, 0.5, 0)).toBe(0);
    expect(spanAt(lane, 1.5, 0.1)).toBe(-1);
    expect(spanAt(lane, 1.9, 0.2)).toBe(1);
    expect(spanAt(lane, 3.08, 0.2)).toBe(2);
    expect(spanAt(lane, 9, 0.5)).toBe(-1);
    expect(spanAt([], 1, 1)).toBe(-1);
  });
});
