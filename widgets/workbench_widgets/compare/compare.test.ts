import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { GraphHandle, GraphScene } from "../graph/scene.ts";
import type { Host } from "../common/host.ts";
import { MockHost } from "../common/mock_host.ts";
import { selectionOf } from "../common/selection.ts";
import { Compare } from "./compare.ts";
import { comparison, GRAPH } from "./fixtures.ts";
import { statusOf } from "./graphs.ts";
import {
  csv,
  deltaOf,
  kindOf,
  kinds,
  metrics,
  nodesOf,
  operatorsOf,
  python,
  ranked,
  valueOf,
} from "./model.ts";
import { decades } from "./scatter.ts";
import { sideHost, translated } from "./sides.ts";

const doc = comparison();

describe("rows", () => {
  it("are of the kinds that occur", () => {
    expect([0, 1, 2, 3].map((row) => kindOf(doc, row))).toEqual([
      "matched",
      "changed",
      "some",
      "only:1",
    ]);
    expect(kinds(doc).map(({ title, rows }) => [title, rows])).toEqual([
      ["Matched", 1],
      ["Changed", 1],
      ["On some sides", 1],
      ["Only in fused", 1],
    ]);
  });

  it("have values where the side has them, and differences where both have", () => {
    expect(valueOf(doc, 2, 1, "ms")).toBeNull();
    expect(valueOf(doc, 3, 0, "bytes")).toBeNull();
    expect(valueOf(doc, 1, 2, "ms")).toBe(12);
    expect(deltaOf(doc, 1, 1, "ms")).toBe(-1);
    expect(deltaOf(doc, 2, 1, "ms")).toBeNull();
    expect(deltaOf(comparison(2), 1, 0, "ms")).toBe(-6);
  });

  it("are ranked by how much they differ", () => {
    expect(ranked(doc, 2, "ms")).toEqual([1, 2, 0]);
    expect(ranked(doc, 1, "bytes")).toEqual([0, 1]);
  });

  it("are named by the reference, or by who has them", () => {
    expect(nodesOf(doc, 1)).toBe("conv, relu");
    expect(nodesOf(comparison(1), 1)).toBe("fused");
    expect(nodesOf(doc, 3)).toBe("tanh");
    expect(operatorsOf(doc, 0)).toBe("add");
    expect(operatorsOf(doc, 1)).toBe("conv, relu → fused");
    expect(operatorsOf(doc, 3)).toBe("– → tanh");
  });

  it("lowerings alone have no times", () => {
    expect(metrics(doc)).toEqual(["ms", "bytes"]);
    expect(metrics({ ...doc, sides: doc.sides.map((side) => ({ ...side, ms: null })) })).toEqual([
      "bytes",
    ]);
  });
});

describe("copies", () => {
  it("CSV has every metric, empty where nothing is known", () => {
    const lines = csv(doc, [1, 3]).trimEnd().split("\n");
    expect(lines.length).toBe(3);
    expect(lines[0]).toContain("fused: Δ ms");
    expect(lines[1]).toContain('changed,net.py:2,layer1,"conv, relu"');
    const named = Object.fromEntries(lines[0]!.split(",").map((title, at) => [title, at]));
    const last = lines[2]!.split(",");
    expect(last[named["fused: nodes"]!]).toBe("tanh");
    expect(last[named["fused: Δ ms"]!]).toBe("");
  });

  it("Python makes the same comparison, the reference first", () => {
    expect(python(comparison(1))).toBe(
      'ExecuTorch = lowering.run(*lowering.example_inputs(), profile=True, runtime="executorch")\n' +
        'wb.compare(fused, plain, ExecuTorch, names=["fused", "plain", "ExecuTorch"]).table\n',
    );
    const named = {
      ...doc,
      method: "encode",
      sides: doc.sides.map((side, at) => (at ? side : { ...side, name: "a b" })),
    };
    expect(python(named)).toContain(
      'wb.compare(side_0, fused, ExecuTorch, names=["a b", "fused", "ExecuTorch"], method="encode")',
    );
  });
});

it("the scatter's axes are powers of ten", () => {
  expect(decades([0.02, 3])).toEqual([-2, 1]);
  expect(decades([5, 5])).toEqual([0, 1]);
  expect(decades([0, -1])).toEqual([0, 1]);
});

describe("the graph of a side", () => {
  it("marks what became of each node, also inside of a delegate", () => {
    expect([...statusOf(doc, 1, GRAPH)]).toEqual([0, 0, 1, 1, 1]);
  });

  it("translates the selection both ways", () => {
    const store = selectionOf("", "forward");
    const own = translated(store, doc.cells[1]!);
    const heard = vi.fn();
    const end = own.subscribe(heard);
    store.set({ method: "forward", handles: [2, 4], node: "conv" });
    expect(own.get()).toEqual({ method: "forward", handles: [12], node: null });
    own.set({ method: "forward", handles: [11, 13], node: null });
    expect(store.get().handles).toEqual([1, 3]);
    expect(heard).toHaveBeenCalledTimes(2);
    // What the first side does not have is selected here only.
    own.set({ method: "forward", handles: [19], node: "tanh" });
    expect(own.get().handles).toEqual([19]);
    expect(store.get().handles).toEqual([1, 3]);
    store.set({ method: "forward", handles: [2], node: null });
    expect(own.get().handles).toEqual([12]);
    end();
    store.set({ method: "forward", handles: [], node: null });
    expect(heard).toHaveBeenCalledTimes(4);
  });

  it("an unchanged way to count needs no translation", () => {
    const store = selectionOf("", "forward");
    expect(translated(store, doc.cells[0]!)).toBe(store);
  });

  it("asks for its own graph, and for nothing of the others", async () => {
    const host = new MockHost({ "compare.graph:1/lowered/forward": GRAPH });
    const own = sideHost(host, 1, doc);
    expect(own.has("graph", "lowered/forward")).toBe(true);
    expect(await own.document("graph", "lowered/forward")).toBe(GRAPH);
    expect(own.live).toBe(false);
    await expect(own.document("overlays", "lowered/forward")).rejects.toThrow("graph only");
    await expect(
      own.call("graph.details", { stage: "lowered", method: "forward", row: 1 }),
    ).rejects.toThrow();
    expect(host.calls).toEqual([]);
    expect(own.about.stages.map(({ name }) => name)).toEqual([]);
    expect(own.about).toMatchObject({ stage: "lowered", title: "fused" });
  });

  it("hears when its graph is another", () => {
    const host = new MockHost();
    const heard = vi.fn();
    const end = sideHost(host, 1, doc).onChange(heard);
    host.changed("compare.graph");
    expect(heard.mock.lastCall![0].has("graph")).toBe(true);
    host.changed("profile");
    expect(heard.mock.lastCall![0].has("graph")).toBe(false);
    end();
    expect(host.listening).toBe(0);
  });
});

// ---- the view ----------------------------------------------------------------------------------------------

describe("the view", () => {
  let host: MockHost;
  let root: HTMLElement;
  let view: Compare;
  let graphs: { side: string; destroyed: boolean }[];
  const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

  const graph = async (own: Host): Promise<GraphHandle> => {
    const record = { side: own.about.title, destroyed: false };
    graphs.push(record);
    return {
      destroy: () => (record.destroyed = true),
      setStage: () => Promise.resolve(),
      addLayer: () => () => {},
      setTool: () => {},
      scene: null,
      redraw: () => {},
      fit: () => {},
      reveal: () => {},
      onReady: (_: (scene: GraphScene) => void) => () => {},
    } as unknown as GraphHandle;
  };
  const lines = () => [...root.querySelectorAll<HTMLElement>("tr[data-row]")];
  const nodes = () => lines().map((line) => line.children[1]!.textContent);
  const button = (text: string) =>
    [...root.querySelectorAll("button")].find((made) => made.textContent?.startsWith(text))!;

  beforeEach(() => {
    graphs = [];
    host = new MockHost({
      "compare:0": comparison(0),
      "compare:1": comparison(1),
      "compare:2": comparison(2),
    });
    root = document.createElement("div");
    document.body.append(root);
    view = new Compare(host, root, comparison(), graph);
  });
  afterEach(() => {
    view.destroy();
    root.remove();
  });

  it("has a line a side, with what it differs by", () => {
    const totals = [...root.querySelectorAll(".wb-totals tbody tr")].map(
      (line) => line.textContent,
    );
    expect(totals.length).toBe(3);
    expect(totals[0]).toContain("plainreference");
    expect(totals[1]).toContain("−2.00 ms (−20.0 %)");
    expect(totals[2]).toContain("+10.0 ms (+100.0 %)");
  });

  it("shows and hides the kinds of rows", () => {
    expect(nodes()).toEqual(["add", "conv, relu", "mul", "tanh"]);
    button("Matched").click();
    expect(nodes()).toEqual(["conv, relu", "mul", "tanh"]);
    button("Changed").click();
    button("Only in fused").click();
    expect(nodes()).toEqual(["mul"]);
    button("Matched").click();
    expect(nodes()).toEqual(["add", "mul"]);
  });

  it("sorts by a difference", () => {
    const heading = [...root.querySelectorAll("th")].find(
      (th) => th.textContent === "ExecuTorch: Δ time",
    )!;
    heading.querySelector("button")!.click();
    expect(nodes().slice(0, 3)).toEqual(["conv, relu", "mul", "add"]);
  });

  it("takes another reference", async () => {
    root.querySelectorAll<HTMLInputElement>("input[type=radio]")[1]!.click();
    await settled();
    expect(root.querySelector(".wb-totals tbody tr:nth-child(2)")!.textContent).toContain(
      "reference",
    );
    expect([...root.querySelectorAll("th")].some((th) => th.textContent === "plain: Δ time")).toBe(
      true,
    );
  });

  it("a reference that can't be had is an error in the view, and the old one stays", async () => {
    host.give("compare:2", undefined);
    root.querySelectorAll<HTMLInputElement>("input[type=radio]")[2]!.click();
    await settled();
    expect(root.querySelector("[role=alert]")!.textContent).toContain("no such thing");
    expect(root.querySelectorAll<HTMLInputElement>("input[type=radio]")[0]!.checked).toBe(true);
  });

  it("selects for all views, and follows what they select", async () => {
    lines()[1]!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    expect(host.selection.get()).toEqual({ method: "forward", handles: [2, 3], node: null });
    lines()[0]!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    expect(host.selection.get()).toEqual({ method: "forward", handles: [1], node: "add" });
    lines()[1]!.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: true }));
    expect(host.selection.get().handles).toEqual([1, 2, 3]);
    host.selection.set({ method: "forward", handles: [4], node: null });
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const selected = lines().filter((line) => line.getAttribute("aria-selected") === "true");
    expect(selected.map((line) => line.children[1]!.textContent)).toEqual(["mul"]);
  });

  it("a row that only another capture has is selected here, and nowhere else", async () => {
    host.selection.set({ method: "forward", handles: [1], node: null });
    lines()[3]!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const selected = () => lines().filter((line) => line.getAttribute("aria-selected") === "true");
    expect(selected().map((line) => line.children[1]!.textContent)).toEqual(["tanh"]);
    expect(host.selection.get().handles).toEqual([1]);
  });

  it("shows two graphs, of the reference and of the side that is chosen", async () => {
    expect(graphs).toEqual([]);
    button("Graphs").click();
    await settled();
    expect(graphs.map(({ side }) => side)).toEqual(["plain", "fused"]);
    const chosen = root.querySelector<HTMLSelectElement>(
      "select[aria-label='The side in the picture']",
    )!;
    chosen.value = "2";
    chosen.dispatchEvent(new Event("change"));
    await settled();
    expect(graphs.filter(({ destroyed }) => !destroyed).map(({ side }) => side)).toEqual([
      "plain",
      "ExecuTorch",
    ]);
    view.destroy();
    expect(graphs.every(({ destroyed }) => destroyed)).toBe(true);
    expect(host.listening).toBe(0);
  });

  it("asks for a run in ExecuTorch's runtime, and shows why there is none", async () => {
    button("+ ExecuTorch").click();
    await settled();
    expect(host.calls).toEqual([{ name: "compare.peer", args: { repeat: 10 } }]);
    expect(root.querySelector("[role=alert]")).not.toBeNull();
    expect(button("+ ExecuTorch").disabled).toBe(false);
  });

  it("loads the comparison again when a side was added", async () => {
    host.give("compare:0", {
      ...comparison(),
      can_add_peer: false,
      sides: comparison().sides.map((side) => ({ ...side, name: `${side.name}!` })),
    });
    host.changed("compare");
    await settled();
    expect(root.querySelector(".wb-totals")!.textContent).toContain("fused!");
    expect(button("+ ExecuTorch").hidden).toBe(true);
  });

  it("a report offers no run", () => {
    view.destroy();
    host.live = false;
    view = new Compare(host, root, comparison(), graph);
    expect(button("+ ExecuTorch").hidden).toBe(true);
  });
});
