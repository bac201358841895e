import { describe, expect, it } from "vitest";
import { LayoutError, loadLayout, type LayoutInput } from "./engine.ts";
import golden from "./golden.json";

const small: LayoutInput = { width: [80, 80], height: [30, 30], src: [0], dst: [1] };

// JSON has no NaN.
const anchors = (values: (number | null)[]): number[] => values.map((value) => value ?? NaN);

function closest(actual: ArrayLike<number>, expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i += 1) {
    expect(Math.abs(actual[i]! - expected[i]!), `value ${i}`).toBeLessThan(1e-3);
  }
}

describe("the layout engine", () => {
  it.each(Object.keys(golden) as (keyof typeof golden)[])("lays out %s as the native one", async (name) => {
    const engine = await loadLayout();
    const { input, ...expected } = golden[name];
    const result = engine.layout({
      ...input,
      anchor_x: anchors(input.anchor_x),
      anchor_y: anchors(input.anchor_y),
    });
    closest(result.x, expected.x);
    closest(result.y, expected.y);
    closest([result.width, result.height], expected.size);
    closest(result.edge_start, expected.edge_start);
    closest(result.points, expected.points);
  });

  it("takes options", async () => {
    const engine = await loadLayout();
    const result = engine.layout({ ...small, options: { gap_y: 100, margin: 5 } });
    expect(Array.from(result.x)).toEqual([5, 5]);
    expect(Array.from(result.y)).toEqual([5, 135]);
  });

  it("gives an empty picture for an empty graph", async () => {
    const engine = await loadLayout();
    const result = engine.layout({ width: [], height: [], src: [], dst: [] });
    expect(result.x.length).toBe(0);
    expect(Array.from(result.edge_start)).toEqual([0]);
  });

  it.each([
    [{ ...small, dst: [7] }, /target/, 0],
    [{ ...small, width: [80, NaN] }, /width/, 1],
    [{ ...small, height: [80, -1] }, /height/, 1],
    [{ ...small, options: { gap_x: Infinity } }, /gap_x/, -1],
    [{ ...small, dst: [1, 1] }, /dst has 2 values/, -1],
    [{ ...small, anchor_x: [0, 0] }, /come together/, -1],
  ] as [LayoutInput, RegExp, number][])("rejects %o", async (input, words, index) => {
    const engine = await loadLayout();
    expect(() => engine.layout(input)).toThrow(words);
    try {
      engine.layout(input);
    } catch (error) {
      expect(error).toBeInstanceOf(LayoutError);
      expect((error as LayoutError).index).toBe(index);
    }
  });

  it("holds on to no memory", async () => {
    const engine = await loadLayout();
    const n = 200;
    const chain: LayoutInput = {
      width: new Float32Array(n).fill(80),
      height: new Float32Array(n).fill(30),
      src: Int32Array.from({ length: n - 1 }, (_, i) => i),
      dst: Int32Array.from({ length: n - 1 }, (_, i) => i + 1),
    };
    engine.layout(chain);
    const before = engine.memory;
    for (let i = 0; i < 5000; i += 1) engine.layout(chain);
    for (let i = 0; i < 5000; i += 1) expect(() => engine.layout({ ...small, dst: [9] })).toThrow(LayoutError);
    expect(engine.memory).toBe(before);
  }, 60_000);

  it("copies its results, which stay when memory grows", async () => {
    const engine = await loadLayout();
    const first = engine.layout(small);
    const x = Array.from(first.x);
    const n = 20000;
    engine.layout({
      width: new Float32Array(n).fill(80),
      height: new Float32Array(n).fill(30),
      src: new Int32Array(n - 1),
      dst: Int32Array.from({ length: n - 1 }, (_, i) => i + 1),
    });
    expect(Array.from(first.x)).toEqual(x);
  });
});
