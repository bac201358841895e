// The one selection of a family of lowerings. All stores of a family on one page share it at once, also while
// the kernel is busy; Python follows through the widget's trait.
import type { Picked } from "../contract.ts";

export interface SelectionStore {
  get(): Picked;
  set(picked: Picked): void;
  /** Calls back on every change; returns what ends it. */
  subscribe(listener: (picked: Picked) => void): () => void;
}

interface Family {
  picked: Picked;
  listeners: Set<(picked: Picked) => void>;
}

const KEY = Symbol.for("lowering-workbench.selection");
type Page = { [KEY]?: Map<string, Family> };

function family(name: string, method: string): Family {
  // Bundles of different views are different modules: what they share hangs at the page.
  const families = ((globalThis as Page)[KEY] ??= new Map());
  let known = families.get(name);
  if (!known) {
    known = { picked: { method, handles: [], node: null }, listeners: new Set() };
    families.set(name, known);
  }
  return known;
}

export function same(a: Picked, b: Picked): boolean {
  return (
    a.method === b.method &&
    a.node === b.node &&
    a.handles.length === b.handles.length &&
    a.handles.every((handle, index) => handle === b.handles[index])
  );
}

/** The store of a family. An empty name gives a store of its own. */
export function selectionOf(name: string, method: string): SelectionStore {
  const own: Family = name
    ? family(name, method)
    : { picked: { method, handles: [], node: null }, listeners: new Set() };
  return {
    get: () => own.picked,
    set(picked) {
      const handles = [...new Set(picked.handles)].sort((a, b) => a - b);
      const next = { ...picked, handles };
      if (same(own.picked, next)) return;
      own.picked = next;
      for (const listener of [...own.listeners]) listener(next);
    },
    subscribe(listener) {
      own.listeners.add(listener);
      return () => own.listeners.delete(listener);
    },
  };
}

/** Rows whose handles meet the selection, from columns in compressed form. */
export class HandleIndex {
  private readonly rows = new Map<number, number[]>();
  private readonly start: Int32Array;
  private readonly values: Int32Array;

  constructor(start: Int32Array, values: Int32Array) {
    this.start = start;
    this.values = values;
    for (let row = 0; row + 1 < start.length; row++) {
      for (let at = start[row]!; at < start[row + 1]!; at++) {
        const handle = values[at]!;
        const known = this.rows.get(handle);
        if (known) known.push(row);
        else this.rows.set(handle, [row]);
      }
    }
  }

  /** The handles of a row. */
  handles(row: number): number[] {
    return [...this.values.subarray(this.start[row] ?? 0, this.start[row + 1] ?? 0)];
  }

  /** The rows that have one of the handles, ascending. */
  find(handles: Iterable<number>): number[] {
    const found = new Set<number>();
    for (const handle of handles) for (const row of this.rows.get(handle) ?? []) found.add(row);
    return [...found].sort((a, b) => a - b);
  }
}
