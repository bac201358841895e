// Where a file's bytes are, what it runs, what its delegates hold.
import "../common/theme.css";
import "./view.css";
import type { Picked, ProgramDocument, ProgramMethodDocument } from "../contract.ts";
import { h, on } from "../common/dom.ts";
import { clearError, showError } from "../common/errors.ts";
import { bytes, count } from "../common/format.ts";
import { matches, type Host } from "../common/host.ts";
import { put } from "../common/press.ts";
import { widget, type Mounted } from "../common/render.ts";
import { HandleIndex } from "../common/selection.ts";
import { makeSplit, type Split } from "../common/split.ts";
import { Table } from "../common/table.ts";
import { group, select, setOptions, spacer, toggle, toolbar } from "../common/toolbar.ts";
import { facts, makeTooltip, type Tooltip } from "../common/tooltip.ts";
import { aboutPart, legend, partDetails } from "./details.ts";
import { TreeMap } from "./map.ts";
import { partColumns } from "./panes.ts";
import { Tables, type Chosen, type Indices } from "./tables.ts";
import { leaves, treeOf, type Grouping } from "./tree.ts";
import type { TreeNode } from "./treemap.ts";

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
  private readonly tables: Tables;
  private readonly foot = h("div.wb-program-foot");
  private readonly methods;
  private readonly grouping;
  private readonly tableToggle;
  private readonly search: HTMLInputElement;
  private readonly map: TreeMap;
  private readonly tooltip: Tooltip;
  private readonly ends: (() => void)[] = [];
  private method: string;
  private document: ProgramDocument | null = null;
  private code: ProgramMethodDocument | null = null;
  private index: Indices | null = null;
  private parts: Table | null = null;
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
    this.tables = new Tables(host, (handles, extend, by) => this.pickHandles(handles, extend, by));
    this.split.second.append(this.tables.tabs, this.tables.pane);
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
    this.tables.destroy();
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
    this.drawMap();
    this.tables.show(document, code, this.index);
    this.light();
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
    if (node.kind === "delegate" && node.row >= 0)
      this.tables.openBlob(document.part_index[node.row]!);
  }

  private describe(node: TreeNode | null): void {
    const { document, code, index } = this;
    this.details.hidden = !node;
    if (!node || !document || !code || !index) return;
    const users = node.row >= 0 ? index.rows.find(index.parts.handles(node.row)) : [];
    put(
      this.details,
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
    this.tables.open("instructions");
    this.tables.pickRow(row, false);
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

  // ---- selection -------------------------------------------------------------------------------------------

  /** Something was chosen in a table; of a value also the constant that it is. */
  private pickHandles(handles: readonly number[], extend: boolean, by: Chosen): void {
    const { document } = this;
    if (!document) return;
    this.part =
      by.constant > 0
        ? document.part_index.findIndex(
            (item, row) => item === by.constant && document.part_kind.get(row) === "constant",
          )
        : -1;
    const known = extend ? this.host.selection.get().handles : [];
    this.choose([...known, ...handles], extend ? null : by.node, by.method);
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
    this.tables.light(picked);
    if (this.part < 0) this.describe(this.single(parts));
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
