// The toolbar: method, tools, undo and redo, the table, lowering again.
import type { Host } from "../common/host.ts";
import { button, group, select, spacer, toggle, toolbar } from "../common/toolbar.ts";
import type { GraphHandle } from "../graph/scene.ts";
import type { PartitionEditor } from "./editor.ts";
import { TOOLS, type ToolName } from "./tools.ts";

export interface BarEvents {
  useTool(name: ToolName): void;
  move(what: "undo" | "redo"): void;
  run(): void;
  showTable(pressed: boolean): void;
  setMethod(name: string): void;
}

export class Bar {
  readonly el: HTMLElement;
  private readonly host: Host;
  private readonly editor: PartitionEditor;
  private readonly tools = new Map<ToolName, HTMLButtonElement>();
  private readonly undo: HTMLButtonElement;
  private readonly redo: HTMLButtonElement;
  private readonly run: HTMLButtonElement;
  private readonly table: HTMLButtonElement;
  private readonly methods: HTMLSelectElement;
  /** What is of no use where nothing can be edited. */
  private readonly editing: readonly HTMLElement[];

  constructor(host: Host, editor: PartitionEditor, search: GraphHandle["search"], events: BarEvents) {
    this.host = host;
    this.editor = editor;
    for (const tool of TOOLS) {
      const made = button(tool.text, `${tool.title} (${tool.key})`, () => events.useTool(tool.name));
      made.dataset.tool = tool.name;
      this.tools.set(tool.name, made);
    }
    this.setTool("select");
    this.undo = button("↶", "Undo", () => events.move("undo"));
    this.redo = button("↷", "Redo", () => events.move("redo"));
    this.run = button("Re-lower and run", "Write the edits to the recipe, lower in place, run before and after", () => events.run());
    this.run.classList.add("wb-primary");
    this.table = toggle("Table", "All operators as a table", false, (pressed) => events.showTable(pressed));
    const names = host.about.methods.map((name) => ({ value: name, text: name }));
    this.methods = select("Method", names, editor.method, (name) => events.setMethod(name));
    this.methods.hidden = names.length < 2;
    this.editing = [group("Tool", ...this.tools.values()), this.undo, this.redo];
    this.el = toolbar("Partition", this.methods, ...this.editing, search.el, search.problem, spacer(), this.table, this.run);
  }

  setTool(name: ToolName): void {
    for (const [known, made] of this.tools) made.setAttribute("aria-pressed", String(known === name));
  }

  setTable(pressed: boolean): void {
    this.table.setAttribute("aria-pressed", String(pressed));
  }

  setMethod(name: string): void {
    this.methods.value = name;
  }

  update(): void {
    const { editor, host, undo, redo, run } = this;
    const { state } = editor;
    if (!state) return;
    for (const part of this.editing) part.hidden = !editor.editable;
    undo.disabled = !state.undo;
    undo.title = state.undo ? `Undo: ${state.undo} (Ctrl+Z)` : "Nothing to undo";
    redo.disabled = !state.redo;
    redo.title = state.redo ? `Redo: ${state.redo} (Ctrl+Shift+Z)` : "Nothing to redo";
    run.hidden = !host.live;
    run.disabled = !editor.editable || editor.busy !== "";
    run.textContent = state.waiting ? `Re-lower and run (${state.waiting})` : "Re-lower and run";
  }
}
