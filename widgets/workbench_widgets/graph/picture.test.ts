import { describe, expect, it } from "vitest";
import { Arranger, type Anchor, type Engine } from "./arrange.ts";
import { Bundles } from "./edges.ts";
import { chainOfBlocks, randomDocument } from "./fake.ts";
import { Grid, meets } from "./grid.ts";
import { Labels, type Measure } from "./labels.ts";
import { GraphModel } from "./model.ts";
import { identities, remember } from "./motion.ts";
import { Picture } from "./picture.ts";
import type { GraphDocument } from "./scene.ts";
import { simpleEngine } from "./simple.ts";
import { OpenState } from "./state.ts";

const measure: Measure = (text, size) => text.length * size * 0.5;

function draw(
  document: GraphDocument,
  open: (state: OpenState, model: GraphModel) => void,
  engine: Engine = simpleEngine,
  anchor: Anchor | null = null,
) {
  const model = new GraphModel(document);
  const state = new OpenState();
  open(state, model);
  const labels = new Labels(model, measure);
  const arranger = new Arranger(engine);
  const placed = arranger.arrange(model, new Bundles(model), state, labels, measure, anchor);
  return { model, state, arranger, picture: new Picture(model, state, labels, placed) };
}

describe("the picture", () => {
  it("holds each box in its frame, and no two beside each other overlap", () => {
    const { picture } = draw(randomDocument(200, 30, 300), (state, model) => state.openAll(model));
    for (const box of picture.boxes) {
      if (!box.parent) continue;
      expect(box.x).toBeGreaterThanOrEqual(box.parent.x);
      expect(box.y).toBeGreaterThanOrEqual(box.parent.y);
      expect(box.x + box.width).toBeLessThanOrEqual(box.parent.x + box.parent.width + 1e-3);
      expect(box.y + box.height).toBeLessThanOrEqual(box.parent.y + box.parent.height + 1e-3);
    }
    const siblings = new Map<unknown, (typeof picture.boxes)[number][]>();
    for (const box of picture.boxes)
      siblings.set(box.parent, [...(siblings.get(box.parent) ?? []), box]);
    for (const group of siblings.values()) {
      group.forEach((a, at) => group.slice(at + 1).forEach((b) => expect(meets(a, b)).toBe(false)));
    }
  });

  it("finds the innermost box at a point", () => {
    const { picture } = draw(randomDocument(120, 20, 200), (state, model) => state.openAll(model));
    for (const box of picture.boxes.filter((candidate) => !candidate.open)) {
      expect(picture.boxAt(box.x + box.width / 2, box.y + box.height / 2)).toBe(box);
    }
    expect(picture.boxAt(-50, -50)).toBeNull();
  });

  it("culls to exactly the boxes that meet a rectangle", () => {
    const { picture } = draw(randomDocument(300, 40, 500), (state, model) => state.openAll(model));
    const rect = { x: 100, y: 200, width: 500, height: 300 };
    const wanted = picture.boxes.filter((box) => meets(box, rect));
    expect(new Set(picture.inSight(rect))).toEqual(new Set(wanted));
    expect(wanted.length).toBeLessThan(picture.boxes.length);
    expect(new Set(picture.boxesIn(rect))).toEqual(new Set(wanted.filter((box) => !box.open)));
    const depths = picture.inSight(rect).map((box) => box.depth);
    expect(depths).toEqual([...depths].sort((a, b) => a - b));
  });

  it("tells in which box a node is seen", () => {
    const { picture, state, model } = draw(chainOfBlocks(4), () => undefined);
    const closed = picture.boxOf(2);
    expect(closed.kind).toBe("module");
    expect(closed.members()).toContain(2);
    state.reveal(model, [2]);
    const opened = draw(chainOfBlocks(4), (own, graph) => own.reveal(graph, [2])).picture;
    expect(opened.boxOf(2).kind).toBe("node");
    expect(opened.boxOf(2).index).toBe(2);
    // A hidden weight is seen where it is used.
    expect(opened.boxOf(1)).toBe(opened.boxOf(2));
  });

  it("lays equal blocks out once", () => {
    const { arranger, picture } = draw(chainOfBlocks(40), (state, model) => state.openAll(model));
    expect(picture.boxes.filter((box) => box.kind === "node")).toHaveLength(82);
    // The root, the list's stack, and one block of each width that titles make.
    expect(arranger.calls).toBeLessThan(8);
  });

  it("hands places from before to the engine", () => {
    const first = draw(chainOfBlocks(3), (state, model) => state.openAll(model));
    const places = remember(first.picture);
    const seen: number[] = [];
    const engine: Engine = {
      layout(input) {
        seen.push(...input.anchorX.filter((x) => !Number.isNaN(x)));
        return simpleEngine.layout(input);
      },
    };
    const after = new GraphModel(chainOfBlocks(3, "planned"));
    const identity = identities(after);
    const anchor: Anchor = (container, part) =>
      places.within.get(
        `${container === after.root ? "" : identity(container)}>${identity(part)}`,
      ) ?? null;
    draw(chainOfBlocks(3, "planned"), (state, model) => state.openAll(model), engine, anchor);
    expect(seen.length).toBeGreaterThan(0);
    for (const x of seen) expect(x).toBeGreaterThan(0);
  });
});

describe("identities", () => {
  it("follow handles through stages, and tell apart nodes of one handle", () => {
    const before = new GraphModel(chainOfBlocks(2));
    const key = identities(before);
    expect(key(2)).toBe("h10");
    const twice = {
      ...chainOfBlocks(2),
      handles: Int32Array.from(chainOfBlocks(2).handles, (handle) => (handle === 11 ? 10 : handle)),
    };
    const keys = identities(new GraphModel(twice));
    expect(keys(3)).toBe("h10.1");
  });
});

describe("the grid", () => {
  it("finds boxes that span many cells once", () => {
    const boxes = [
      { x: 0, y: 0, width: 5000, height: 5000 },
      { x: 4000, y: 4000, width: 10, height: 10 },
    ];
    const grid = new Grid(boxes, { x: 0, y: 0, width: 5000, height: 5000 }, 100);
    expect(grid.query({ x: 3900, y: 3900, width: 300, height: 300 })).toHaveLength(2);
    expect(grid.query({ x: 10, y: 10, width: 1, height: 1 })).toEqual([boxes[0]]);
  });
});
