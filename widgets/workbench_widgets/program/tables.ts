// The tables beside the map, one at a time: instructions, values, operators, delegates.
import type { Picked, ProgramDocument, ProgramMethodDocument } from "../contract.ts";
import { h } from "../common/dom.ts";
import { count } from "../common/format.ts";
import type { Host } from "../common/host.ts";
import { put } from "../common/press.ts";
import type { HandleIndex } from "../common/selection.ts";
import { Table } from "../common/table.ts";
import { Inside } from "./inside.ts";
import { delegateColumns, instructionColumns, operatorColumns, valueColumns } from "./panes.ts";

const TABS = {
  instructions: "Instructions",
  values: "Values",
  operators: "Operators",
  delegates: "Delegates",
} as const;
export type Tab = keyof typeof TABS;
const NAMES = Object.keys(TABS) as Tab[];

/** Which rows have which handles. */
export interface Indices {
  readonly parts: HandleIndex;
  readonly rows: HandleIndex;
  readonly operators: HandleIndex;
  readonly delegates: HandleIndex;
}

/** What a choice in a table stands for. */
export interface Chosen {
  readonly method: string;
  readonly node: string | null;
  /** Number of the constant that a chosen value is, or 0. */
  readonly constant: number;
}

type Pick = (handles: readonly number[], extend: boolean, by: Chosen) => void;

export class Tables {
  readonly tabs = h("div.wb-program-tabs", { role: "tablist", "aria-label": "Tables" });
  readonly pane = h("div.wb-program-pane", { role: "tabpanel" });
  private readonly host: Host;
  private readonly pick: Pick;
  private tab: Tab = "instructions";
  private table: Table | null = null;
  private inside: Inside | null = null;
  private shown: { document: ProgramDocument; code: ProgramMethodDocument; index: Indices } | null =
    null;

  constructor(host: Host, pick: Pick) {
    this.host = host;
    this.pick = pick;
  }

  show(document: ProgramDocument, code: ProgramMethodDocument, index: Indices): void {
    this.shown = { document, code, index };
    this.open(this.tab);
  }

  open(tab: Tab): void {
    if (!this.shown) return;
    this.tab = tab;
    this.close();
    this.table?.destroy();
    this.table = this.made(tab);
    this.pane.replaceChildren(this.table.el);
    this.drawTabs();
    this.light(this.host.selection.get());
  }

  /** Marks what a selection meets. */
  light(picked: Picked): void {
    if (!this.shown) return;
    const { document, code, index } = this.shown;
    const own = picked.method === code.method;
    const rows = own ? index.rows.find(picked.handles) : [];
    const found: Record<Tab, () => number[]> = {
      instructions: () => rows,
      values: () => valuesOf(code, rows),
      operators: () =>
        index.operators
          .find(picked.handles)
          .filter((row) => document.operator_method.get(row) === picked.method),
      delegates: () =>
        index.delegates
          .find(picked.handles)
          .filter((row) => document.delegate_method.get(row) === picked.method),
    };
    this.table?.select(found[this.tab]());
    this.inside?.light(own ? picked.handles : []);
  }

  pickRow(row: number, extend: boolean): void {
    const { code, index } = this.shown!;
    const node = code.node.get(row) || null;
    this.pick(index.rows.handles(row), extend, { method: code.method, node, constant: 0 });
    this.table?.select([row]);
    if (code.delegate[row]! >= 0 && this.inside) this.openDelegateOf(row);
  }

  /** Opens the first delegate whose blob this is. */
  openBlob(number: number): void {
    const row = this.shown!.document.delegate_data.indexOf(number);
    if (row >= 0) this.openRow(row);
  }

  destroy(): void {
    this.close();
    this.table?.destroy();
  }

  private made(tab: Tab): Table {
    const { document, code, index } = this.shown!;
    const none = { node: null, constant: 0 };
    switch (tab) {
      case "instructions":
        return new Table({
          label: `Instructions of ${code.method}`,
          columns: instructionColumns(code),
          rows: code.name.length,
          onPick: (row, extend) => this.pickRow(row, extend),
          onOpen: (row) => this.openDelegateOf(row),
        });
      case "values":
        return new Table({
          label: `Values of ${code.method}`,
          columns: valueColumns(code),
          rows: code.value_kind.length,
          onPick: (row, extend) => this.pickValue(row, extend),
        });
      case "operators":
        return new Table({
          label: "Operators",
          columns: operatorColumns(document),
          rows: document.operator_name.length,
          onPick: (row, extend) =>
            this.pick(index.operators.handles(row), extend, {
              ...none,
              method: document.operator_method.get(row),
            }),
        });
      case "delegates":
        return new Table({
          label: "Delegates",
          columns: delegateColumns(document),
          rows: document.delegate_backend.length,
          onPick: (row, extend) => {
            const method = document.delegate_method.get(row);
            this.pick(index.delegates.handles(row), extend, { ...none, method });
            this.openDelegate(row);
          },
        });
    }
  }

  private drawTabs(): void {
    const { document, code } = this.shown!;
    const counts: Record<Tab, number> = {
      instructions: code.name.length,
      values: code.value_kind.length,
      operators: document.operator_name.length,
      delegates: document.delegate_backend.length,
    };
    const walk = (event: KeyboardEvent, name: Tab) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!by) return;
      const open = NAMES.filter((item) => counts[item] > 0);
      this.open(open[(open.indexOf(name) + by + open.length) % open.length]!);
      this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      event.preventDefault();
      event.stopPropagation();
    };
    put(
      this.tabs,
      ...NAMES.map((name) =>
        h(
          "button.wb-button",
          {
            type: "button",
            role: "tab",
            "aria-selected": String(name === this.tab),
            tabindex: name === this.tab ? 0 : -1,
            disabled: counts[name] === 0,
            onclick: () => this.open(name),
            onkeydown: (event: KeyboardEvent) => walk(event, name),
          },
          `${TABS[name]} ${count(counts[name])}`,
        ),
      ),
    );
  }

  private pickValue(row: number, extend: boolean): void {
    const { code, index } = this.shown!;
    const uses = [...code.uses.subarray(code.use_start[row]!, code.use_start[row + 1]!)];
    const handles = uses.flatMap((use) => index.rows.handles(use));
    const constant = Math.max(code.value_part[row]!, 0);
    this.pick(handles, extend, { method: code.method, node: null, constant });
    this.table?.select([row], false);
  }

  private openDelegateOf(row: number): void {
    const { document, code } = this.shown!;
    const number = code.delegate[row]!;
    const at = document.delegate_index.findIndex(
      (item, other) => item === number && document.delegate_method.get(other) === code.method,
    );
    if (number >= 0 && at >= 0) this.openRow(at);
  }

  private openRow(row: number): void {
    if (this.tab !== "delegates") this.open("delegates");
    this.table?.select([row]);
    this.openDelegate(row);
  }

  private openDelegate(row: number): void {
    const { document } = this.shown!;
    const key = `${document.delegate_method.get(row)}/${document.delegate_index[row]}`;
    if (this.inside?.key === key) return;
    this.close();
    this.inside = new Inside(key);
    this.pane.append(this.inside.el);
    void this.inside.open(this.host, (handles, extend, method, node) =>
      this.pick(handles, extend, { method, node, constant: 0 }),
    );
  }

  private close(): void {
    this.inside?.destroy();
    this.inside = null;
  }
}

/** Tensors that the chosen instructions name. */
function valuesOf(code: ProgramMethodDocument, rows: readonly number[]): number[] {
  const wanted = new Set(rows);
  const found: number[] = [];
  for (let value = 0; wanted.size && value < code.value_kind.length; value++) {
    if (code.value_kind.get(value) !== "Tensor") continue;
    const uses = code.uses.subarray(code.use_start[value]!, code.use_start[value + 1]!);
    if (uses.some((use) => wanted.has(use))) found.push(value);
  }
  return found;
}
