// The partition editor: the graph with tags as outlines, tools on it, and a pane that says what an edit would do.
import "../shared/theme.css";
import "../graph/view.css";
import "./view.css";
import { mount as mountGraph } from "../graph/view.ts";
import type { GraphHandle, SceneBox } from "../graph/scene.ts";
import { h, on } from "../shared/dom.ts";
import { clearError, showError } from "../shared/errors.ts";
import type { Host } from "../shared/host.ts";
import { widget } from "../shared/render.ts";
import { makeSplit } from "../shared/split.ts";
import { button, group, select, spacer, toggle, toolbar } from "../shared/toolbar.ts";
import { facts, makeTooltip } from "../shared/tooltip.ts";
import { PartitionEditor, type Action } from "./editor.ts";
import { reasonList } from "./edit_pane.ts";
import { PartitionLayers } from "./layer.ts";
import { NodeTable } from "./node_table.ts";
import { SidePane } from "./side_pane.ts";
import { TOOLS, Tools, type ToolName } from "./tools.ts";

export interface PartitionOptions {
  readonly method?: string;
}

export interface PartitionHandle {
  destroy(): void;
  readonly graph: GraphHandle;
  readonly editor: PartitionEditor;
  /** The first picture is complete. */
  readonly ready: Promise<unknown>;
  setMethod(method: string): void;
}

const STACKED = 720;
const KEYS: Readonly<Record<string, Action>> = { a: "assign", e: "erase", s: "split", m: "merge" };

export async function mount(host: Host, el: HTMLElement, options: PartitionOptions = {}): Promise<PartitionHandle> {
  const frame = h("div.wb-frame.wb-partition");
  el.append(frame);
  const errors = h("div.wb-partition-errors");
  const editor = new PartitionEditor(host, options.method ?? host.about.method, (error) => showError(errors, error));
  const layers = new PartitionLayers(editor);
  const split = makeSplit("Graph and pane", 0.6);
  const canvas = h("div.wb-partition-graph");
  const status = h("span.wb-partition-status.wb-muted", { role: "status" });
  const say = (text: string) => {
    status.textContent = text;
    status.title = text;
  };
  const tooltip = makeTooltip(frame);
  const ends: (() => void)[] = [];

  let graph: GraphHandle | null = null;
  const redraw = () => graph?.redraw();
  const reveal = (rows: readonly number[]) => {
    showTable(false);
    graph?.reveal(rows);
  };
  const tools = new Tools(editor, layers, { redraw, say });
  const pane = new SidePane(editor, { reveal, say });
  const nodes = new NodeTable(editor, reveal);

  // ---- toolbar ---------------------------------------------------------------------------------------------

  const buttons = new Map<ToolName, HTMLButtonElement>();
  const useTool = (name: ToolName) => {
    for (const [known, made] of buttons) made.setAttribute("aria-pressed", String(known === name));
    graph?.setTool(tools.use(name));
    say(TOOLS.find((tool) => tool.name === name)?.title ?? "");
  };
  for (const tool of TOOLS) {
    const made = button(tool.text, `${tool.title} (${tool.key})`, () => useTool(tool.name));
    made.dataset.tool = tool.name;
    made.setAttribute("aria-pressed", String(tool.name === "select"));
    buttons.set(tool.name, made);
  }
  const back = (what: "undo" | "redo") => void editor.move(what).then(say);
  const undo = button("↶", "Undo", () => back("undo"));
  const redo = button("↷", "Redo", () => back("redo"));
  const run = button("Re-lower and run", "Write the edits to the recipe, lower in place, run before and after", () => {
    pane.open("result");
    clearError(errors);
    void editor.relower(host.about.can_run);
  });
  run.classList.add("wb-primary");
  const methods = select("Method", host.about.methods.map((name) => ({ value: name, text: name })), editor.method, (name) => setMethod(name));
  methods.hidden = host.about.methods.length < 2;
  const tableToggle = toggle("Table", "All operators as a table", false, (pressed) => showTable(pressed));
  const editing = [group("Tool", ...buttons.values()), undo, redo];
  const bar = toolbar("Partition", methods, ...editing, spacer(), tableToggle, run);

  const showTable = (pressed: boolean) => {
    tableToggle.setAttribute("aria-pressed", String(pressed));
    canvas.hidden = pressed;
    nodes.table.el.hidden = !pressed;
    if (pressed) nodes.mark();
  };
  nodes.table.el.hidden = true;
  split.first.append(canvas, nodes.table.el);
  split.second.append(pane.el);
  frame.append(bar, errors, h("div.wb-body", {}, split.el), h("div.wb-partition-foot", {}, status));

  const update = () => {
    const { state } = editor;
    if (!state) return;
    for (const part of editing) part.hidden = !editor.editable;
    undo.disabled = !state.undo;
    undo.title = state.undo ? `Undo: ${state.undo} (Ctrl+Z)` : "Nothing to undo";
    redo.disabled = !state.redo;
    redo.title = state.redo ? `Redo: ${state.redo} (Ctrl+Shift+Z)` : "Nothing to redo";
    run.hidden = !host.live;
    run.disabled = !editor.editable || editor.busy !== "";
    run.textContent = state.waiting ? `Re-lower and run (${state.waiting})` : "Re-lower and run";
    if (!editor.editable) say(host.live ? "The lowering of this stage is gone: it can be looked at, not edited" : "A report: edits need a running kernel");
    else if (state.note) say(state.note);
  };

  // ---- graph -----------------------------------------------------------------------------------------------

  const setMethod = (name: string) => {
    methods.value = name;
    void editor.load(name);
    void graph?.setStage("partitioned", name);
  };

  ends.push(
    editor.onChange((parts) => {
      if (parts.has("documents")) {
        tooltip.hide();
        nodes.update();
        update();
      }
      if (parts.has("busy")) {
        update();
        if (editor.outcome && !editor.busy) say(`Lowered in ${editor.outcome.seconds.toFixed(2)} s`);
      }
      pane.updateEdit();
      if (["documents", "busy", "outcome", "marked"].some((part) => parts.has(part as never))) pane.updateLists();
      if (parts.has("marked") && !nodes.table.el.hidden) nodes.mark();
      redraw();
    }),
  );

  const observer = new ResizeObserver(() => {
    const width = frame.clientWidth;
    if (width) split.setStacked(width < STACKED);
  });
  observer.observe(frame);
  split.setStacked(frame.clientWidth > 0 && frame.clientWidth < STACKED);

  const loaded = editor.load();
  graph = await mountGraph(host, canvas, { stage: "partitioned", method: editor.method, chrome: false });
  ends.push(graph.addLayer(layers.under), graph.addLayer(layers.over), ...hovering(canvas, graph, editor, layers, tools, tooltip));
  ends.push(on(frame, "keydown", (event) => key(event), { capture: true }));

  const key = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (target.closest("input, textarea, select")) return;
    const control = event.ctrlKey || event.metaKey;
    const letter = event.key.toLowerCase();
    const action = KEYS[letter];
    const tool = TOOLS.find((known) => known.key === letter);
    if (!editor.editable || event.altKey) return;
    if (control && letter === "z") back(event.shiftKey ? "redo" : "undo");
    else if (control && letter === "y") back("redo");
    else if (control) return;
    else if (event.key === "Escape" && tools.name !== "select") useTool("select");
    else if (action) void actOn(action);
    else if (tool) useTool(tool.name);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const actOn = async (action: Action) => {
    if (!editor.marked.length) say("Select nodes first");
    else await editor.apply(editor.request(action));
  };

  const drawn = graph;
  return {
    graph: drawn,
    editor,
    ready: Promise.all([loaded, new Promise<void>((done) => ends.push(drawn.onReady(() => done())))]),
    destroy() {
      observer.disconnect();
      for (const end of ends) end();
      drawn.destroy();
      editor.destroy();
      pane.destroy();
      nodes.table.destroy();
      split.destroy();
      tooltip.destroy();
      frame.remove();
    },
    setMethod,
  };
}

/** The pointer without a button: tools say what a click would do, nodes left behind say why. */
function hovering(
  canvas: HTMLElement, graph: GraphHandle, editor: PartitionEditor, layers: PartitionLayers, tools: Tools,
  tooltip: ReturnType<typeof makeTooltip>,
): (() => void)[] {
  const boxAt = (event: PointerEvent): SceneBox | null => {
    const drawn = canvas.querySelector("canvas");
    if (!drawn || !graph.scene) return null;
    const rect = drawn.getBoundingClientRect();
    const { scale, x, y } = layers.transform;
    return graph.scene.boxAt((event.clientX - rect.left - x) / scale, (event.clientY - rect.top - y) / scale);
  };
  return [
    on(canvas, "pointermove", (event) => {
      if (event.buttons) {
        tooltip.hide();
        return;
      }
      const box = boxAt(event);
      tools.hover(box);
      const content = box && !box.open && graph.scene ? explain(box, graph, editor, layers) : null;
      if (content) tooltip.show(event.clientX, event.clientY, content);
      else tooltip.hide();
    }),
    on(canvas, "pointerleave", () => {
      tools.hover(null);
      tooltip.hide();
    }),
  ];
}

/** Who runs what a box stands for, and why not somebody else. */
function explain(box: SceneBox, graph: GraphHandle, editor: PartitionEditor, layers: PartitionLayers): HTMLElement | null {
  const cover = graph.scene && layers.covers(graph.scene).byBox.get(box);
  const first = cover?.rows[0];
  if (!cover || first === undefined || !editor.document) return null;
  const only = cover.rows.length === 1;
  const tags = [...cover.counts].map(([tag, count]) => {
    const name = tag < 0 ? "the runtime" : (editor.state?.tags[tag]?.name ?? "");
    return only ? name : `${name}: ${count}`;
  });
  const drawn = graph.scene!.document;
  const list = facts([
    ["Operator", only ? editor.document.op.get(first) : `${cover.rows.length} operators`],
    ["Output", only ? `${drawn.dtype.get(first)} ${drawn.shape.get(first)}`.trim() : null],
    ["Module", editor.document.module.get(first) || null],
    ["Source", only ? editor.document.source.get(first) : null],
    ["Runs on", tags.slice(0, 6).join(", ") + (tags.length > 6 ? ", …" : "")],
  ]);
  const reasons = only ? (editor.reasons.get(first) ?? []) : [];
  if (reasons.length) list.append(h("dt", {}, "Why not"), h("dd", {}, reasonList(reasons)));
  else if (cover.left) list.append(h("dt", {}, "Left behind"), h("dd", {}, String(cover.left)));
  const { shown } = editor;
  if (shown?.kind === "look") {
    list.append(h("dt", {}, shown.answer.legal ? "✓ Legal" : "✗ Not legal"), h("dd", {}, shown.answer.legal ? shown.answer.text : shown.answer.message));
  }
  return h("div", {}, h("strong", {}, only ? editor.document.name.get(first) : box.title), list);
}

export default widget((host, el) => mount(host, el));
