import { describe, expect, it } from "vitest";
import { Bundles, OUTSIDE, lift } from "./edges.ts";
import { chainOfBlocks, randomDocument } from "./fake.ts";
import { GraphModel } from "./model.ts";

describe("bundles", () => {
  it("sum up to the original edges, whatever the nesting", () => {
    for (const seed of [1, 2, 3, 4]) {
      const document = randomDocument(150, 25, 500, seed);
      const model = new GraphModel(document);
      const bundles = new Bundles(model);
      const inner: number[] = [];
      for (let item = model.nodes; item < model.items; item++) {
        for (const bundle of bundles.of(item)) {
          expect(bundle.count).toBe(bundle.edges.length);
          expect(bundle.bytes).toBe(4 * bundle.count);
          if (bundle.from !== OUTSIDE && bundle.to !== OUTSIDE) inner.push(...bundle.edges);
        }
      }
      // Each edge runs in exactly one container.
      expect(inner.sort((a, b) => a - b)).toEqual([...document.src.keys()]);
    }
  });

  it("cross every border between their ends, once on each side", () => {
    const document = randomDocument(80, 20, 200, 9);
    const model = new GraphModel(document);
    const bundles = new Bundles(model);
    const { at } = lift(model);
    model.edges.forEach((edge, index) => {
      for (const [node, inward] of [
        [document.src[edge]!, false],
        [document.dst[edge]!, true],
      ] as const) {
        for (const container of [...model.ancestors(node), model.root]) {
          const crossing = bundles.of(container).filter((bundle) => bundle.edges.includes(edge));
          const below =
            container !== at[index] &&
            model.ancestors(node).includes(container) &&
            model.depth[container]! > model.depth[at[index]!]!;
          if (below) {
            expect(crossing).toHaveLength(1);
            expect(inward ? crossing[0]!.from : crossing[0]!.to).toBe(OUTSIDE);
          }
        }
      }
    });
  });

  it("leave out what comes from hidden constants", () => {
    const document = chainOfBlocks(3);
    const count = (constants: boolean) => {
      const model = new GraphModel(document, { constants });
      const bundles = new Bundles(model);
      let sum = 0;
      for (let item = model.nodes; item < model.items; item++) {
        for (const bundle of bundles.of(item))
          if (bundle.from !== OUTSIDE && bundle.to !== OUTSIDE) sum += bundle.count;
      }
      return sum;
    };
    expect(count(true)).toBe(document.src.length);
    expect(count(false)).toBe(document.src.length - 3);
  });
});
