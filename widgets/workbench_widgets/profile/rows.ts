// The table of the profile: a tree of groups, instructions and what runs inside of delegates.
import { h } from "../common/dom.ts";
import { Table, type TableColumn, type TableSort } from "../common/table.ts";
import { columnsOf, LineNumbers, searchText, type ColumnSet, type LineColumn } from "./columns.ts";
import { groupKeys, tree, visible, type Grouping, type Line } from "./groups.ts";
import type { ProfileModel } from "./model.ts";

export interface RowsOptions {
  /** Rows were picked, by a line of the table. */
  onPick(rows: readonly number[], extend: boolean): void;
}

export class RowsTable {
  readonly el: HTMLElement;
  private readonly table: Table;
  private readonly options: RowsOptions;
  private model: ProfileModel;
  private numbers: LineNumbers;
  private lines: Line[] = [];
  private all: Line[] = [];
  private ids = new Map<Line, number>();
  private shown: Line[] = [];
  private columns: LineColumn[] = [];
  private readonly open = new Set<string>();
  private grouping: Grouping = "none";
  private set: ColumnSet = "times";
  private scale = 0;
  private sums = new Map<Line, number>();
  private picked: readonly number[] = [];

  constructor(model: ProfileModel, options: RowsOptions) {
    this.model = model;
    this.options = options;
    this.numbers = new LineNumbers(model);
    this.build();
    this.table = new Table({
      label: "Profile",
      columns: this.tableColumns(),
      rows: this.all.length,
      sort: { column: "median", descending: true },
      rowHeight: 24,
      arrange: (sort, needle) => this.arrange(sort, needle),
      tree: (id) => {
        const line = this.all[id]!;
        return {
          level: line.depth + 1,
          expanded: line.children.length ? this.open.has(line.key) : null,
        };
      },
      onPick: (id, extend) => this.options.onPick(this.all[id]!.rows, extend),
      onOpen: (id) => this.toggle(this.all[id]!),
      onKey: (id, event) => this.key(this.all[id]!, event),
    });
    this.el = this.table.el;
    this.el.classList.add("wb-profile-table");
  }

  setModel(model: ProfileModel): void {
    this.model = model;
    this.numbers = new LineNumbers(model);
    this.rebuild();
  }

  setGrouping(grouping: Grouping): void {
    this.grouping = grouping;
    this.rebuild();
    if (grouping === "module") this.openFirst();
  }

  setColumns(set: ColumnSet): void {
    this.set = set;
    this.table.update({ columns: this.tableColumns() });
  }

  /** Shows what was measured meanwhile; `sort` puts the lines in order again. */
  refresh(sort: boolean): void {
    this.numbers.forget();
    if (sort) {
      this.table.update({ rows: this.all.length });
    } else {
      this.measure();
      this.table.refresh();
    }
  }

  /** Marks rows: their lines, or the closed group that hides them. */
  select(rows: readonly number[], reveal: boolean): void {
    this.picked = rows;
    const wanted = new Set(rows);
    const hit = this.shown.filter((line) => {
      if (line.row >= 0) return wanted.has(line.row);
      return !this.open.has(line.key) && line.rows.some((row) => wanted.has(row));
    });
    this.table.select(
      hit.map((line) => this.ids.get(line)!),
      reveal,
    );
  }

  /** Puts controls beside the filter. */
  addTools(...tools: Node[]): void {
    this.el.querySelector(".wb-table-filter")?.prepend(...tools);
  }

  openAll(open: boolean): void {
    if (open) for (const key of groupKeys(this.lines)) this.open.add(key);
    else this.open.clear();
    this.rearrange();
  }

  csv(): string {
    return this.table.csv();
  }

  destroy(): void {
    this.table.destroy();
  }

  private rebuild(): void {
    this.build();
    this.table.update({ columns: this.tableColumns(), rows: this.all.length });
    this.select(this.picked, false);
  }

  private build(): void {
    this.lines = tree(this.model, this.grouping);
    this.all = [];
    this.ids = new Map();
    const walk = (lines: readonly Line[]) => {
      for (const line of lines) {
        this.ids.set(line, this.all.length);
        this.all.push(line);
        walk(line.children);
      }
    };
    walk(this.lines);
    this.columns = columnsOf("all", this.context(), this.numbers);
  }

  private context() {
    return {
      model: this.model,
      scale: () => this.scale,
      cumulative: (line: Line) => this.sums.get(line) ?? NaN,
      name: (line: Line) => this.name(line),
    };
  }

  private tableColumns(): TableColumn[] {
    const line = (id: number) => this.all[id]!;
    return columnsOf(this.set, this.context(), this.numbers).map((column) => ({
      name: column.name,
      title: column.title,
      numeric: column.numeric,
      text: (id) => column.text(line(id)),
      value: column.value ? (id) => column.value!(line(id)) : undefined,
      cell: column.cell ? (id) => column.cell!(line(id)) : undefined,
      hint: column.hint ? (id) => column.hint!(line(id)) : undefined,
    }));
  }

  private arrange(sort: TableSort | null, needle: string): number[] {
    // The sum of shares follows the order that the share gives.
    const name = sort?.column === "cumulative" ? "share" : sort?.column;
    const column = this.columns.find((candidate) => candidate.name === name);
    const order =
      sort && column
        ? {
            value: (line: Line) => (column.value ? column.value(line) : column.text(line)),
            descending: sort.descending,
          }
        : null;
    const matches = needle ? (line: Line) => searchText(this.model, line).includes(needle) : null;
    this.shown = visible(this.lines, this.open, order, matches);
    this.measure();
    return this.shown.map((line) => this.ids.get(line)!);
  }

  /** The longest bar, and the running sums of shares. */
  private measure(): void {
    this.sums = new Map();
    let [sum, longest, widest] = [0, 0, 0];
    for (const line of this.shown) {
      const { time, share } = this.numbers.of(line);
      const high = line.row >= 0 ? this.model.times(line.row).p90 : time;
      if (time > longest) longest = time;
      if (high > widest) widest = high;
      if (line.depth === 0 && !Number.isNaN(share)) this.sums.set(line, (sum += share));
    }
    // One row with a wild spread must not make all bars short: its whisker is cut.
    this.scale = Math.max(longest, Math.min(widest, 1.5 * longest));
  }

  private name(line: Line): Node {
    const open = this.open.has(line.key);
    const sign = line.children.length
      ? h(
          "button.wb-profile-open",
          {
            type: "button",
            tabindex: -1,
            "aria-hidden": true,
            onclick: (event: MouseEvent) => {
              event.stopPropagation();
              this.toggle(line);
            },
          },
          open ? "▾" : "▸",
        )
      : h("span.wb-profile-open");
    const size = line.row < 0 ? h("span.wb-muted", {}, ` ${line.rows.length}`) : null;
    return h(
      "span.wb-profile-name",
      {
        style: `padding-left:${14 * line.depth}px`,
        "data-kind": line.row < 0 ? "group" : line.inside ? "inside" : "row",
      },
      sign,
      line.label,
      size,
    );
  }

  private toggle(line: Line): void {
    if (!line.children.length) return;
    if (!this.open.delete(line.key)) this.open.add(line.key);
    this.rearrange();
  }

  private rearrange(): void {
    this.table.update({ rows: this.all.length });
    this.select(this.picked, false);
  }

  /** Opens the modules that hold more than half of everything, so that the first look shows parts. */
  private openFirst(): void {
    const whole = this.lines.reduce((sum, line) => sum + this.weight(line), 0);
    const walk = (lines: readonly Line[]) => {
      for (const line of lines) {
        if (line.row >= 0 || this.weight(line) <= whole / 2) continue;
        this.open.add(line.key);
        walk(line.children);
      }
    };
    walk(this.lines);
    this.rearrange();
  }

  private weight(line: Line): number {
    return this.model.measured ? this.numbers.of(line).time || 0 : line.rows.length;
  }

  private key(line: Line, event: KeyboardEvent): boolean {
    const open = this.open.has(line.key);
    if (
      (event.key === "ArrowRight" && line.children.length && !open) ||
      (event.key === "ArrowLeft" && open)
    ) {
      this.toggle(line);
      return true;
    }
    return false;
  }
}
