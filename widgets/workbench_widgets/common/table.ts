// A table of any length: only the visible rows exist. Sorting, filtering, keyboard, and a selection that a view
// links with its picture.
import { h, throttled } from "./dom.ts";
import { put } from "./press.ts";

export interface TableColumn {
  readonly name: string;
  readonly title: string;
  readonly numeric?: boolean;
  /** What is shown. */
  text(row: number): string;
  /** What is sorted by; by default the text. NaN and null stand last. */
  value?(row: number): number | string | null;
  /** An element in place of the text, for example a bar. */
  cell?(row: number): Node;
  /** A longer text for the tooltip. */
  hint?(row: number): string;
}

export interface TableOptions {
  readonly label: string;
  readonly columns: readonly TableColumn[];
  readonly rows: number;
  readonly sort?: TableSort;
  /** A field to filter by text above the rows; true by default. */
  readonly filter?: boolean;
  readonly rowHeight?: number;
  /** A row was chosen by mouse or keyboard; `extend` with Shift or Ctrl. */
  onPick?(row: number, extend: boolean): void;
  /** Enter or a double click. */
  onOpen?(row: number): void;
  /** The rows to show and their order, where the view decides: a tree sorts among siblings. */
  arrange?(sort: TableSort | null, needle: string): number[];
  /** Of a tree: how deep a row stands (from 1), and whether it is open; null where nothing is inside. */
  tree?(row: number): { level: number; expanded: boolean | null };
  /** A key that the table has no use for; true if the view has. */
  onKey?(row: number, event: KeyboardEvent): boolean;
}

export interface TableSort {
  readonly column: string;
  readonly descending: boolean;
}

const OVERSCAN = 6;
const ENDS = ["pointerup", "pointercancel"] as const;
/** Pixels from which on a press is a drag. */
const DRAG = 4;

export class Table {
  readonly el: HTMLElement;
  private options: TableOptions;
  private order: number[] = [];
  private places = new Map<number, number>();
  private selected = new Set<number>();
  private cursor = -1;
  private sort: TableSort | null;
  private needle = "";
  private readonly scroll: HTMLElement;
  private readonly head: HTMLTableRowElement;
  private readonly body: HTMLTableSectionElement;
  private readonly grid: HTMLTableElement;
  private readonly status: HTMLElement;
  private readonly draw = throttled(() => this.paint());
  private readonly observer: ResizeObserver;
  /** The lines that stand in the document, by row: a line stays the same element as long as its row is shown. */
  private readonly lines = new Map<number, HTMLTableRowElement>();
  private readonly above = gap();
  private readonly below = gap();
  /** The row that is pressed, until its click. */
  private pressed = -1;

  constructor(options: TableOptions) {
    this.options = options;
    this.sort = options.sort ?? null;
    this.head = h("tr");
    this.body = h("tbody");
    this.status = h("span.wb-muted", { role: "status" });
    this.grid = h(
      "table",
      { role: options.tree ? "treegrid" : "grid", tabindex: 0, "aria-label": options.label, "aria-multiselectable": true, onkeydown: (event: KeyboardEvent) => this.key(event) },
      h("thead", {}, this.head),
      this.body,
    );
    this.scroll = h("div.wb-table-scroll", { onscroll: () => this.draw() }, this.grid);
    const field = h("input.wb-input", {
      type: "search",
      placeholder: "Filter rows",
      "aria-label": `Filter: ${options.label}`,
      oninput: () => {
        this.needle = field.value.toLowerCase();
        this.arrange();
      },
      onkeydown: (event: KeyboardEvent) => event.stopPropagation(),
    });
    const filter = options.filter === false ? null : h("div.wb-table-filter", {}, field, this.status);
    this.el = h("div.wb-table", {}, filter, this.scroll);
    this.body.addEventListener("pointerdown", (event) => this.press(event));
    this.body.addEventListener("click", (event) => this.rowOf(event) >= 0 && (this.pressed = -1), true);
    this.body.addEventListener("click", (event) => this.choose(this.rowOf(event), event));
    this.body.addEventListener("dblclick", (event) => {
      const row = this.rowOf(event);
      if (row >= 0) this.options.onOpen?.(row);
    });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.scroll);
    this.headings();
    this.arrange();
  }

  /** Other rows or columns; sort, filter and what is selected stay where they can. */
  update(changes: Partial<TableOptions>): void {
    this.options = { ...this.options, ...changes };
    if (changes.columns) this.headings();
    // What a cell's controls do may be meant for another row now, also where they look the same.
    for (const line of this.lines.values()) for (const cell of line.cells) cell.replaceChildren();
    this.arrange();
  }

  /** Marks rows, and shows the first of them if `reveal`. */
  select(rows: Iterable<number>, reveal = true): void {
    this.selected = new Set(rows);
    const places = [...this.selected].map((row) => this.places.get(row) ?? -1).filter((at) => at >= 0);
    // Not under a finger: what is pressed would be another row when it is released.
    if (reveal && places.length && this.pressed < 0) this.show(Math.min(...places));
    this.draw();
  }

  /** Shows other numbers in the same rows: lines stay where they are, also under the pointer. */
  refresh(): void {
    for (const [row, line] of this.lines) this.write(line, row);
  }

  /** The rows as they are shown: sorted and filtered. */
  shown(): readonly number[] {
    return this.order;
  }

  /** All columns of the shown rows as CSV. */
  csv(): string {
    const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const plain = (column: TableColumn, row: number) => {
      const value = column.value?.(row);
      return value === undefined || value === null ? column.text(row) : String(value);
    };
    const lines = [this.options.columns.map((column) => quote(column.title)).join(",")];
    for (const row of this.order) {
      lines.push(this.options.columns.map((column) => quote(plain(column, row))).join(","));
    }
    return lines.join("\n") + "\n";
  }

  destroy(): void {
    this.draw.cancel();
    this.observer.disconnect();
    this.el.remove();
  }

  private get height(): number {
    return this.options.rowHeight ?? 24;
  }

  private headings(): void {
    put(
      this.head,
      ...this.options.columns.map((column) => {
        const sorted = this.sort?.column === column.name ? this.sort : null;
        const arrow = sorted ? (sorted.descending ? " ▾" : " ▴") : "";
        return h(
          column.numeric ? "th.wb-number" : "th",
          { scope: "col", "aria-sort": sorted ? (sorted.descending ? "descending" : "ascending") : "none" },
          h("button", { type: "button", onclick: () => this.sortBy(column) }, column.title + arrow),
        );
      }),
    );
  }

  private sortBy(column: TableColumn): void {
    const same = this.sort?.column === column.name ? this.sort : null;
    const first = column.numeric ?? false; // numbers: the largest first
    if (!same) this.sort = { column: column.name, descending: first };
    else this.sort = same.descending === first ? { column: column.name, descending: !first } : null;
    this.headings();
    this.arrange();
  }

  private arrange(): void {
    const { columns, rows } = this.options;
    if (this.options.arrange) {
      this.take(this.options.arrange(this.sort, this.needle));
      return;
    }
    let order = Array.from({ length: rows }, (_, row) => row);
    if (this.needle) {
      order = order.filter((row) => columns.some((c) => c.text(row).toLowerCase().includes(this.needle)));
    }
    const sort = this.sort;
    const column = sort && columns.find((candidate) => candidate.name === sort.column);
    if (sort && column) {
      const keys = new Map(order.map((row) => [row, column.value ? column.value(row) : column.text(row)]));
      const missing = (key: unknown) => key === null || (typeof key === "number" && Number.isNaN(key));
      order.sort((a, b) => {
        const [left, right] = [keys.get(a) ?? null, keys.get(b) ?? null];
        if (missing(left) || missing(right)) return Number(missing(left)) - Number(missing(right)) || a - b;
        const less = left! < right! ? -1 : left! > right! ? 1 : 0;
        return (sort.descending ? -less : less) || a - b;
      });
    }
    this.take(order);
  }

  /** Shows rows in an order; the cursor stays on its row where that is still shown. */
  private take(order: number[]): void {
    const { rows } = this.options;
    const under = this.order[this.cursor];
    this.order = order;
    this.places = new Map(order.map((row, place) => [row, place]));
    this.cursor = under === undefined ? -1 : (this.places.get(under) ?? -1);
    this.status.textContent = this.needle ? `${order.length} of ${rows} rows` : `${rows} rows`;
    this.grid.setAttribute("aria-rowcount", String(order.length + 1));
    this.paint();
  }

  private paint(): void {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / this.height) - OVERSCAN);
    const room = Math.ceil((this.scroll.clientHeight || 400) / this.height) + 2 * OVERSCAN;
    const last = Math.min(this.order.length, first + room);
    const shown = this.order.slice(first, last);
    const kept = new Set(shown);
    for (const [row, line] of this.lines) {
      if (kept.has(row)) continue;
      line.remove();
      this.lines.delete(row);
    }
    const lines = shown.map((row, index) => this.line(row, first + index));
    const gaps = [this.leave(this.above, first), this.leave(this.below, this.order.length - last)];
    arrange(this.body, [...(first > 0 ? [gaps[0]!] : []), ...lines, ...(last < this.order.length ? [gaps[1]!] : [])]);
  }

  private leave(gap: HTMLTableRowElement, rows: number): HTMLTableRowElement {
    const cell = gap.cells[0]!;
    cell.colSpan = this.options.columns.length;
    cell.style.height = `${rows * this.height}px`;
    return gap;
  }

  private line(row: number, place: number): HTMLTableRowElement {
    let line = this.lines.get(row);
    if (!line) this.lines.set(row, (line = h("tr", { "data-row": row })));
    this.write(line, row);
    line.setAttribute("aria-rowindex", String(place + 2));
    line.setAttribute("aria-selected", String(this.selected.has(row)));
    const node = this.options.tree?.(row);
    mark(line, "aria-level", node ? node.level : null);
    mark(line, "aria-expanded", node?.expanded ?? null);
    line.classList.toggle("wb-cursor", place === this.cursor);
    return line;
  }

  /** Writes the cells of a line. What is as it was stays the same element: it may be about to be clicked. */
  private write(line: HTMLTableRowElement, row: number): void {
    const { columns } = this.options;
    while (line.cells.length > columns.length) line.lastElementChild!.remove();
    columns.forEach((column, index) => {
      const cell = line.cells[index] ?? line.appendChild(h("td"));
      const text = column.text(row);
      cell.classList.toggle("wb-number", column.numeric ?? false);
      cell.title = column.hint?.(row) ?? text;
      const made = column.cell?.(row) ?? text;
      const now = cell.firstChild;
      if (typeof made === "string") {
        if (now?.nodeType !== Node.TEXT_NODE || cell.textContent !== made) cell.textContent = made;
      } else if (!now?.isEqualNode(made)) {
        cell.replaceChildren(made);
      }
    });
  }

  /**
   * Remembers what was pressed until the click that the release brings is through. None comes where the rows moved or
   * were drawn anew meanwhile: then it is the pressed row that is meant.
   */
  private press(press: PointerEvent): void {
    if (press.button !== 0) return;
    this.pressed = this.rowOf(press);
    const up = (release: PointerEvent) => {
      for (const name of ENDS) window.removeEventListener(name, up, true);
      const still = Math.hypot(release.clientX - press.clientX, release.clientY - press.clientY) < DRAG;
      setTimeout(() => {
        const row = this.pressed;
        this.pressed = -1;
        if (release.type === "pointerup" && still) this.choose(row, release);
      });
    };
    for (const name of ENDS) window.addEventListener(name, up, true);
  }

  private rowOf(event: MouseEvent): number {
    const line = (event.target as HTMLElement).closest<HTMLElement>("tr[data-row]");
    return line ? Number(line.dataset.row) : -1;
  }

  private choose(row: number, event: MouseEvent): void {
    if (!this.places.has(row)) return;
    this.grid.focus({ preventScroll: true });
    this.cursor = this.places.get(row) ?? -1;
    this.options.onPick?.(row, event.shiftKey || event.ctrlKey || event.metaKey);
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / this.height) - 2);
    const last = this.order.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: this.cursor + 1,
      ArrowUp: this.cursor - 1,
      PageDown: this.cursor + page,
      PageUp: this.cursor - page,
      Home: 0,
      End: last,
    };
    if (event.target !== this.grid || event.altKey || last < 0) return;
    const target = targets[event.key];
    const row = this.order[this.cursor];
    if (target !== undefined) {
      this.cursor = Math.min(Math.max(target, 0), last);
      this.show(this.cursor);
      this.options.onPick?.(this.order[this.cursor]!, event.shiftKey);
    } else if (event.key === "Enter" && row !== undefined) {
      this.options.onOpen?.(row);
    } else if (row === undefined || !this.options.onKey?.(row, event)) {
      return;
    }
    this.draw();
    event.preventDefault();
    event.stopPropagation();
  }

  private show(place: number): void {
    const top = place * this.height;
    const room = this.scroll.clientHeight - 28; // below the headings
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + this.height > this.scroll.scrollTop + room) this.scroll.scrollTop = top + this.height - room;
  }
}

function gap(): HTMLTableRowElement {
  return h("tr", { "aria-hidden": true }, h("td", { style: "padding:0;border:0" }));
}

function mark(element: Element, name: string, value: number | boolean | null): void {
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, String(value));
}

/**
 * Makes these the children of an element, in this order, and leaves alone what already stands right: an element that
 * is taken out between press and release, even for a moment, is not clicked.
 */
function arrange(parent: Element, children: readonly Element[]): void {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}
