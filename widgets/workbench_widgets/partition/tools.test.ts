import { beforeEach, describe, expect, it } from "vitest";
import type { GraphScene, GraphTool } from "../graph/scene.ts";
import { Covers } from "./boxes.ts";
import { PartitionEditor } from "./editor.ts";
import { FakeHost, answerTo, scene, settled } from "./fake.ts";
import { PartitionLayers } from "./layer.ts";
import { TOOLS, Tools } from "./tools.ts";

let host: FakeHost;
let editor: PartitionEditor;
let layers: PartitionLayers;
let tools: Tools;
let graph: GraphScene;
let said: string[];

beforeEach(async () => {
  host = new FakeHost();
  editor = new PartitionEditor(host, "forward", (error) => {
    throw error;
  });
  await editor.load();
  layers = new PartitionLayers(editor, () => undefined);
  said = [];
  tools = new Tools(editor, layers, { redraw: () => undefined, say: (text) => said.push(text) });
  graph = scene();
});

/** Presses, moves and lets go; rows are boxes of the one column. */
function stroke(tool: GraphTool, rows: readonly number[], event: Partial<PointerEvent> = {}): boolean {
  const points = rows.map((row) => ({ x: 50, y: row * 50 + 15 }));
  return drag(tool, points, event);
}

function drag(tool: GraphTool, points: readonly { x: number; y: number }[], event: Partial<PointerEvent> = {}): boolean {
  const pressed = event as PointerEvent;
  if (!tool.down(points[0]!, pressed, graph)) return false;
  for (const point of points) tool.move?.(point, pressed, graph);
  tool.up?.(points[points.length - 1]!, pressed, graph);
  return true;
}

describe("boxes", () => {
  it("tells tags and what was left behind, and draws around neighbours", () => {
    const covers = new Covers(graph, editor);
    const byRow = new Map(covers.all.map((cover) => [cover.box.index, cover]));
    expect(byRow.get(1)).toMatchObject({ tag: 0, left: 0, rows: [1] });
    expect(byRow.get(2)).toMatchObject({ tag: -1, left: 1 });
    expect(byRow.get(0)).toMatchObject({ tag: -1, left: 0, rows: [] });
    expect(covers.hulls().map((hull) => [hull.tag, hull.boxes])).toEqual([[0, 1], [1, 1], [1, 1]]);
  });

  it("a closed module with several tags belongs to none, and tells their shares", () => {
    const closed = { ...graph.boxes[0]!, open: false, members: () => Int32Array.from([1, 2, 3, 5]) };
    const covers = new Covers({ ...graph, boxes: [closed] }, editor);
    expect(covers.all[0]!.tag).toBe(-1);
    expect([...covers.all[0]!.counts]).toEqual([[0, 1], [-1, 1], [1, 2]]);
    expect(covers.hulls()).toEqual([]);
  });
});

describe("brushes", () => {
  it("painting looks at each step and makes one edit at the end", async () => {
    expect(stroke(tools.use("paint")!, [2, 3, 4])).toBe(true);
    await settled();
    const looks = host.named("partition.preview");
    expect(looks.length).toBeGreaterThan(0);
    expect(host.named("partition.apply")).toEqual([
      { method: "forward", action: "assign", rows: [2, 3, 4], handles: [], module: null, tag: "A", tags: [], backend: null },
    ]);
    expect(layers.stroke.size).toBe(0);
  });

  it("erases and cuts what the stroke touches", async () => {
    stroke(tools.use("erase")!, [1]);
    stroke(tools.use("split")!, [5]);
    await settled();
    expect(host.named("partition.apply").map(({ action, rows }) => [action, rows])).toEqual([["erase", [1]], ["split", [5]]]);
  });

  it("leaves the pointer to the graph beside the boxes, and on frames", () => {
    const tool = tools.use("paint")!;
    expect(drag(tool, [{ x: 500, y: 500 }])).toBe(false);
    expect(drag(tool, [{ x: -5, y: 145 }])).toBe(false);
    expect(host.named("partition.apply")).toEqual([]);
  });

  it("tells under the pointer what a click would do, before it is done", async () => {
    tools.use("erase");
    tools.hover(graph.boxOf(1));
    await settled();
    expect(editor.shown).toMatchObject({ kind: "look", request: { action: "erase", rows: [1] } });
    tools.hover(null);
    expect(editor.shown).toBeNull();
    tools.hover(graph.boxOf(2)); // it has no tag: nothing to erase, nothing to ask
    await settled();
    expect(host.named("partition.preview")).toHaveLength(1);
  });
});

describe("lasso", () => {
  const around = (top: number, bottom: number) => [
    { x: -20, y: top }, { x: 130, y: top }, { x: 130, y: bottom }, { x: -20, y: bottom },
  ];

  it("marks operators whose middle it encloses; Shift adds", () => {
    const tool = tools.use("lasso")!;
    drag(tool, around(40, 140));
    expect(editor.marked).toEqual([1, 2]);
    drag(tool, around(240, 290), { shiftKey: true });
    expect(editor.marked).toEqual([1, 2, 5]);
    expect(said.at(-1)).toBe("3 nodes selected");
  });

  it("marks nothing for a click", () => {
    editor.mark([1]);
    drag(tools.use("lasso")!, [{ x: 0, y: 0 }]);
    expect(editor.marked).toEqual([]);
  });
});

describe("module", () => {
  it("marks all operators of the module that a node stands in", () => {
    stroke(tools.use("module")!, [3]);
    expect(editor.marked).toEqual([3, 4]);
    expect(said.at(-1)).toContain("inner");
  });
});

describe("merge", () => {
  it("takes two clicks on different partitions, and looks before the second", async () => {
    const tool = tools.use("merge")!;
    expect(stroke(tool, [2])).toBe(false); // sin has no partition
    stroke(tool, [1]);
    expect(said.at(-1)).toContain("A: now click");
    tools.hover(graph.boxOf(3));
    await settled();
    expect(host.named("partition.preview").at(-1)).toMatchObject({ action: "merge", tags: ["A", "B"] });
    stroke(tool, [3]);
    await settled();
    expect(host.named("partition.apply")).toMatchObject([{ action: "merge", tags: ["A", "B"], rows: [] }]);
  });

  it("is forgotten when another tool is taken", async () => {
    stroke(tools.use("merge")!, [1]);
    tools.use("select");
    stroke(tools.use("merge")!, [3]);
    await settled();
    expect(host.named("partition.apply")).toEqual([]);
  });
});

it("an illegal stroke stays visible with its path", async () => {
  host.answers["partition.apply"] = (request) => answerTo(request, { legal: false, message: "not convex", path: [1, 2, 3], nodes: [2] });
  stroke(tools.use("paint")!, [3]);
  await settled();
  expect(editor.shown).toMatchObject({ kind: "refused", answer: { legal: false, path: [1, 2, 3] } });
});

it("each tool has a key of its own, apart from those of the actions", () => {
  const keys = [...TOOLS.map((tool) => tool.key), "a", "e", "s", "m", "f"];
  expect(new Set(keys).size).toBe(keys.length);
});
