// The bar above the picture: what the plan is made with.
import type { MemoryChoices, MemoryDocument } from "../contract.ts";
import { h } from "../common/dom.ts";
import { bytes } from "../common/format.ts";
import {
  button,
  group,
  select,
  setOptions,
  spacer,
  toggle,
  toolbar,
  type Option,
} from "../common/toolbar.ts";
import { parseBytes } from "./draft.ts";

export interface Actions {
  method(name: string): void;
  arena(arena: number): void;
  planner(name: string): void;
  alignment(bytes: number): void;
  limit(bytes: number | null): void;
  undo(): void;
  redo(): void;
  apply(): void;
  reset(): void;
  copy(): void;
  fit(): void;
  table(on: boolean): void;
}

export interface ControlState {
  readonly methods: readonly string[];
  readonly document: MemoryDocument;
  readonly arenas: readonly number[];
  readonly arena: number;
  readonly choices: MemoryChoices;
  readonly live: boolean;
  readonly busy: boolean;
  readonly dirty: boolean;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
}

const ALIGNMENTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096];
const REPORT = "Needs a running notebook: a report shows the plan as it is.";

export class Controls {
  readonly el: HTMLElement;
  private readonly methods;
  private readonly arenas;
  private readonly planners;
  private readonly alignments;
  private readonly limit;
  private readonly undo;
  private readonly redo;
  private readonly apply;
  private readonly reset;
  private readonly copy;
  readonly table;

  constructor(actions: Actions) {
    this.methods = select("Method", [], "", actions.method);
    this.arenas = select("Arena", [], "", (value) => actions.arena(Number(value)));
    this.planners = select("Planner", [], "", actions.planner);
    this.alignments = select("Alignment of every offset, in bytes", [], "", (value) =>
      actions.alignment(Number(value)),
    );
    this.limit = h("input.wb-input.wb-memory-limit", {
      type: "text",
      placeholder: "no limit",
      "aria-label": "Limit of the arena in bytes",
      onchange: () => {
        const value = parseBytes(this.limit.value);
        this.limit.toggleAttribute("aria-invalid", Number.isNaN(value));
        if (Number.isNaN(value)) this.limit.setAttribute("aria-invalid", "true");
        else actions.limit(value);
      },
      onkeydown: (event: KeyboardEvent) => event.stopPropagation(),
    });
    this.undo = button("↶", "Undo (Ctrl+Z)", actions.undo);
    this.redo = button("↷", "Redo (Ctrl+Shift+Z)", actions.redo);
    this.apply = button("Plan again", "Plan again", actions.apply);
    this.reset = button("Discard", "Discard the changes", actions.reset);
    this.copy = button("Copy as Python", "Copy these choices as Python", actions.copy);
    this.table = toggle("Table", "The tensors as a table (T)", false, actions.table);
    this.el = toolbar(
      "Memory plan",
      this.methods,
      this.arenas,
      group("planner", this.planners),
      group("align", this.alignments),
      group("limit", this.limit),
      this.undo,
      this.redo,
      this.apply,
      this.reset,
      spacer(),
      this.copy,
      button("Fit", "Show all (0)", actions.fit),
      this.table,
    );
  }

  update(state: ControlState): void {
    const { document, choices, live } = state;
    const options = (items: readonly (string | number)[]): Option[] =>
      items.map((item) => ({ value: String(item), text: String(item) }));
    setOptions(this.methods, options(state.methods), document.method);
    this.methods.hidden = state.methods.length < 2;
    setOptions(
      this.arenas,
      state.arenas.map((item) => ({ value: String(item), text: `arena ${item}` })),
      String(state.arena),
    );
    this.arenas.hidden = state.arenas.length < 2;
    const unknown = document.choices.planner === "" ? [{ value: "", text: "as in the file" }] : [];
    setOptions(this.planners, [...unknown, ...options(document.planners)], choices.planner);
    setOptions(
      this.alignments,
      options([...new Set([...ALIGNMENTS, choices.alignment])].sort((a, b) => a - b)),
      String(choices.alignment),
    );
    const limit = choices.arena_limits[String(state.arena)];
    if (globalThis.document.activeElement !== this.limit)
      this.limit.value =
        limit === undefined
          ? ""
          : limit % 1024
            ? String(limit)
            : bytes(limit).replace(/\.0+ /, " ");
    if (limit !== undefined && parseBytes(this.limit.value) !== limit)
      this.limit.value = String(limit);
    for (const control of [this.planners, this.alignments, this.limit]) {
      control.disabled = !live;
      control.title = live ? (control.getAttribute("aria-label") ?? "") : REPORT;
    }
    this.undo.disabled = !live || !state.canUndo;
    this.redo.disabled = !live || !state.canRedo;
    const why = !live
      ? REPORT
      : !document.can_apply
        ? document.why_not
        : !state.dirty
          ? "Nothing was changed"
          : "";
    this.apply.disabled = why !== "" || state.busy;
    this.apply.title = why || "Make this plan: lowers again from here, in place";
    this.apply.textContent = state.busy ? "Planning…" : "Plan again";
    this.apply.classList.toggle("wb-primary", !this.apply.disabled);
    this.reset.hidden = !state.dirty;
    this.copy.disabled = !live;
    if (!live) this.copy.title = REPORT;
  }
}
