import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { About, GraphDetails, OverlayDocument } from "../contract.ts";
import { CallError, type Host } from "../common/host.ts";
import { selectionOf } from "../common/selection.ts";
import { chainOfBlocks } from "./fake.ts";
import type { GraphHandle } from "./scene.ts";

vi.mock("./engine.ts", async () => ({
  loadEngine: async () => (await import("./simple.ts")).simpleEngine,
}));
const { mount } = await import("./view.ts");

const STAGES = ["exported", "edge", "planned"];
const ABOUT: About = {
  view: "graph",
  title: "a net",
  family: "",
  stage: "edge",
  methods: ["forward"],
  method: "forward",
  can_lower: true,
  can_run: true,
  stages: STAGES.map((name) => ({ name, title: name, detail: "", seconds: null })),
};
const DETAILS: GraphDetails = {
  row: 2,
  name: "mm0",
  target: "aten.mm.default",
  schema: "aten::mm(Tensor self, Tensor mat2) -> Tensor",
  module: "blocks.0",
  module_type: "Block",
  inputs: [
    {
      name: "x",
      row: 0,
      shape: "(2, 2)",
      dtype: "float32",
      strides: "(2, 1)",
      dim_order: "(0, 1)",
      bytes: 16,
    },
  ],
  outputs: [],
  arguments: [],
  metadata: { debug_handle: "3" },
  why_not: ["no kernel for it"],
  source: "model.py:0",
  code: [{ number: 0, text: "y = x @ w" }],
  origins: [
    {
      handle: 10,
      name: "linear",
      target: "aten.linear.default",
      module: "blocks.0",
      source: "model.py:0",
    },
  ],
  stages: [{ stage: "planned", count: 1, rows: [2], names: ["mm0"], ops: ["aten.mm.default"] }],
};

function overlays(stage: string): OverlayDocument {
  const values = new Float64Array(11).fill(NaN).map((_, row) => (row % 3 === 2 ? row : NaN));
  return {
    stage,
    method: "forward",
    columns: [{ name: "time", title: "Time", unit: "ms", aggregate: "sum", values }],
  };
}

class FakeHost {
  readonly live = true;
  readonly about = ABOUT;
  readonly selection = selectionOf("", "forward");
  readonly calls: unknown[] = [];
  readonly listeners = new Set<(kinds: ReadonlySet<string>) => void>();
  broken = "";
  blocks = 3;
  bare = false;

  async document(kind: string, key = ""): Promise<unknown> {
    const stage = key.split("/")[0]!;
    if (this.broken === stage)
      throw new CallError({
        kind: "WorkbenchError",
        message: "it broke",
        details: { hint: "mend it" },
      });
    if (kind !== "graph") return overlays(stage);
    const document = chainOfBlocks(this.blocks, stage);
    const none = { handle_start: document.handle_start.map(() => 0), handles: new Int32Array() };
    return this.bare ? { ...document, ...none } : document;
  }
  has(): boolean {
    return true;
  }
  onChange(listener: (kinds: ReadonlySet<string>) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  onEvent(): () => void {
    return () => undefined;
  }
  async call(name: string, args: unknown): Promise<unknown> {
    this.calls.push([name, args]);
    return DETAILS;
  }
}

let host: FakeHost;
let el: HTMLElement;
let view: GraphHandle;
const settle = () => new Promise((done) => setTimeout(done, 5));
const canvas = () => el.querySelector<HTMLElement>("canvas.wb-canvas")!;
const key = (name: string, more: KeyboardEventInit = {}) =>
  canvas().dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }),
  );
const spoken = () => el.querySelector("[aria-live]")!.textContent ?? "";
const byLabel = <E extends HTMLElement>(label: string) =>
  el.querySelector<E>(`[aria-label="${label}"]`)!;
const search = (text: string) => {
  const field = byLabel<HTMLInputElement>("Search nodes and modules");
  field.value = text;
  field.dispatchEvent(new Event("input"));
  return field;
};

beforeEach(async () => {
  host = new FakeHost();
  el = document.createElement("div");
  document.body.append(el);
  view = await mount(host as unknown as Host, el);
  await settle();
});
afterEach(() => {
  view.destroy();
  el.remove();
});

describe("the graph view", () => {
  it("shows the stage that it is about, and others keep what is open", async () => {
    expect(view.scene!.document.stage).toBe("edge");
    view.reveal([2]);
    expect(view.scene!.boxOf(2).kind).toBe("node");
    const seen: string[] = [];
    const end = view.onReady((scene) => seen.push(scene.document.stage));
    await view.setStage("planned");
    expect(seen).toEqual(["edge", "planned"]);
    end();
    expect(view.scene!.document.stage).toBe("planned");
    expect(view.scene!.boxOf(2).kind).toBe("node");
    expect(
      byLabel<HTMLInputElement>("Stage").getAttribute("aria-valuetext") ??
        el.querySelector("input[type=range]")!.getAttribute("aria-valuetext"),
    ).toBe("planned");
  });

  it("walks along edges, opens with Enter, says where it is", () => {
    key("Home");
    expect(spoken()).toMatch(/^x/);
    key("ArrowDown");
    expect(spoken()).toMatch(/Stack|Module/);
    key("Enter");
    expect(spoken()).toContain("open");
    key("ArrowDown");
    expect(spoken()).toMatch(/^Module Block 0, .* closed/);
    key("ArrowDown");
    expect(spoken()).toMatch(/^Module Block 1, /);
    key("ArrowLeft");
    expect(spoken()).toMatch(/^Module Block 0, /);
    key("Enter");
    key("ArrowDown");
    expect(spoken()).toMatch(/^mm, mm0, .* in blocks.0/);
    key("ArrowDown");
    expect(spoken()).toMatch(/^relu, relu0/);
    key("ArrowDown");
    expect(spoken()).toMatch(/^Module Block 1, /);
    key("ArrowUp");
    expect(spoken()).toMatch(/^relu, relu0/);
    key("Backspace");
    expect(spoken()).toMatch(/^Module Block 0, .* open/);
  });

  it("selects what the walk is at, and extends with Shift", () => {
    view.reveal([2, 5]);
    key("Home");
    key("ArrowDown");
    expect(spoken()).toMatch(/^mm, mm0/);
    key(" ");
    expect(host.selection.get()).toMatchObject({ handles: [10], node: "mm0" });
    key("ArrowDown");
    key(" ", { shiftKey: true });
    expect(host.selection.get()).toMatchObject({ handles: [10, 11], node: null });
    key(" ", { shiftKey: true });
    expect(host.selection.get().handles).toEqual([10]);
    key("Escape");
    expect(host.selection.get().handles).toEqual([]);
  });

  it("shows what is known of a node without handles", async () => {
    host.bare = true;
    await view.setStage("planned");
    view.reveal([2]);
    key("Home");
    key("ArrowDown");
    expect(spoken()).toMatch(/^mm, mm0/);
    key(" ");
    expect(host.selection.get().handles).toEqual([]);
    expect(byLabel("Details").textContent).toContain("mm0");
  });

  it("selects all of a module", () => {
    key("Home");
    key("ArrowDown");
    key(" ");
    const all = [...view.scene!.document.handles].filter((handle) => handle > 1 && handle < 9000);
    expect(host.selection.get().handles).toEqual(all.sort((a, b) => a - b));
  });

  it("opens what holds a node that is selected elsewhere", () => {
    expect(view.scene!.boxOf(2).kind).not.toBe("node");
    host.selection.set({ method: "forward", handles: [10], node: null });
    expect(view.scene!.boxOf(2).kind).toBe("node");
    const open = view.scene!.boxes.length;
    host.selection.set({ method: "backward", handles: [14], node: null });
    expect(view.scene!.boxes.length).toBe(open);
  });

  it("finds, counts and steps through hits, opening modules", () => {
    const field = search("relu");
    expect(el.querySelector(".wb-graph-found")!.textContent).toBe("– / 3");
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
    expect(el.querySelector(".wb-graph-found")!.textContent).toBe("1 / 3");
    expect(host.selection.get()).toMatchObject({ handles: [11], node: "relu0" });
    expect(view.scene!.boxOf(3).kind).toBe("node");
    field.dispatchEvent(
      new KeyboardEvent("keydown", { key: "Enter", shiftKey: true, cancelable: true }),
    );
    expect(host.selection.get().node).toBe("relu2");
  });

  it("says inline why an expression can't be read", () => {
    byLabel<HTMLButtonElement>("Regular expression").click();
    search("relu(");
    const problem = el.querySelector<HTMLElement>(".wb-graph-problem")!;
    expect(problem.hidden).toBe(false);
    expect(problem.textContent).toMatch(/Invalid|Unterminated/);
    search("relu");
    expect(problem.hidden).toBe(true);
  });

  it("has its table behind it, linked both ways", async () => {
    byLabel<HTMLButtonElement>("The nodes as a table").click();
    expect(canvas().parentElement!.hidden).toBe(true);
    const rows = () => [...el.querySelectorAll<HTMLElement>("tr[data-row]")];
    expect(rows().length).toBeGreaterThan(5);
    host.selection.set({ method: "forward", handles: [11], node: null });
    byLabel<HTMLButtonElement>("The nodes as a table").click();
    byLabel<HTMLButtonElement>("The nodes as a table").click();
    await new Promise((done) => setTimeout(done, 50));
    expect(
      rows()
        .find((row) => row.dataset.row === "3")!
        .getAttribute("aria-selected"),
    ).toBe("true");
    rows()
      .find((row) => row.dataset.row === "2")!
      .click();
    expect(host.selection.get()).toMatchObject({ handles: [10], node: "mm0" });
  });

  it("shows details, from the document at once and from the kernel when it answers", async () => {
    host.selection.set({ method: "forward", handles: [10], node: "mm0" });
    const pane = byLabel("Details");
    expect(pane.textContent).toContain("aten.mm.default");
    expect(pane.textContent).toContain("Used by");
    await settle();
    expect(host.calls).toEqual([["graph.details", { stage: "edge", method: "forward", row: 2 }]]);
    expect(pane.textContent).toContain("y = x @ w");
    expect(pane.textContent).toContain("no kernel for it");
    expect(pane.textContent).toContain("dim order (0, 1)");
  });

  it("colours by a column and explains it", async () => {
    const choice = byLabel<HTMLSelectElement>("Colour by");
    expect([...choice.options].map((option) => option.value)).toEqual(["kind", "time"]);
    choice.value = "time";
    choice.dispatchEvent(new Event("change"));
    const legend = byLabel("Legend");
    expect(legend.textContent).toContain("Time");
    expect(legend.querySelector("input[type=checkbox]")).not.toBeNull();
  });

  it("copies the selection", async () => {
    const written: string[] = [];
    vi.stubGlobal("navigator", {
      ...navigator,
      clipboard: { writeText: async (text: string) => void written.push(text) },
    });
    host.selection.set({ method: "forward", handles: [10, 11], node: null });
    const menu = byLabel<HTMLSelectElement>("Copy the selection as");
    for (const form of ["names", "handles", "python"]) {
      menu.value = form;
      menu.dispatchEvent(new Event("change"));
      await settle();
    }
    expect(written).toEqual(["mm0\nrelu0", "10, 11", "lowering.selection = [10, 11]"]);
    vi.unstubAllGlobals();
  });

  it("shows errors in the view, and recovers", async () => {
    host.broken = "planned";
    await view.setStage("planned");
    expect(el.querySelector("[role=alert].wb-error")!.textContent).toContain("it broke");
    expect(el.querySelector(".wb-error")!.textContent).toContain("mend it");
    await view.setStage("exported");
    expect(el.querySelector(".wb-error")).toBeNull();
    expect(view.scene!.document.stage).toBe("exported");
  });

  it("asks again when the graph changed", async () => {
    host.blocks = 2;
    for (const listener of host.listeners) listener(new Set(["graph"]));
    await settle();
    expect(view.scene!.document.name.length).toBe(8);
  });

  it("shows weights when asked", () => {
    view.reveal([2]);
    expect(view.scene!.boxes.some((box) => box.kind === "node" && box.index === 1)).toBe(false);
    byLabel<HTMLButtonElement>("Show weights and other constants as boxes").click();
    expect(view.scene!.boxes.some((box) => box.kind === "node" && box.index === 1)).toBe(true);
  });

  it("leaves nothing behind", () => {
    view.destroy();
    expect(el.childElementCount).toBe(0);
    expect(host.listeners.size).toBe(0);
    host.selection.set({ method: "forward", handles: [10], node: null });
  });
});

describe("without controls", () => {
  it("has only the graph", async () => {
    view.destroy();
    view = await mount(host as unknown as Host, el, { chrome: false, stage: "planned" });
    await settle();
    expect(view.scene!.document.stage).toBe("planned");
    expect(el.querySelector("[role=toolbar]")).toBeNull();
    expect(el.querySelector("aside")).toBeNull();
  });
});
