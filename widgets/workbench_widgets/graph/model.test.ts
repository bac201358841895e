import { describe, expect, it } from "vitest";
import { chainOfBlocks, fakeDocument, randomDocument } from "./fake.ts";
import { GraphModel } from "./model.ts";

const names = (model: GraphModel, items: readonly number[]) =>
  items.map((item) => (item < model.nodes ? model.document.name.get(item) : model.title(item)));

describe("the tree that is drawn", () => {
  it("folds consecutive equal blocks into one stack", () => {
    const model = new GraphModel(chainOfBlocks(5));
    const blocks = model.parts[model.root]!.find((item) => model.isContainer(item))!;
    expect(names(model, model.parts[model.root]!)).toEqual(["x", "blocks", "output"]);
    const [fold, ...rest] = model.parts[blocks]!;
    expect(rest).toEqual([]);
    expect(model.kind(fold!)).toBe("fold");
    expect(model.folded(fold!)).toHaveLength(5);
    expect(model.title(fold!)).toBe("Block 0 … Block 4");
  });

  it("does not fold what differs, nor what is parallel and few", () => {
    const nodes = ["a", "b", "c"].flatMap((name) => [
      { name: `${name}1`, module: name },
      { name: `${name}2`, module: name },
    ]);
    const edges = [
      ["x", "a1"],
      ["x", "b1"],
      ["x", "c1"],
      ["a1", "a2"],
      ["b1", "b2"],
      ["c1", "c2"],
    ] as const;
    const parallel = fakeDocument({
      nodes: [{ name: "x", kind: "placeholder" }, ...nodes],
      edges,
      modules: ["a", "b", "c"].map((path) => ({ path, hash: 3 })),
    });
    expect(
      names(
        new GraphModel(parallel),
        new GraphModel(parallel).parts[new GraphModel(parallel).root]!,
      ),
    ).toEqual(["x", "a", "b", "c"]);
  });

  it("draws a module of one node as that node, and merges a module of one module", () => {
    const model = new GraphModel(
      fakeDocument({
        nodes: [
          { name: "x", kind: "placeholder" },
          { name: "conv", module: "net.body.conv" },
          { name: "relu", module: "net.body.act" },
        ],
        edges: [
          ["x", "conv"],
          ["conv", "relu"],
        ],
        modules: [
          { path: "net" },
          { path: "net.body" },
          { path: "net.body.conv" },
          { path: "net.body.act" },
        ],
      }),
    );
    const root = model.parts[model.root]!;
    expect(names(model, root)).toEqual(["x", "net / body"]);
    expect(names(model, model.parts[root[1]!]!)).toEqual(["conv", "relu"]);
    // The containers that are not drawn lead to what is drawn in their place.
    expect(model.itemOfModule(1)).toBe(root[1]);
    expect(model.itemOfModule(3)).toBe(1);
  });

  it("lets hidden constants stand for their first user, and shows them when asked", () => {
    const document = chainOfBlocks(2);
    const hidden = new GraphModel(document);
    const weight = 1;
    expect(document.name.get(weight)).toBe("weight0");
    expect(hidden.home[weight]).toBe(2);
    expect(hidden.isDrawn(weight)).toBe(false);
    expect([...hidden.members(2)]).toEqual([1, 2]);
    const shown = new GraphModel(document, { constants: true });
    expect(shown.isDrawn(weight)).toBe(true);
    expect([...shown.members(2)]).toEqual([2]);
  });

  it("keeps a node for every row that is drawn, once", () => {
    for (const seed of [1, 2, 3]) {
      const document = randomDocument(200, 30, 400, seed);
      const model = new GraphModel(document);
      const seen: number[] = [];
      const visit = (item: number) => {
        if (item < model.nodes) seen.push(item);
        for (const part of model.parts[item]!) {
          expect(model.parent[part]).toBe(item);
          expect(model.depth[part]).toBe(model.depth[item]! + 1);
          visit(part);
        }
      };
      visit(model.root);
      expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, node) => node));
      expect([...model.members(model.root)]).toEqual(seen);
    }
  });

  it("orders parts so that producers come first, where that is possible", () => {
    // The second module's first row stands before the first module's: its other rows need the first
    // module.
    const model = new GraphModel(
      fakeDocument({
        nodes: [
          { name: "b0", module: "b" },
          { name: "a0", module: "a" },
          { name: "a1", module: "a" },
          { name: "b1", module: "b" },
        ],
        edges: [
          ["a0", "a1"],
          ["a1", "b1"],
          ["b0", "b1"],
        ],
        modules: [{ path: "b" }, { path: "a" }],
      }),
    );
    expect(names(model, model.parts[model.root]!)).toEqual(["a", "b"]);
  });

  it("cuts a cycle of modules at its first row", () => {
    const model = new GraphModel(
      fakeDocument({
        nodes: [
          { name: "a0", module: "a" },
          { name: "b0", module: "b" },
          { name: "b1", module: "b" },
          { name: "a1", module: "a" },
        ],
        edges: [
          ["a0", "b0"],
          ["b0", "b1"],
          ["b1", "a1"],
        ],
        modules: [{ path: "a" }, { path: "b" }],
      }),
    );
    expect(names(model, model.parts[model.root]!)).toEqual(["a", "b"]);
  });
});
