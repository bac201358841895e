import { describe, expect, it } from "vitest";
import { chainOfBlocks, fakeDocument, randomDocument } from "./fake.ts";
import { GraphModel } from "./model.ts";
import { FIRST, OpenState } from "./state.ts";

function visible(model: GraphModel, state: OpenState): number[] {
  const found: number[] = [];
  const visit = (item: number) => {
    for (const part of model.parts[item]!) {
      found.push(part);
      if (state.isOpen(model, part)) visit(part);
    }
  };
  visit(model.root);
  return found;
}

describe("what is open", () => {
  it("opens levels for the first view, up to the limit, and no stacks", () => {
    for (const seed of [1, 2, 3]) {
      const model = new GraphModel(randomDocument(600, 80, 900, seed));
      const state = new OpenState();
      state.openFirst(model);
      const own = model.parts[model.root]!.length;
      expect(visible(model, state).length).toBeLessThanOrEqual(Math.max(FIRST, own));
      expect(visible(model, state).some((item) => state.isOpen(model, item))).toBe(true);
    }
    const blocks = new GraphModel(chainOfBlocks(20));
    const state = new OpenState();
    state.openFirst(blocks);
    const folds = visible(blocks, state).filter((item) => blocks.kind(item) === "fold");
    expect(folds).toHaveLength(1);
    expect(state.isOpen(blocks, folds[0]!)).toBe(false);
  });

  it("reveals a node by opening what holds it, and nothing else", () => {
    const model = new GraphModel(chainOfBlocks(20));
    const state = new OpenState();
    expect(state.visible(model, 2)).not.toBe(2);
    expect(state.reveal(model, [2])).toBe(true);
    expect(state.visible(model, 2)).toBe(2);
    expect(state.reveal(model, [2])).toBe(false);
    // The other blocks stay closed.
    expect(state.visible(model, 5)).not.toBe(5);
  });

  it("stays open from stage to stage", () => {
    const state = new OpenState();
    state.reveal(new GraphModel(chainOfBlocks(20)), [2]);
    const later = new GraphModel(chainOfBlocks(20, "planned"));
    expect(state.visible(later, 2)).toBe(2);
  });

  it("opens and closes all", () => {
    const model = new GraphModel(randomDocument(100, 20, 100));
    const state = new OpenState();
    state.openAll(model);
    expect(visible(model, state).filter((item) => item < model.nodes)).toHaveLength(100);
    state.closeAll();
    expect(visible(model, state)).toEqual([...model.parts[model.root]!]);
  });
});

describe("the first view", () => {
  it("treats modules of one class alike", () => {
    const nodes = [3, 30, 30].flatMap((count, module) =>
      Array.from({ length: count }, (_, at) => ({
        name: `n${module}.${at}`,
        module: `m${module}`,
      })),
    );
    const edges = [0, 1, 2].flatMap((module) => [[`n${module}.0`, `n${module}.1`] as const]);
    const build = (types: readonly string[]) => {
      const modules = types.map((type, at) => ({ path: `m${at}`, type, hash: at }));
      const model = new GraphModel(fakeDocument({ nodes, edges, modules }));
      const state = new OpenState();
      state.openFirst(model);
      return model.parts[model.root]!.map((item) => state.isOpen(model, item));
    };
    expect(build(["Block", "Block", "Block"])).toEqual([false, false, false]);
    expect(build(["Stem", "Block", "Block"])).toEqual([true, false, false]);
  });
});
