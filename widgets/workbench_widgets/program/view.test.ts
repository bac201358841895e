import { afterEach, describe, expect, it } from "vitest";
import type {
  ProgramDelegateDocument,
  ProgramDocument,
  ProgramMethodDocument,
} from "../contract.ts";
import { MockHost } from "../common/mock_host.ts";
import { StringColumn } from "../common/unpack.ts";
import { leaves, nodeOf, pathTo, treeOf } from "./tree.ts";
import { cellAt, layOut, neighbor, squarify, type Box } from "./treemap.ts";
import { mount } from "./view.ts";

const strings = (items: readonly string[]) => StringColumn.from(items);
const lists = (rows: readonly (readonly number[])[]) => {
  const start = [0];
  for (const row of rows) start.push(start.at(-1)! + row.length);
  return { start: Int32Array.from(start), values: Int32Array.from(rows.flat()) };
};

/** name, kind, parent, bytes, module, operator, handles, group of equal content */
const PARTS = [
  ["file", "file", -1, 1000, "", "", [], -1],
  ["flatbuffer", "flatbuffer", 0, 100, "", "", [], -1],
  ["constants", "constants", 0, 700, "", "", [], -1],
  ["delegates", "delegates", 0, 200, "", "", [], -1],
  ["values", "section", 1, 60, "", "", [], -1],
  ["instructions", "section", 1, 40, "", "", [], -1],
  ["net.body.0.weight", "constant", 2, 400, "net.body.0", "convolution", [1], 0],
  ["net.body.1.weight", "constant", 2, 250, "net.body.1", "addmm", [2], 0],
  ["padding", "padding", 2, 50, "", "", [], -1],
  ["Demo 0", "delegate", 3, 200, "net.head", "Demo", [3, 4], -1],
  ["header", "section", 9, 20, "", "", [], -1],
  ["data", "section", 9, 180, "", "", [], -1],
] as const;

function program(): ProgramDocument {
  const handles = lists(PARTS.map((part) => part[6]));
  const operators = lists([[1], [2], [3, 4]]);
  const delegates = lists([[3, 4]]);
  const column = <T>(at: number) => PARTS.map((part) => part[at] as T);
  return {
    size: 1000,
    saved: 250,
    duplicates: 1,
    methods: [
      {
        name: "forward",
        instructions: 3,
        values: 5,
        delegates: 1,
        inputs: "",
        outputs: "",
        arena_bytes: 64,
      },
    ],
    part_name: strings(column(0)),
    part_kind: strings(column(1)),
    part_parent: Int32Array.from(column<number>(2)),
    part_start: Float64Array.from(PARTS.keys()),
    part_bytes: Float64Array.from(column<number>(3)),
    part_detail: strings(PARTS.map(() => "")),
    part_same: Int32Array.from(column<number>(7)),
    part_operator: strings(column(5)),
    part_module: strings(column(4)),
    part_index: Int32Array.from(
      PARTS.map((part) => (part[1] === "constant" ? 1 : part[1] === "delegate" ? 0 : -1)),
    ),
    part_uses: Int32Array.from(PARTS.map((part) => part[6].length)),
    part_handle_start: handles.start,
    part_handles: handles.values,
    operator_method: strings(["forward", "forward", "forward"]),
    operator_name: strings(["aten::convolution.out", "aten::addmm.out", "delegate Demo"]),
    operator_calls: Int32Array.of(1, 1, 1),
    operator_kernel: Uint8Array.of(1, 0, 2),
    operator_constant_bytes: Float64Array.of(400, 250, 200),
    operator_written_bytes: Float64Array.of(64, 64, 64),
    operator_handle_start: operators.start,
    operator_handles: operators.values,
    delegate_method: strings(["forward"]),
    delegate_index: Int32Array.of(0),
    delegate_backend: strings(["Demo"]),
    delegate_data: Int32Array.of(0),
    delegate_bytes: Float64Array.of(200),
    delegate_specs: strings([""]),
    delegate_format: strings(["demo list"]),
    delegate_handle_start: delegates.start,
    delegate_handles: delegates.values,
  };
}

function code(): ProgramMethodDocument {
  const handles = lists([[1], [2], [3, 4]]);
  const uses = lists([[0], [0], [1], [1, 2], [2]]);
  return {
    method: "forward",
    chain: Int32Array.of(0, 0, 0),
    index: Int32Array.of(0, 1, 2),
    kind: strings(["kernel", "kernel", "delegate"]),
    name: strings(["aten::convolution.out", "aten::addmm.out", "Demo"]),
    arguments: strings(["input=%0", "self=%2", "%3"]),
    results: strings(["%1", "%3", "%4"]),
    node: strings(["convolution", "addmm", ""]),
    module: strings(["net.body.0", "net.body.1", "net.head"]),
    source: strings(["net.py:1", "net.py:2", ""]),
    constant_bytes: Float64Array.of(400, 250, 200),
    written_bytes: Float64Array.of(64, 64, 64),
    delegate: Int32Array.of(-1, -1, 0),
    handle_start: handles.start,
    handles: handles.values,
    value_kind: strings(["Tensor", "Tensor", "Tensor", "Tensor", "Tensor"]),
    value_text: strings(["a", "b", "c", "d", "e"]),
    value_bytes: Float64Array.of(64, 64, 64, 64, 64),
    value_place: strings(["", "", "", "", ""]),
    value_part: Int32Array.of(-1, -1, -1, -1, -1),
    use_start: uses.start,
    uses: uses.values,
  };
}

function inside(): ProgramDelegateDocument {
  const steps = lists([[3], [4]]);
  return {
    method: "forward",
    index: 0,
    backend: "Demo",
    format: "demo list",
    note: "",
    facts: { version: "1" },
    section_name: strings(["header", "data"]),
    section_start: Float64Array.of(0, 20),
    section_bytes: Float64Array.of(20, 180),
    step_name: strings(["mul", "add"]),
    step_inputs: strings(["%0", "%1"]),
    step_outputs: strings(["%1", "%2"]),
    step_detail: strings(["", ""]),
    step_node: strings(["mul", "add"]),
    step_handle_start: steps.start,
    step_handles: steps.values,
    value_name: strings(["%0"]),
    value_role: strings(["input"]),
    value_text: strings(["float32 [8]"]),
    hex: strings(["000000  57"]),
    texts: strings([]),
  };
}

function boxes(seed: number): { sizes: number[]; box: Box } {
  let state = seed * 7919 + 1;
  const draw = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const sizes = Array.from({ length: 1 + Math.floor(draw() * 90) }, () => 1 / (draw() + 1e-3));
  return {
    sizes: sizes.sort((a, b) => b - a),
    box: { x: 3, y: 5, width: 20 + draw() * 900, height: 20 + draw() * 600 },
  };
}

describe("squarify", () => {
  it.each(Array.from({ length: 25 }, (_, seed) => seed))(
    "fills the box in proportion, without overlaps (%i)",
    (seed) => {
      const { sizes, box } = boxes(seed);
      const found = squarify(sizes, box);
      const scale = (box.width * box.height) / sizes.reduce((sum, size) => sum + size, 0);
      expect(found.length).toBe(sizes.length);
      found.forEach((cell, at) => {
        expect(cell.width * cell.height).toBeCloseTo(sizes[at]! * scale, 3);
        expect(cell.x).toBeGreaterThanOrEqual(box.x - 1e-6);
        expect(cell.y).toBeGreaterThanOrEqual(box.y - 1e-6);
        expect(cell.x + cell.width).toBeLessThanOrEqual(box.x + box.width + 1e-6);
        expect(cell.y + cell.height).toBeLessThanOrEqual(box.y + box.height + 1e-6);
        for (const other of found.slice(0, at)) {
          const wide =
            Math.min(cell.x + cell.width, other.x + other.width) - Math.max(cell.x, other.x);
          const high =
            Math.min(cell.y + cell.height, other.y + other.height) - Math.max(cell.y, other.y);
          expect(Math.min(wide, high)).toBeLessThan(1e-6);
        }
      });
    },
  );

  it("makes squares of equal sizes, and knows what to do with none", () => {
    for (const cell of squarify([1, 1, 1, 1], { x: 0, y: 0, width: 100, height: 100 })) {
      expect([cell.width, cell.height]).toEqual([50, 50]);
    }
    expect(squarify([], { x: 0, y: 0, width: 10, height: 10 })).toEqual([]);
    expect(squarify([1, 1], { x: 0, y: 0, width: 0, height: 10 }).length).toBe(2);
  });
});

describe("trees", () => {
  it.each(["file", "module", "operator"] as const)(
    "have the bytes of the file whatever they are grouped by: %s",
    (grouping) => {
      const tree = treeOf(program(), grouping);
      expect(tree.bytes).toBe(1000);
      const found = leaves(tree);
      expect(found.reduce((sum, leaf) => sum + leaf.bytes, 0)).toBe(1000);
      expect(found.map((leaf) => leaf.row).sort((a, b) => a - b)).toEqual([4, 5, 6, 7, 8, 10, 11]);
      for (const leaf of found) {
        expect(pathTo(leaf)[0]).toBe(tree);
        expect(nodeOf(tree, leaf.row)).toBe(leaf);
      }
    },
  );

  it("group by module with short names, single groups as one", () => {
    const tree = treeOf(program(), "module");
    const net = tree.children.find((child) => child.name === "net")!;
    expect(net.bytes).toBe(850);
    expect(net.children.map((child) => child.name)).toEqual(["body", "head"]);
    expect(net.children[0]!.children.map((child) => child.children[0]!.name)).toEqual([
      "weight",
      "weight",
    ]);
    expect(pathTo(leaves(tree)[0]!).map((node) => node.name)).toContain("file format");
  });
});

describe("cells", () => {
  const tree = treeOf(program(), "file");
  const cells = layOut(tree, { x: 0, y: 0, width: 600, height: 400 });

  it("lie inside the cell of what they are in", () => {
    expect(cells.length).toBe(12);
    for (const cell of cells) {
      const around = cells.find((other) => other.node === cell.node.parent);
      if (!around) continue;
      expect(cell.x).toBeGreaterThanOrEqual(around.x);
      expect(cell.y).toBeGreaterThanOrEqual(around.y + around.head);
      expect(cell.x + cell.width).toBeLessThanOrEqual(around.x + around.width + 1e-6);
      expect(cell.y + cell.height).toBeLessThanOrEqual(around.y + around.height + 1e-6);
    }
  });

  it("are hit, the innermost first, and walked by arrows", () => {
    for (const cell of cells.filter((item) => !item.node.children.length)) {
      expect(cellAt(cells, cell.x + cell.width / 2, cell.y + cell.height / 2)).toBe(cell);
    }
    expect(cellAt(cells, 700, 10)).toBe(null);
    const first = cells.find((cell) => cell.node.row === 6)!;
    const next = neighbor(cells, first, 1, 0)!;
    expect(next.x).toBeGreaterThan(first.x);
    expect(next.node.children.length).toBe(0);
    const back = neighbor(cells, next, -1, 0)!;
    expect(back.x).toBeLessThan(next.x);
  });

  it("are not divided where nothing could be seen", () => {
    expect(layOut(tree, { x: 0, y: 0, width: 6, height: 6 }).length).toBe(1);
  });
});

describe("the view", () => {
  const roots: HTMLElement[] = [];
  const ends: (() => void)[] = [];
  const wait = () => new Promise((done) => setTimeout(done, 0));

  afterEach(() => {
    for (const end of ends.splice(0)) end();
    for (const root of roots.splice(0)) root.remove();
  });

  async function open() {
    const host = new MockHost(
      {
        "program:": program(),
        "program_method:forward": code(),
        "program_delegate:forward/0": inside(),
      },
      { methods: ["forward"], method: "forward" },
    );
    const root = document.createElement("div");
    document.body.append(root);
    roots.push(root);
    const view = await mount(host, root);
    ends.push(() => view.destroy());
    return { host, root, view };
  }

  const tab = (root: HTMLElement, name: string) =>
    [...root.querySelectorAll<HTMLButtonElement>("[role=tab]")].find((item) =>
      item.textContent!.startsWith(name),
    )!;
  const rows = (root: Element) => [...root.querySelectorAll<HTMLElement>("tbody tr[data-row]")];
  const chosen = (root: Element) =>
    rows(root)
      .filter((row) => row.getAttribute("aria-selected") === "true")
      .map((row) => Number(row.dataset.row));

  it("selects a node by its instruction, and the constant it reads is described", async () => {
    const { host, root } = await open();
    rows(root)[1]!.click();
    expect(host.selection.get()).toEqual({ method: "forward", handles: [2], node: "addmm" });
    expect(root.querySelector(".wb-program-part h4")!.textContent).toBe("net.body.1.weight");
    expect(root.querySelector(".wb-program-part")!.textContent).toContain("250 B could be saved");
  });

  it("follows the selection of other views in every table", async () => {
    const { host, root } = await open();
    host.selection.set({ method: "forward", handles: [4], node: null });
    await new Promise((done) => requestAnimationFrame(done));
    expect(chosen(root)).toEqual([2]);
    tab(root, "Operators").click();
    await new Promise((done) => requestAnimationFrame(done));
    expect(chosen(root)).toEqual([2]);
    expect(rows(root)[1]!.textContent).toContain("missing");
  });

  it("opens a delegate, and its steps select their own nodes", async () => {
    const { host, root } = await open();
    tab(root, "Delegates").click();
    rows(root)[0]!.click();
    await wait();
    expect(host.selection.get().handles).toEqual([3, 4]);
    const opened = root.querySelector(".wb-program-inside")!;
    expect(opened.textContent).toContain("demo list");
    rows(opened)[1]!.click();
    expect(host.selection.get()).toEqual({ method: "forward", handles: [4], node: "add" });
  });

  it("says in the view that a delegate can't be opened", async () => {
    const { host, root } = await open();
    host.give("program_delegate:forward/0", undefined);
    tab(root, "Delegates").click();
    rows(root)[0]!.click();
    await wait();
    await wait();
    expect(root.querySelector(".wb-program-inside .wb-error")!.textContent).toContain(
      "there is no such thing",
    );
  });

  it("finds parts and says how many bytes they are", async () => {
    const { root } = await open();
    const field = root.querySelector<HTMLInputElement>(".wb-program-search")!;
    field.value = "WEIGHT";
    field.dispatchEvent(new Event("input"));
    expect(root.querySelector(".wb-program-foot")!.textContent).toContain("2 parts found, 650 B");
    expect(root.querySelector(".wb-program-foot")!.textContent).toContain(
      "1 repeated, 250 B could be saved",
    );
  });

  it("has the table of all parts behind the map; what is chosen there lights its users", async () => {
    const { host, root } = await open();
    root
      .querySelector<HTMLButtonElement>("[aria-label='The parts of the file as a table (T)']")!
      .click();
    const table = root.querySelector("[aria-label='Parts of the file']")!;
    // By bytes, the largest first.
    expect(
      rows(table)
        .slice(0, 4)
        .map((row) => Number(row.dataset.row)),
    ).toEqual([0, 2, 6, 7]);
    rows(table)[2]!.click();
    expect(host.selection.get().handles).toEqual([1]);
    expect(root.querySelector(".wb-program-part")!.textContent).toContain("0 convolution");
  });

  it("stops listening when it is closed", async () => {
    const { host, root, view } = await open();
    view.destroy();
    expect(host.listening).toBe(0);
    expect(root.children.length).toBe(0);
  });
});
