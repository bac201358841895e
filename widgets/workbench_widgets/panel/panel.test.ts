import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { GraphDocument } from "../contract.ts";
import { MockHost } from "../common/mock_host.ts";
import { StringColumn } from "../common/unpack.ts";
import { fake, settled, STAGES, type Fake } from "./fakes.ts";
import { differences, relowered } from "./notes.ts";
import { Panel } from "./panel.ts";
import { graphStage, PLACES } from "./places.ts";
import { describe as named } from "./selection_line.ts";

let host: MockHost;
let root: HTMLElement;
let panel: Panel;
let fakes: Record<string, Fake>;

function open(stage = "edge", changes: Record<string, Fake> = {}): void {
  fakes = Object.fromEntries(
    ["graph", "partition", "memory", "program", "profile"].map((name) => [name, fake(name)]),
  );
  Object.assign(fakes, changes);
  host.about = { ...host.about, stage };
  const views = Object.fromEntries(Object.entries(fakes).map(([name, { view }]) => [name, view]));
  panel = new Panel(host, root, { views, places: PLACES });
}

const tab = (name: string) =>
  root.querySelector<HTMLButtonElement>(`[role=tab][data-stage=${name}]`)!;
const chosen = () =>
  root.querySelector<HTMLElement>("[role=tab][aria-selected=true]")!.dataset.stage;
const visible = () =>
  [...root.querySelectorAll<HTMLElement>(".wb-slot")]
    .filter((slot) => !slot.closest("[hidden]"))
    .map((slot) => slot.dataset.view)
    .sort();
const click = (text: string) =>
  [...root.querySelectorAll("button")].find((made) => made.textContent === text)!.click();
const press = (el: Element, key: string) =>
  el.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

beforeEach(() => {
  host = new MockHost({}, { stages: STAGES });
  root = document.createElement("div");
  document.body.append(root);
});
afterEach(() => {
  panel?.destroy();
  root.remove();
});

describe("the stage bar", () => {
  it("shows every stage with its detail and time, as tabs", () => {
    open();
    const tabs = [...root.querySelectorAll<HTMLElement>("[role=tablist] [role=tab]")];
    expect(tabs.map((made) => made.dataset.stage)).toEqual(STAGES.map((stage) => stage.name));
    expect(tab("edge").textContent).toContain("18 nodes");
    expect(tab("edge").textContent).toContain("0.10 s");
    expect(chosen()).toBe("edge");
    expect(tab("edge").tabIndex).toBe(0);
    expect(tab("planned").tabIndex).toBe(-1);
    const body = root.querySelector(`#${tab("edge").getAttribute("aria-controls")}`)!;
    expect(body.getAttribute("role")).toBe("tabpanel");
    expect(body.getAttribute("aria-labelledby")).toBe(tab("edge").id);
    tab("planned").click();
    expect(body.getAttribute("aria-labelledby")).toBe(tab("planned").id);
    tab("edge").click();
  });

  it("goes by arrows, Home and End, around its ends", () => {
    open();
    tab("edge").focus();
    press(tab("edge"), "ArrowRight");
    expect(chosen()).toBe("partitioned");
    expect(document.activeElement).toBe(tab("partitioned"));
    press(tab("partitioned"), "End");
    expect(chosen()).toBe("run");
    press(tab("run"), "ArrowRight");
    expect(chosen()).toBe("exported");
    press(tab("exported"), "ArrowLeft");
    press(tab("run"), "Home");
    expect(chosen()).toBe("exported");
  });

  it("begins with the stage that was asked for", async () => {
    open("planned");
    await panel.ready;
    expect(chosen()).toBe("planned");
    expect(visible()).toEqual(["graph", "memory"]);
  });
});

describe("views", () => {
  it("are mounted when they are first shown, once, and stay", async () => {
    open();
    await panel.ready;
    expect(visible()).toEqual(["graph"]);
    expect(fakes.memory!.mounted.length).toBe(0);
    tab("planned").click();
    await settled();
    expect(visible()).toEqual(["graph", "memory"]);
    tab("edge").click();
    expect(visible()).toEqual(["graph"]);
    tab("planned").click();
    await settled();
    expect(fakes.memory!.mounted.length).toBe(1);
    expect(fakes.graph!.mounted.length).toBe(1);
    expect(fakes.graph!.mounted[0]!.stages.slice(-1)).toEqual(["planned"]);
  });

  it("goes to the first stage where the shown one is gone", async () => {
    open("planned");
    await panel.ready;
    host.about = { ...host.about, stages: STAGES.filter(({ name }) => name !== "planned") };
    host.changed("*");
    await settled();
    expect(chosen()).toBe("exported");
    expect(visible()).toEqual(["graph"]);
  });

  it("the partition's view has the panel for itself, and the graph is not even mounted", async () => {
    open("partitioned");
    await panel.ready;
    expect(visible()).toEqual(["partition"]);
    expect(fakes.graph!.mounted.length).toBe(0);
    tab("lowered").click();
    await settled();
    expect(visible()).toEqual(["graph"]);
  });

  it("beside a program and its run stands the planned graph", async () => {
    open("run");
    await panel.ready;
    expect(visible()).toEqual(["graph", "profile"]);
    expect(fakes.graph!.mounted[0]!.stage).toBe("planned");
    expect(fakes.profile!.mounted[0]!.stage).toBe("run");
  });

  it("may be shown alone, or both", async () => {
    open("planned");
    await panel.ready;
    click("Graph");
    expect(visible()).toEqual(["graph"]);
    click("memory");
    expect(visible()).toEqual(["memory"]);
    click("Both");
    expect(visible()).toEqual(["graph", "memory"]);
    tab("edge").click();
    expect(root.querySelector<HTMLElement>(".wb-modes")!.hidden).toBe(true);
  });

  it("the bar follows a graph that goes to another stage by itself", async () => {
    open("edge");
    await panel.ready;
    await settled();
    const graph = fakes.graph!.mounted[0]!;
    graph.draw("edge");
    expect(chosen()).toBe("edge");
    graph.draw("lowered");
    expect(chosen()).toBe("lowered");
    graph.draw("quantized"); // no such stage
    expect(chosen()).toBe("lowered");
    tab("run").click();
    await Promise.resolve();
    graph.draw("lowered"); // drawn once more while the planned graph is on its way
    expect(chosen()).toBe("run");
    await settled();
    await settled();
    graph.draw("planned"); // which stands beside the run
    expect(chosen()).toBe("run");
  });

  it("that fail say so in their place, and can be tried again", async () => {
    let broken = true;
    open("planned", { memory: fake("memory", () => broken) });
    await panel.ready;
    const alert = root.querySelector("[data-view=memory] [role=alert]")!;
    expect(alert.textContent).toContain("memory is broken");
    expect(visible()).toContain("graph");
    broken = false;
    click("Try again");
    await settled();
    expect(root.querySelector("[role=alert]")).toBeNull();
    expect(fakes.memory!.mounted.length).toBe(1);
  });

  it("that come late follow the bar, and are ended if the panel is gone", async () => {
    open();
    tab("lowered").click(); // before the graph is mounted
    await settled();
    expect(fakes.graph!.mounted[0]!.stages.slice(-1)).toEqual(["lowered"]);
    tab("planned").click();
    panel.destroy();
    await settled();
    expect(fakes.memory!.mounted[0]!.destroyed).toBe(true);
    expect(fakes.graph!.mounted[0]!.destroyed).toBe(true);
    expect(host.listening).toBe(0);
    expect(root.childNodes.length).toBe(0);
  });
});

describe("methods", () => {
  beforeEach(() => {
    host.about = { ...host.about, methods: ["encode", "decode"], method: "encode" };
    host.selection.set({ method: "encode", handles: [], node: null });
  });
  const methods = () => root.querySelector<HTMLSelectElement>("select[aria-label=Method]")!;

  it("are chosen for all views", async () => {
    open("planned");
    await panel.ready;
    methods().value = "decode";
    methods().dispatchEvent(new Event("change"));
    await settled();
    expect(host.selection.get()).toEqual({ method: "decode", handles: [], node: null });
    for (const name of ["graph", "memory"]) {
      expect(fakes[name]!.mounted[0]!.stages.slice(-1), name).toEqual(["planned"]);
    }
  });

  it("follow what is selected", async () => {
    open("planned");
    await panel.ready;
    host.selection.set({ method: "decode", handles: [3], node: null });
    await settled();
    expect(methods().value).toBe("decode");
    expect(host.selection.get().handles).toEqual([3]);
    expect(fakes.memory!.mounted[0]!.stages.length).toBe(1);
  });

  it("one alone needs no choice", () => {
    host.about = { ...host.about, methods: ["forward"], method: "forward" };
    open();
    expect(methods().hidden).toBe(true);
  });
});

describe("what changes", () => {
  const again = STAGES.map((stage) => {
    if (stage.name === "partitioned") return { ...stage, detail: "1 partitions", seconds: 0.3 };
    if (stage.name === "lowered") return { ...stage, detail: "12 nodes", seconds: 0.12 };
    return { ...stage, seconds: null };
  });

  it("is told in a line, and marked in the bar", () => {
    open();
    host.about = { ...host.about, stages: again };
    host.changed("*");
    const note = root.querySelector<HTMLElement>(".wb-panel-note")!;
    expect(note.hidden).toBe(false);
    expect(note.textContent).toContain("Re-lowered: partitioned, lowered made anew in 0.42 s");
    expect(note.textContent).toContain("lowered: 12 nodes, was 10 nodes");
    expect(tab("lowered").textContent).toContain("12 nodes");
    expect(tab("lowered").classList.contains("wb-stage-changed")).toBe(true);
    expect(tab("edge").classList.contains("wb-stage-changed")).toBe(false);
    expect(chosen()).toBe("edge");
  });

  it("a run changes the bar, but nothing was lowered", () => {
    open();
    host.about = {
      ...host.about,
      stages: STAGES.map((stage) =>
        stage.name === "run" ? { ...stage, detail: "1.2 ms" } : stage,
      ),
    };
    host.changed("profile", "about");
    expect(tab("run").textContent).toContain("1.2 ms");
    expect(root.querySelector<HTMLElement>(".wb-panel-note")!.hidden).toBe(true);
  });

  it("says where nothing came out different", () => {
    const about = { ...host.about, stages: STAGES };
    expect(relowered(about, about)).toContain("no count changed");
    expect(differences(STAGES, again)).toEqual(
      new Map([
        ["partitioned", "2 partitions"],
        ["lowered", "10 nodes"],
      ]),
    );
  });
});

describe("actions", () => {
  it("Run goes to the run and starts it", async () => {
    open();
    click("▶ Run");
    await settled();
    await settled();
    expect(chosen()).toBe("run");
    expect(fakes.profile!.mounted[0]!.starts).toBe(1);
  });

  it("a report has no kernel: what needs one is not offered", () => {
    host.live = false;
    open();
    const texts = [...root.querySelectorAll("button")].map((made) => made.textContent);
    expect(texts).not.toContain("▶ Run");
    expect(texts).not.toContain("Report");
  });

  it("Report saves what Python makes, and shows why it could not", async () => {
    open("planned");
    click("Report");
    await settled();
    expect(host.calls).toEqual([
      { name: "panel.report", args: { stage: "planned", method: "forward" } },
    ]);
    expect(root.querySelector("[role=alert]")!.textContent).toContain("there is no such thing");
    const saved = vi.spyOn(URL, "createObjectURL").mockReturnValue("blob:test");
    host.answers.set("panel.report", () => ({
      name: "report_forward.html",
      html: "<!doctype html>",
    }));
    click("Report");
    await settled();
    expect(saved).toHaveBeenCalledOnce();
    expect(root.querySelector("[role=alert]")).toBeNull();
    expect(root.querySelector(".wb-panel-note")!.textContent).toContain("report_forward.html");
    saved.mockRestore();
  });

  it("Recipe shows the recipe, and is closed with Escape", async () => {
    host.give("recipe:", {
      python: "wb.Recipe()",
      json: '{"version": 1}',
      problem: "",
      versions: { torch: "2.13.0" },
    });
    open();
    click("Recipe");
    await settled();
    const drawer = root.querySelector<HTMLElement>(".wb-drawer")!;
    expect(drawer.hidden).toBe(false);
    expect(drawer.textContent).toContain("wb.Recipe()");
    expect(drawer.textContent).toContain("torch 2.13.0");
    press(drawer, "Escape");
    expect(drawer.hidden).toBe(true);
  });
});

// ---- the selection's line ----------------------------------------------------------------------------------

const words = (...items: string[]) => StringColumn.from(items);
const graph = {
  name: words("p_weight", "conv", "relu"),
  op: words("placeholder", "aten.convolution.default", "aten.relu.default"),
  kind: words("parameter", "call", "call"),
  module: Int32Array.of(0, 1, 1),
  module_path: words("", "layer1.0"),
  source: words("", "net.py:12", "net.py:13"),
  handle_start: Int32Array.of(0, 1, 3, 4),
  handles: Int32Array.of(3, 3, 5, 6),
} as unknown as GraphDocument;

describe("the selection's line", () => {
  const line = () => root.querySelector(".wb-selection-line")!;
  const select = async (handles: number[], node: string | null = null) => {
    host.selection.set({ method: "forward", handles, node });
    await settled();
  };

  it("names node, operator, module and source, and clears", async () => {
    host.give("graph:edge/forward", graph);
    open();
    await select([5]);
    expect(line().textContent).toContain("conv");
    expect(line().textContent).toContain("aten.convolution.default");
    expect(line().textContent).toContain("layer1.0");
    expect(line().textContent).toContain("net.py:12");
    expect(line().textContent).toContain("lowering.selection");
    click("Clear");
    await settled();
    expect(host.selection.get().handles).toEqual([]);
    expect(line().textContent).toContain("Nothing selected");
  });

  it("names at once what is selected while the kernel is busy", async () => {
    host.give("graph:edge/forward", new Promise<GraphDocument>(() => {}));
    open();
    host.selection.set({ method: "forward", handles: [5], node: "conv" });
    await vi.waitFor(() => expect(line().textContent).toContain("conv"));
    expect(line().textContent).not.toContain("not in this stage");
  });

  it("Escape selects nothing", async () => {
    open();
    await select([5]);
    press(root.querySelector(".wb-panel")!, "Escape");
    expect(host.selection.get().handles).toEqual([]);
  });

  it("says when the stage has none of it", async () => {
    host.give("graph:edge/forward", graph);
    open();
    await select([77]);
    expect(line().textContent).toContain("source 77 not in this stage's graph");
    await select([77, 78]);
    expect(line().textContent).toContain("2 sources");
  });

  it("prefers the picked node, then the first call", () => {
    expect(named(graph, { method: "forward", handles: [3], node: null })).toMatchObject({
      title: "conv and 1 more",
    });
    expect(named(graph, { method: "forward", handles: [3], node: "p_weight" })?.title).toBe(
      "p_weight and 1 more",
    );
    expect(named(graph, { method: "forward", handles: [6], node: null })?.title).toBe("relu");
    expect(named(graph, { method: "forward", handles: [8], node: null })).toBeNull();
  });
});

it("the graph of a program from a file is its own", () => {
  expect(graphStage("run", ["program", "run"])).toBe("run");
  expect(graphStage("program", ["edge", "planned", "program"])).toBe("planned");
  expect(graphStage("edge", ["edge", "planned"])).toBe("edge");
});
