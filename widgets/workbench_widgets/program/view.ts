// Where a file's bytes are, what it runs, what its delegates hold.
import "../shared/theme.css";
import "./view.css";
import type { Picked, ProgramDocument, ProgramMethodDocument } from "../contract.ts";
import { h, on } from "../shared/dom.ts";
import { clearError, showError } from "../shared/errors.ts";
import { bytes, count } from "../shared/format.ts";
import { matches, type Host } from "../shared/host.ts";
import { widget, type Mounted } from "../shared/render.ts";
import { HandleIndex } from "../shared/selection.ts";
import { makeSplit, type Split } from "../shared/split.ts";
import { Table } from "../shared/table.ts";
import { group, select, setOptions, spacer, toggle, toolbar } from "../shared/toolbar.ts";
import { facts, makeTooltip, type Tooltip } from "../shared/tooltip.ts";
import { aboutPart, legend, partDetails } from "./details.ts";
import { Inside } from "./inside.ts";
import { TreeMap } from "./map.ts";
import {
  delegateColumns,
  instructionColumns,
  operatorColumns,
  partColumns,
  valueColumns,
} from "./panes.ts";
import { leaves, treeOf, type Grouping } from "./tree.ts";
import type { TreeNode } from "./treemap.ts";

const TABS = {
  instructions: "Instructions",
  values: "Values",
  operators: "Operators",
  delegates: "Delegates",
} as const;
type Tab = keyof typeof TABS;
const NARROW = 720;

export interface ProgramOptions {
  readonly stage?: string;
  readonly method?: string;
}

export interface ProgramHandle extends Mounted {
  setStage(stage: string, method?: string): Promise<void>;
}

class ProgramView implements ProgramHandle {
  private readonly host: Host;
  private readonly frame: HTMLElement;
  private readonly notes = h("div.wb-program-notes");
  private readonly split: Split = makeSplit("Map and tables", 0.52);
  private readonly details = h("div.wb-program-part", { role: "status", hidden: true });
  private readonly tabs = h("div.wb-program-tabs", { role: "tablist", "aria-label": "Tables" });
  private readonly pane = h("div.wb-program-pane", { role: "tabpanel" });
  private readonly foot = h("div.wb-program-foot");
  private readonly methods;
  private readonly grouping;
  private readonly tableToggle;
  private readonly search: HTMLInputElement;
  private readonly map: TreeMap;
  private readonly tooltip: Tooltip;
  private readonly ends: (() => void)[] = [];
  private method: string;
  private tab: Tab = "instructions";
  private document: ProgramDocument | null = null;
  private code: ProgramMethodDocument | null = null;
  private index: {
    parts: HandleIndex;
    rows: HandleIndex;
    operators: HandleIndex;
    delegates: HandleIndex;
  } | null = null;
  private table: Table | null = null;
  private parts: Table | null = null;
  private inside: Inside | null = null;
  /** The part that was picked here: what shares its handles lights up, but it is the one described. */
  private part = -1;
  private pickedHere = false;

  constructor(host: Host, el: HTMLElement, method: string) {
    this.host = host;
    this.method = method;
    this.methods = select("Method", [], method, (name) => void this.load(name));
    this.grouping = select(
      "What the map is grouped by",
      [
        { value: "file", text: "file" },
        { value: "module", text: "module" },
        { value: "operator", text: "operator" },
      ],
      "file",
      () => this.drawMap(),
    );
    this.search = h("input.wb-input.wb-program-search", {
      type: "search",
      placeholder: "Find parts",
      "aria-label": "Find parts of the file by name, type, module or operator",
      oninput: () => this.find(),
      onkeydown: (event: KeyboardEvent) => event.stopPropagation(),
    });
    this.tableToggle = toggle("Table", "The parts of the file as a table (T)", false, (shown) =>
      this.toggleParts(shown),
    );
    const bar = toolbar(
      "Program",
      this.methods,
      group("group by", this.grouping),
      this.search,
      spacer(),
      this.tableToggle,
    );
    this.frame = h(
      "div.wb-frame.wb-program",
      {},
      bar,
      this.notes,
      h("div.wb-body", {}, this.split.el),
      this.foot,
    );
    el.append(this.frame);
    this.tooltip = makeTooltip(this.frame);
    this.map = new TreeMap(this.split.first, {
      hover: (node, event) => this.hover(node, event),
      pick: (node, extend) => this.pickPart(node, extend),
    });
    this.split.first.append(this.details);
    this.split.second.append(this.tabs, this.pane);
    const observer = new ResizeObserver(() =>
      this.split.setStacked(this.frame.clientWidth < NARROW),
    );
    observer.observe(this.frame);
    this.ends.push(
      () => observer.disconnect(),
      host.selection.subscribe((picked) => this.selected(picked)),
      host.onChange((kinds) => {
        if (matches(kinds, "program") || matches(kinds, "program_method"))
          void this.load(this.method);
      }),
      on(this.frame, "keydown", (event) => {
        if (
          event.key !== "t" ||
          event.ctrlKey ||
          event.metaKey ||
          event.target instanceof HTMLInputElement
        )
          return;
        this.tableToggle.click();
        event.stopPropagation();
      }),
    );
  }

  async load(method: string): Promise<void> {
    this.method = method;
    try {
      const [document, code] = await Promise.all([
        this.host.document("program", ""),
        this.host.document("program_method", method),
      ]);
      if (this.method !== method) return;
      this.take(document, code);
      clearError(this.notes);
    } catch (error) {
      showError(this.notes, error);
    }
  }

  async setStage(_: string, method?: string): Promise<void> {
    if (method !== undefined && method !== this.method) await this.load(method);
  }

  destroy(): void {
    for (const end of this.ends) end();
    this.closeInside();
    this.table?.destroy();
    this.parts?.destroy();
    this.map.destroy();
    this.split.destroy();
    this.tooltip.destroy();
    this.frame.remove();
  }

  private take(document: ProgramDocument, code: ProgramMethodDocument): void {
    if (this.document !== document) this.part = -1;
    this.document = document;
    this.code = code;
    this.index = {
      parts: new HandleIndex(document.part_handle_start, document.part_handles),
      rows: new HandleIndex(code.handle_start, code.handles),
      operators: new HandleIndex(document.operator_handle_start, document.operator_handles),
      delegates: new HandleIndex(document.delegate_handle_start, document.delegate_handles),
    };
    setOptions(
      this.methods,
      document.methods.map((item) => ({ value: item.name, text: item.name })),
      code.method,
    );
    this.methods.hidden = document.methods.length < 2;
    this.drawTabs();
    this.drawMap();
    this.openTab(this.tab);
    this.footer();
  }

  // ---- the map ---------------------------------------------------------------------------------------------

  private drawMap(): void {
    const document = this.document;
    if (!document) return;
    this.map.show(
      treeOf(document, this.grouping.value as Grouping),
      (row) => row >= 0 && document.part_same[row]! >= 0,
    );
    this.parts?.update({ columns: partColumns(document), rows: document.part_name.length });
    this.find();
    this.light();
  }

  private find(): void {
    const { document } = this;
    const needle = this.search.value.trim().toLowerCase();
    if (!document || !needle) {
      this.map.filter(null);
      this.footer();
      return;
    }
    const columns = [
      document.part_name,
      document.part_kind,
      document.part_detail,
      document.part_operator,
      document.part_module,
    ];
    const found = new Set<number>();
    let size = 0;
    const parents = new Set(document.part_parent);
    for (let row = 0; row < document.part_name.length; row++) {
      if (
        parents.has(row) ||
        !columns.some((column) => column.get(row).toLowerCase().includes(needle))
      )
        continue;
      found.add(row);
      size += document.part_bytes[row]!;
    }
    this.map.filter(found);
    this.footer(`${count(found.size)} parts found, ${bytes(size)}`);
  }

  private hover(node: TreeNode | null, event: PointerEvent | null): void {
    if (!node || !event || !this.document) {
      this.tooltip.hide();
      return;
    }
    this.tooltip.show(
      event.clientX,
      event.clientY,
      h("div", {}, h("strong", {}, node.name), facts(aboutPart(this.document, node))),
    );
  }

  private pickPart(node: TreeNode, extend: boolean): void {
    const { document, index } = this;
    if (!document || !index) return;
    const rows =
      node.row >= 0 && !node.children.length ? [node.row] : leaves(node).map((leaf) => leaf.row);
    this.part = node.row;
    this.describe(node);
    const handles = rows.flatMap((row) => index.parts.handles(row));
    this.choose(extend ? [...this.host.selection.get().handles, ...handles] : handles, null);
    if (node.kind === "delegate" && node.row >= 0) this.openBlob(document.part_index[node.row]!);
  }

  private describe(node: TreeNode | null): void {
    const { document, code, index } = this;
    this.details.hidden = !node;
    if (!node || !document || !code || !index) return;
    const users = node.row >= 0 ? index.rows.find(index.parts.handles(node.row)) : [];
    this.details.replaceChildren(
      ...partDetails(
        document,
        code,
        node,
        users,
        (row) => this.goPart(row),
        (row) => this.goInstruction(row),
      ),
    );
  }

  private goPart(row: number): void {
    const document = this.document;
    if (!document) return;
    const node = leaves(treeOf(document, "file")).find((item) => item.row === row);
    if (node) this.pickPart(node, false);
  }

  private goInstruction(row: number): void {
    this.openTab("instructions");
    this.pickRow(row, false);
  }

  private toggleParts(shown: boolean): void {
    this.parts?.destroy();
    this.parts = null;
    this.map.el.hidden = shown;
    const document = this.document;
    if (!shown || !document) return;
    this.parts = new Table({
      label: "Parts of the file",
      columns: partColumns(document),
      rows: document.part_name.length,
      sort: { column: "bytes", descending: true },
      onPick: (row, extend) => {
        const node = {
          name: document.part_name.get(row),
          kind: document.part_kind.get(row),
          bytes: document.part_bytes[row]!,
          row,
          children: [],
          parent: null,
        };
        this.pickPart(node, extend);
      },
    });
    this.split.first.prepend(this.parts.el);
    this.light();
  }

  // ---- the tables ------------------------------------------------------------------------------------------

  private drawTabs(): void {
    const document = this.document!;
    const counts: Record<Tab, number> = {
      instructions: this.code!.name.length,
      values: this.code!.value_kind.length,
      operators: document.operator_name.length,
      delegates: document.delegate_backend.length,
    };
    const names = Object.keys(TABS) as Tab[];
    this.tabs.replaceChildren(
      ...names.map((name) =>
        h(
          "button.wb-button",
          {
            type: "button",
            role: "tab",
            "aria-selected": String(name === this.tab),
            tabindex: name === this.tab ? 0 : -1,
            disabled: counts[name] === 0,
            onclick: () => this.openTab(name),
            onkeydown: (event: KeyboardEvent) => {
              const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
              if (!by) return;
              const open = names.filter((item) => counts[item] > 0);
              const next = open[(open.indexOf(name) + by + open.length) % open.length]!;
              this.openTab(next);
              this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
              event.preventDefault();
              event.stopPropagation();
            },
          },
          `${TABS[name]} ${count(counts[name])}`,
        ),
      ),
    );
  }

  private openTab(tab: Tab): void {
    const { document, code } = this;
    if (!document || !code) return;
    this.tab = tab;
    this.closeInside();
    this.table?.destroy();
    const made: Record<Tab, () => Table> = {
      instructions: () =>
        new Table({
          label: `Instructions of ${code.method}`,
          columns: instructionColumns(code),
          rows: code.name.length,
          onPick: (row, extend) => this.pickRow(row, extend),
          onOpen: (row) => this.openDelegateOf(row),
        }),
      values: () =>
        new Table({
          label: `Values of ${code.method}`,
          columns: valueColumns(code),
          rows: code.value_kind.length,
          onPick: (row, extend) => this.pickValue(row, extend),
        }),
      operators: () =>
        new Table({
          label: "Operators",
          columns: operatorColumns(document),
          rows: document.operator_name.length,
          onPick: (row, extend) =>
            this.pickHandles(
              this.index!.operators.handles(row),
              extend,
              document.operator_method.get(row),
            ),
        }),
      delegates: () =>
        new Table({
          label: "Delegates",
          columns: delegateColumns(document),
          rows: document.delegate_backend.length,
          onPick: (row, extend) => {
            this.pickHandles(
              this.index!.delegates.handles(row),
              extend,
              document.delegate_method.get(row),
            );
            this.openDelegate(row);
          },
        }),
    };
    this.table = made[tab]();
    this.pane.replaceChildren(this.table.el);
    this.drawTabs();
    this.light();
  }

  private pickRow(row: number, extend: boolean): void {
    const node = this.code!.node.get(row);
    this.part = -1;
    this.pickHandles(
      this.index!.rows.handles(row),
      extend,
      this.method,
      extend ? null : node || null,
    );
    this.table?.select([row]);
    if (this.code!.delegate[row]! >= 0 && this.inside) this.openDelegateOf(row);
  }

  private pickValue(row: number, extend: boolean): void {
    const code = this.code!;
    const uses = [...code.uses.subarray(code.use_start[row]!, code.use_start[row + 1]!)];
    this.part = code.value_part[row]! > 0 ? this.partOf("constant", code.value_part[row]!) : -1;
    this.pickHandles(
      uses.flatMap((use) => this.index!.rows.handles(use)),
      extend,
      this.method,
    );
    this.table?.select([row], false);
  }

  private partOf(kind: string, number: number): number {
    const document = this.document!;
    return document.part_index.findIndex(
      (item, row) => item === number && document.part_kind.get(row) === kind,
    );
  }

  private openBlob(number: number): void {
    const row = this.document!.delegate_data.indexOf(number);
    if (row < 0) return;
    if (this.tab !== "delegates") this.openTab("delegates");
    this.table?.select([row]);
    this.openDelegate(row);
  }

  private openDelegateOf(row: number): void {
    const document = this.document!;
    const number = this.code!.delegate[row]!;
    const at = document.delegate_index.findIndex(
      (item, other) => item === number && document.delegate_method.get(other) === this.method,
    );
    if (number < 0 || at < 0) return;
    if (this.tab !== "delegates") this.openTab("delegates");
    this.table?.select([at]);
    this.openDelegate(at);
  }

  private openDelegate(row: number): void {
    const document = this.document!;
    const key = `${document.delegate_method.get(row)}/${document.delegate_index[row]}`;
    if (this.inside?.key === key) return;
    this.closeInside();
    this.inside = new Inside(key);
    this.pane.append(this.inside.el);
    void this.inside.open(this.host, (handles, extend, method, node) =>
      this.pickHandles(handles, extend, method, node),
    );
  }

  private closeInside(): void {
    this.inside?.destroy();
    this.inside = null;
  }

  // ---- selection -------------------------------------------------------------------------------------------

  private pickHandles(
    handles: readonly number[],
    extend: boolean,
    method: string,
    node: string | null = null,
  ): void {
    const known = extend ? this.host.selection.get().handles : [];
    this.choose([...known, ...handles], node, method);
  }

  private choose(handles: readonly number[], node: string | null, method = this.method): void {
    this.pickedHere = true;
    this.host.selection.set({ method, handles, node });
    this.pickedHere = false;
    this.light();
  }

  private selected(_: Picked): void {
    if (this.pickedHere) return;
    this.part = -1;
    this.light();
  }

  /** Marks in the map and in the tables what the selection meets. */
  private light(): void {
    const { document, index, code } = this;
    if (!document || !index || !code) return;
    const picked = this.host.selection.get();
    const parts = new Set(picked.method === this.method ? index.parts.find(picked.handles) : []);
    // Sections of a blob light up with it, and the part that was picked even if nothing uses it.
    if (this.part >= 0) parts.add(this.part);
    this.map.select(parts);
    this.parts?.select(parts, !this.pickedHere);
    const own = picked.method === this.method;
    const rows: Record<Tab, number[]> = {
      instructions: own ? index.rows.find(picked.handles) : [],
      values: this.valuesOf(own ? index.rows.find(picked.handles) : []),
      operators: index.operators
        .find(picked.handles)
        .filter((row) => document.operator_method.get(row) === picked.method),
      delegates: index.delegates
        .find(picked.handles)
        .filter((row) => document.delegate_method.get(row) === picked.method),
    };
    this.table?.select(rows[this.tab]);
    this.inside?.light(own ? picked.handles : []);
    if (this.part < 0) this.describe(this.single(parts));
  }

  /** Values that the chosen instructions name. */
  private valuesOf(rows: readonly number[]): number[] {
    const code = this.code!;
    if (this.tab !== "values" || !rows.length) return [];
    const wanted = new Set(rows);
    const found: number[] = [];
    for (let value = 0; value < code.value_kind.length; value++) {
      for (let at = code.use_start[value]!; at < code.use_start[value + 1]!; at++) {
        if (wanted.has(code.uses[at]!) && code.value_kind.get(value) === "Tensor") {
          found.push(value);
          break;
        }
      }
    }
    return found;
  }

  private single(parts: ReadonlySet<number>): TreeNode | null {
    const document = this.document!;
    const data = [...parts].filter((row) => document.part_kind.get(row) !== "section");
    if (data.length !== 1) return null;
    const row = data[0]!;
    return {
      name: document.part_name.get(row),
      kind: document.part_kind.get(row),
      bytes: document.part_bytes[row]!,
      row,
      children: [],
      parent: null,
    };
  }

  private footer(found = ""): void {
    const document = this.document;
    if (!document) return;
    this.foot.replaceChildren(...legend(document, found));
  }
}

export async function mount(
  host: Host,
  el: HTMLElement,
  options: ProgramOptions = {},
): Promise<ProgramHandle> {
  const view = new ProgramView(host, el, options.method ?? host.about.method);
  await view.load(options.method ?? host.about.method);
  return view;
}

export default widget((host, el) => mount(host, el));
