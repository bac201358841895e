import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { GraphTool } from "../graph/scene.ts";
import { CallError } from "../common/host.ts";
import { FakeHost, answerTo, partitionState, scene, settled } from "./fake.ts";
import { StringColumn } from "../common/unpack.ts";
import { mount, type PartitionHandle } from "./view.ts";

const graph = vi.hoisted(() => ({ tool: null as unknown, revealed: [] as number[][], stage: "", destroyed: 0, layers: 0 }));
vi.mock("../graph/view.ts", () => ({
  mount: async () => ({
    scene: scene(),
    search: { el: document.createElement("search"), problem: document.createElement("span") },
    setTool: (tool: unknown) => (graph.tool = tool),
    reveal: (rows: number[]) => graph.revealed.push([...rows]),
    setStage: async (stage: string, method: string) => (graph.stage = `${stage}/${method}`),
    addLayer: () => {
      graph.layers++;
      return () => graph.layers--;
    },
    redraw: () => undefined,
    onReady: (listener: () => void) => {
      listener();
      return () => undefined;
    },
    destroy: () => graph.destroyed++,
  }),
}));

let host: FakeHost;
let el: HTMLElement;
let view: PartitionHandle;

beforeEach(async () => {
  host = new FakeHost();
  el = document.createElement("div");
  document.body.append(el);
  Object.assign(graph, { tool: null, revealed: [], destroyed: 0, layers: 0 });
  view = await mount(host, el);
  await settled();
});

afterEach(() => {
  view.destroy();
  el.remove();
});

const find = (selector: string) => el.querySelector<HTMLElement>(selector)!;
const text = (selector: string) => find(selector).textContent ?? "";
const press = (key: string, options: KeyboardEventInit = {}) =>
  find(".wb-partition-graph").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options }));

describe("the pane", () => {
  it("lists partitions, and marks their nodes on a click", async () => {
    expect(text('[data-tab="partitions"]')).toBe("Partitions2");
    expect(text(".wb-partition-panel")).toContain("B");
    const rows = el.querySelectorAll<HTMLElement>(".wb-partition-panel tr[data-row]");
    rows[1]!.querySelector("td")!.click();
    await settled();
    expect(host.selection.get().handles).toEqual([4, 5]);
    expect(text(".wb-partition-marked")).toContain("2 operators in B");
  });

  it("says for a node left behind why, and what would make it eligible", async () => {
    host.pick([3], "sin");
    await settled();
    expect(text(".wb-partition-marked")).toContain("One: it has no sin");
    expect(text(".wb-partition-marked")).toContain("eligible if it were add");
  });

  it("groups what was left behind by reason", () => {
    find('[data-tab="left"]').click();
    expect(text('[data-tab="left"]')).toBe("Left behind2");
    expect(text(".wb-partition-panel")).toContain("it has no relu");
  });

  it("says beside each action what it would do, before it is done", async () => {
    host.answers["partition.preview"] = (request) =>
      request.action === "assign"
        ? answerTo(request, { legal: false, message: "the tag isn't convex (add -> sin -> mul)", path: [1, 2, 3] })
        : answerTo(request);
    host.pick([4], "mul");
    await settled();
    const lines = [...el.querySelectorAll(".wb-partition-action")].map((line) => line.textContent);
    expect(lines[0]).toBe("Assigna✗ the tag isn't convex");
    expect(lines[1]).toBe("Erasee✓ 1 node, crossing −1.00 KiB");
    expect(host.named("partition.apply")).toEqual([]);
    find('[data-action="assign"]').dispatchEvent(new FocusEvent("focus"));
    expect(text(".wb-partition-path")).toBe("add → sin → mul");
    el.querySelectorAll<HTMLElement>(".wb-partition-path .wb-link")[1]!.click();
    expect(graph.revealed).toEqual([[2]]);
  });

  it("offers the nearest legal form", async () => {
    host.answers["partition.apply"] = (request) =>
      answerTo(request, { legal: false, message: "no", suggestion: { text: "with sin in between", rows: [2, 3], changed: 2 } });
    host.pick([4], "mul");
    press("a");
    await settled();
    const offer = [...el.querySelectorAll<HTMLElement>(".wb-partition-answer button")].at(-1)!;
    expect(offer.textContent).toBe("Assign with sin in between");
    offer.click();
    expect(host.named("partition.apply").at(-1)).toMatchObject({ action: "assign", rows: [2, 3] });
  });

  it("tells requested beside applied", async () => {
    host.state = partitionState({
      asked_row: Int32Array.from([1, 3]),
      asked_tag: StringColumn.from(["", "A"]),
      asked_given: Uint8Array.from([1, 1]),
      asked_why: StringColumn.from(["", "edit 2: a later edit changed it"]),
    });
    host.change("partition.state");
    await settled();
    expect(text('[data-tab="asked"]')).toBe("Requested1 differ");
    find('[data-tab="asked"]').click();
    expect(text(".wb-partition-panel")).toContain("≠ B");
    expect(text(".wb-partition-panel")).toContain("a later edit changed it");
  });
});

describe("keys", () => {
  it("make edits of what is marked", async () => {
    press("e");
    expect(text(".wb-partition-status")).toBe("Select nodes first");
    host.pick([2], "add");
    for (const key of ["a", "e", "s"]) press(key);
    await settled();
    expect(host.named("partition.apply").map(({ action }) => action)).toEqual(["assign", "erase", "split"]);
  });

  it("undo and redo, also where the notebook has shortcuts of its own", async () => {
    const seen = vi.fn();
    document.addEventListener("keydown", seen);
    press("z", { ctrlKey: true });
    press("Z", { ctrlKey: true, shiftKey: true });
    document.removeEventListener("keydown", seen);
    await settled();
    expect(host.named("partition.move").map((move) => (move as unknown as { what: string }).what)).toEqual(["undo", "redo"]);
    expect(seen).not.toHaveBeenCalled();
    expect(text(".wb-partition-status")).toBe("Undone: erase add");
  });

  it("take tools, and Escape puts them away", () => {
    press("p");
    expect((graph.tool as GraphTool).cursor).toBe("crosshair");
    expect(find('[data-tool="paint"]').getAttribute("aria-pressed")).toBe("true");
    press("Escape");
    expect(graph.tool).toBeNull();
  });

  it("are left alone in fields", () => {
    find('[data-tab="left"]').click();
    host.pick([2], "add");
    const field = find("input");
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "e", bubbles: true }));
    expect(host.named("partition.apply")).toEqual([]);
  });
});

describe("history", () => {
  it("shows all edits with their state, and removes one", async () => {
    const step = { number: 1, text: "erase add", changed: 1, reason: "", index: 0, rows: [1] };
    host.state = partitionState({
      waiting: 1,
      undo: "erase add",
      history: [
        { ...step, state: "lowered" },
        { ...step, number: 2, state: "refused", text: "merge A, B", reason: "not convex (add -> sin)", index: -1 },
        { ...step, number: 3, state: "pending", text: "erase mul", index: 1 },
      ],
    });
    host.change("partition.state");
    await settled();
    find('[data-tab="history"]').click();
    const items = [...el.querySelectorAll(".wb-partition-history li")];
    expect(items.map((item) => item.getAttribute("data-state"))).toEqual(["lowered", "refused", "pending"]);
    expect(items[1]!.querySelector(".wb-partition-why")!.textContent).toBe("not convex");
    expect(items[1]!.querySelector(".wb-small")).toBeNull();
    items[2]!.querySelector<HTMLElement>(".wb-small")!.click();
    expect(host.named("partition.move").at(-1)).toMatchObject({ what: "remove", index: 1 });
    expect(text(".wb-primary")).toBe("Re-lower and run (1)");
  });
});

describe("lowering", () => {
  it("shows before, after and the difference", async () => {
    host.answers["partition.relower"] = () => ({
      seconds: 0.42,
      ran: ["partition", "lower"],
      problem: "",
      measures: [
        { name: "Time", unit: "ms", before: 2, after: 1, better: "less", note: "median of 15" },
        { name: "Program", unit: "bytes", before: 1024, after: 2048, better: "less", note: "" },
        { name: "SQNR", unit: "dB", before: null, after: 90, better: "more", note: "" },
      ],
    });
    find(".wb-primary").click();
    expect(text(".wb-partition-panel")).toContain("Lowering and running");
    await settled();
    const cells = [...el.querySelectorAll(".wb-partition-result tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
    expect(cells).toEqual([
      ["Time", "2.00 ms", "1.00 ms", "−1.00 ms (−50 %) better"],
      ["Program", "1.00 KiB", "2.00 KiB", "+1.00 KiB (+100 %) worse"],
      ["SQNR", "exact", "90.0 dB", "–"],
    ]);
    expect(text(".wb-partition-panel")).toContain("Lowered in 0.42 s; ran: partition, lower.");
  });

  it("shows an error in the view, with what to do", async () => {
    host.answers["partition.relower"] = () => {
      throw new CallError({ kind: "PartitionError", message: "can't run 'relu'", details: { hint: "undo the edit" } });
    };
    find(".wb-primary").click();
    await settled();
    expect(text(".wb-error")).toContain("can't run 'relu'");
    expect(text(".wb-error")).toContain("undo the edit");
  });
});

it("has the search of its graph in the bar", () => {
  const bar = find(".wb-toolbar");
  expect([...bar.children].some((child) => child.localName === "search")).toBe(true);
});

it("has a table behind the picture", () => {
  const toggle = [...el.querySelectorAll<HTMLElement>(".wb-toolbar button")].find((made) => made.textContent === "Table")!;
  toggle.click();
  expect(find(".wb-partition-graph").hidden).toBe(true);
  expect(text(".wb-split .wb-table")).toContain("aten.relu");
  toggle.click();
  expect(find(".wb-partition-graph").hidden).toBe(false);
});

it("can only be read in a report", async () => {
  const report = new FakeHost();
  report.live = false;
  const place = document.createElement("div");
  document.body.append(place);
  const other = await mount(report, place);
  await settled();
  expect(place.querySelector<HTMLElement>(".wb-partition-actions")!.hidden).toBe(true);
  expect(place.querySelector<HTMLElement>('[data-tab="result"]')!.hidden).toBe(true);
  report.pick([3], "sin");
  await settled();
  expect(place.querySelector(".wb-partition-marked")!.textContent).toContain("it has no sin");
  expect(place.querySelector<HTMLElement>(".wb-primary")!.hidden).toBe(true);
  expect(place.querySelector<HTMLElement>('[data-tool="paint"]')!.closest<HTMLElement>("[hidden]")).not.toBeNull();
  expect(place.textContent).toContain("A report");
  other.destroy();
  place.remove();
});

it("leaves nothing behind", () => {
  expect(graph.layers).toBe(2);
  view.destroy();
  expect([graph.layers, graph.destroyed, host.listening]).toEqual([0, 1, 0]);
  expect(el.children).toHaveLength(0);
  view = { ...view, destroy: () => undefined };
});
