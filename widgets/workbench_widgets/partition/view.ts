// The partition editor: the graph with tags as outlines, tools on it, and a pane that says what an edit would do.
import "../common/theme.css";
import "../graph/view.css";
import "./view.css";
import type { GraphHandle } from "../graph/scene.ts";
import { mount as mountGraph } from "../graph/view.ts";
import { h, on } from "../common/dom.ts";
import { clearError, showError } from "../common/errors.ts";
import type { Host } from "../common/host.ts";
import { widget } from "../common/render.ts";
import { makeSplit, type Split } from "../common/split.ts";
import { makeTooltip } from "../common/tooltip.ts";
import { Bar } from "./bar.ts";
import { PartitionEditor, type Action, type Part } from "./editor.ts";
import { hovering } from "./hover.ts";
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

/** Narrower than this, the pane stands below the graph. */
const STACKED = 720;
const KEYS: Readonly<Record<string, Action>> = { a: "assign", e: "erase", s: "split", m: "merge" };
const LISTED: readonly Part[] = ["documents", "busy", "outcome", "marked"];

/** What the graph is mounted in; it must be on the page by then, to have a size. */
interface Shell {
  readonly frame: HTMLElement;
  readonly split: Split;
  readonly canvas: HTMLElement;
}

class PartitionView implements PartitionHandle {
  readonly editor: PartitionEditor;
  readonly ready: Promise<unknown>;
  readonly graph: GraphHandle;
  private readonly host: Host;
  private readonly layers: PartitionLayers;
  private readonly tools: Tools;
  private readonly bar: Bar;
  private readonly pane: SidePane;
  private readonly nodes: NodeTable;
  private readonly frame: HTMLElement;
  private readonly split: Split;
  private readonly errors = h("div.wb-partition-errors");
  private readonly canvas: HTMLElement;
  private readonly status = h("span.wb-partition-status.wb-muted", { role: "status" });
  private readonly tooltip;
  private readonly ends: (() => void)[] = [];

  constructor(host: Host, shell: Shell, graph: GraphHandle, method: string) {
    this.host = host;
    this.graph = graph;
    ({ frame: this.frame, split: this.split, canvas: this.canvas } = shell);
    const say = (text: string) => this.say(text);
    const reveal = (rows: readonly number[]) => this.reveal(rows);
    this.editor = new PartitionEditor(host, method, (error) => showError(this.errors, error));
    this.layers = new PartitionLayers(this.editor, () => graph.redraw());
    this.tools = new Tools(this.editor, this.layers, { redraw: () => graph.redraw(), say });
    this.pane = new SidePane(this.editor, { reveal, say });
    this.nodes = new NodeTable(this.editor, reveal);
    this.tooltip = makeTooltip(this.frame);
    this.bar = new Bar(host, this.editor, graph.search, {
      useTool: (name) => this.useTool(name),
      move: (what) => this.move(what),
      run: () => this.run(),
      showTable: (pressed) => this.showTable(pressed),
      setMethod: (name) => this.setMethod(name),
    });
    this.build();
    const drawn = new Promise<void>((done) => this.ends.push(graph.onReady(() => done())));
    this.ready = Promise.all([this.editor.load(), drawn]);
  }

  private build(): void {
    const { split, frame } = this;
    this.nodes.table.el.hidden = true;
    split.first.append(this.nodes.table.el);
    split.second.append(this.pane.el);
    frame.prepend(this.bar.el, this.errors);
    frame.append(h("div.wb-partition-foot", {}, this.status));
    const stack = () => {
      if (frame.clientWidth) split.setStacked(frame.clientWidth < STACKED);
    };
    const observer = new ResizeObserver(stack);
    observer.observe(frame);
    stack();
    this.ends.push(
      () => observer.disconnect(),
      this.editor.onChange((parts) => this.changed(parts)),
      on(frame, "keydown", (event) => this.key(event), { capture: true }),
      this.graph.addLayer(this.layers.under),
      this.graph.addLayer(this.layers.over),
      ...hovering(this.canvas, this.graph, this.editor, this.layers, this.tools, this.tooltip),
    );
  }

  destroy(): void {
    for (const end of this.ends) end();
    this.layers.destroy();
    this.graph.destroy();
    this.editor.destroy();
    this.pane.destroy();
    this.nodes.table.destroy();
    this.split.destroy();
    this.tooltip.destroy();
    this.frame.remove();
  }

  setMethod(name: string): void {
    this.bar.setMethod(name);
    void this.editor.load(name);
    void this.graph.setStage("partitioned", name);
  }

  // ---- what happens ----------------------------------------------------------------------------------------

  private say(text: string): void {
    this.status.textContent = text;
    this.status.title = text;
  }

  private changed(parts: ReadonlySet<Part>): void {
    const { editor, host } = this;
    if (parts.has("documents")) {
      this.tooltip.hide();
      this.nodes.update();
      if (!editor.editable) this.say(host.live ? "The lowering of this stage is gone: it can be looked at, not edited" : "A report: edits need a running kernel");
      else if (editor.state?.note) this.say(editor.state.note);
    }
    if (parts.has("busy") && editor.outcome && !editor.busy) this.say(`Lowered in ${editor.outcome.seconds.toFixed(2)} s`);
    this.bar.update();
    this.pane.updateEdit();
    if (LISTED.some((part) => parts.has(part))) this.pane.updateLists();
    if (parts.has("marked") && !this.nodes.table.el.hidden) this.nodes.mark();
    this.graph.redraw();
  }

  private useTool(name: ToolName): void {
    this.bar.setTool(name);
    this.graph.setTool(this.tools.use(name));
    this.say(TOOLS.find((tool) => tool.name === name)?.title ?? "");
  }

  private move(what: "undo" | "redo"): void {
    void this.editor.move(what).then((text) => this.say(text));
  }

  private run(): void {
    this.pane.open("result");
    clearError(this.errors);
    void this.editor.relower(this.host.about.can_run);
  }

  private showTable(pressed: boolean): void {
    this.bar.setTable(pressed);
    this.canvas.hidden = pressed;
    this.nodes.table.el.hidden = !pressed;
    if (pressed) this.nodes.mark();
  }

  private reveal(rows: readonly number[]): void {
    this.showTable(false);
    this.graph.reveal(rows);
  }

  private key(event: KeyboardEvent): void {
    const { editor } = this;
    const target = event.target as HTMLElement;
    if (target.closest("input, textarea, select") || !editor.editable || event.altKey) return;
    const control = event.ctrlKey || event.metaKey;
    const letter = event.key.toLowerCase();
    const action = KEYS[letter];
    const tool = TOOLS.find((known) => known.key === letter);
    if (control && letter === "z") this.move(event.shiftKey ? "redo" : "undo");
    else if (control && letter === "y") this.move("redo");
    else if (control) return;
    else if (event.key === "Escape" && this.tools.name !== "select") this.useTool("select");
    else if (action && !editor.marked.length) this.say("Select nodes first");
    else if (action) void editor.apply(editor.request(action));
    else if (tool) this.useTool(tool.name);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Shows the partition of a method in an element, and edits it where a kernel answers. */
export async function mount(host: Host, el: HTMLElement, options: PartitionOptions = {}): Promise<PartitionHandle> {
  const method = options.method ?? host.about.method;
  const split = makeSplit("Graph and pane", 0.6);
  const canvas = h("div.wb-partition-graph");
  const frame = h("div.wb-frame.wb-partition", {}, h("div.wb-body", {}, split.el));
  split.first.append(canvas);
  el.append(frame);
  const graph = await mountGraph(host, canvas, { stage: "partitioned", method, chrome: false });
  return new PartitionView(host, { frame, split, canvas }, graph, method);
}

export default widget((host, el) => mount(host, el));
