import { beforeEach, expect, it, vi } from "vitest";
import type { GraphScene } from "../graph/scene.ts";
import type { Theme } from "../common/theme.ts";
import { PartitionEditor } from "./editor.ts";
import { FakeHost, answerTo, partitionState, scene } from "./fake.ts";
import { PartitionLayers } from "./layer.ts";

const THEME = { dark: false, error: "red", good: "green", warn: "orange", accent: "blue", text: "black" } as Theme;
const AT = { scale: 1, x: 0, y: 0 };

/** A pen that writes down what is drawn. */
function pen() {
  const drawn: string[] = [];
  const state: Record<string, unknown> = { canvas: { width: 2000, height: 2000 } };
  const made = new Proxy(state, {
    get: (target, name: string) => {
      if (name in target) return target[name];
      if (name === "measureText") return (text: string) => ({ width: text.length * 5 });
      return (...args: unknown[]) => {
        drawn.push(name === "fillText" ? `text ${String(args[0])}` : name === "stroke" ? `stroke ${String(target["strokeStyle"])}` : name);
        return null;
      };
    },
    set: (target, name: string, value) => {
      target[name] = value;
      return true;
    },
  });
  return { pen: made as unknown as CanvasRenderingContext2D, drawn, texts: () => drawn.filter((line) => line.startsWith("text")) };
}

let editor: PartitionEditor;
let host: FakeHost;
let layers: PartitionLayers;
let graph: GraphScene;
const redraw = vi.fn();

beforeEach(async () => {
  host = new FakeHost();
  editor = new PartitionEditor(host, "forward", () => undefined);
  await editor.load();
  layers = new PartitionLayers(editor, redraw);
  graph = scene();
  redraw.mockReset();
});

function draw(layer: "under" | "over", transform = AT) {
  const made = pen();
  layers[layer].draw(made.pen, graph, transform, THEME);
  return made;
}

it("outlines each partition in its colour, and names it with backend and count", () => {
  expect(draw("under").drawn.filter((line) => line.startsWith("stroke"))).toEqual(["stroke #0072B2", "stroke #E69F00", "stroke #E69F00"]);
  expect(draw("over").texts()).toEqual(["text A · One · 1 node", "text B · One · 2 nodes", "text B"]);
});

it("draws nothing that is out of sight", () => {
  expect(draw("under", { scale: 1, x: -5000, y: 0 }).drawn).toEqual([]);
  expect(draw("over", { scale: 1, x: -5000, y: 0 }).drawn).toEqual([]);
});

it("marks nodes left behind by a triangle", () => {
  const badges = draw("over").drawn.filter((line) => line === "stroke orange");
  expect(badges).toHaveLength(2);
});

it("shows the way out of a tag and back in dashes, and what stands between", () => {
  const request = editor.request("merge", [], ["A", "B"]);
  editor.show({ request, answer: answerTo(request, { legal: false, nodes: [2], path: [1, 2, 3] }), kind: "look" });
  const { drawn } = draw("over");
  // One outline, and two lines with arrows.
  expect(drawn.filter((line) => line === "stroke red")).toHaveLength(3);
  expect(drawn).toContain("setLineDash");
  editor.show({ request, answer: answerTo(request), kind: "made" });
  expect(draw("over").drawn).not.toContain("stroke red");
});

it("outlines are made again when boxes move or the partition changes", async () => {
  draw("under");
  const first = layers.covers(graph);
  expect(layers.covers(graph)).toBe(first);
  graph.boxes[2]!.y += 300;
  expect(draw("under").drawn.filter((line) => line.startsWith("stroke"))).toHaveLength(3);
  host.state = partitionState({ tag: Int32Array.from([-1, 0, -1, -1, -1, -1, -1]) });
  host.change("partition.state");
  await Promise.resolve();
  await Promise.resolve();
  expect(layers.covers(graph)).not.toBe(first);
  expect(draw("under").drawn.filter((line) => line.startsWith("stroke"))).toHaveLength(1);
});

it("outlines of very many boxes wait until they rest", () => {
  vi.useFakeTimers();
  const many = Array.from({ length: 900 }, (_, at) => ({ ...graph.boxes[2]!, y: at * 50 }));
  graph = { ...graph, boxes: many };
  expect(draw("under").drawn).toContain("stroke #0072B2");
  many[0]!.x += 10;
  expect(draw("under").drawn).toEqual([]);
  vi.advanceTimersByTime(500);
  expect(redraw).toHaveBeenCalledTimes(1);
  expect(draw("under").drawn).toContain("stroke #0072B2");
  layers.destroy();
  vi.useRealTimers();
});
