// Which tensors are chosen, between the rows of a plan and the selection of all views.
import type { MemoryDocument } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { HandleIndex } from "../common/selection.ts";

export class Picks {
  private readonly host: Host;
  private readonly document: MemoryDocument;
  private readonly index: HandleIndex;
  private readonly names = new Map<string, number[]>();
  /** Inputs of a program from a file have no handle: they are chosen here only. */
  private local: number[] = [];
  private own = false;

  constructor(host: Host, document: MemoryDocument) {
    this.host = host;
    this.document = document;
    this.index = new HandleIndex(document.handle_start, document.handles);
    for (let row = 0; row < document.name.length; row++) {
      const name = document.name.get(row);
      const known = this.names.get(name);
      if (known) known.push(row);
      else this.names.set(name, [row]);
    }
  }

  /** Rows of a name; branches of control flow repeat names. */
  named(name: string): readonly number[] {
    return this.names.get(name) ?? [];
  }

  rows(): Set<number> {
    if (this.local.length) return new Set(this.local);
    const picked = this.host.selection.get();
    if (picked.method !== this.document.method) return new Set();
    // One node was picked: the tensor that it makes, if it is one of those that share its handles.
    const found = this.index.find(picked.handles);
    const named = picked.node ? this.named(picked.node).filter((row) => found.includes(row)) : [];
    return new Set(named.length ? named : found);
  }

  /** The one row that is chosen, or -1. */
  single(): number {
    const rows = this.rows();
    return rows.size === 1 ? [...rows][0]! : -1;
  }

  choose(rows: readonly number[]): void {
    const { document } = this;
    const handles = rows.flatMap((row) => this.index.handles(row));
    const node = rows.length === 1 ? document.name.get(rows[0]!) : null;
    this.own = true;
    this.host.selection.set({ method: document.method, handles, node });
    this.own = false;
    this.local = [...rows];
  }

  /** The instruction of a moment: its node, and what it makes. */
  chooseMoment(moment: number): void {
    const { method, moment_handles: handles, moment_handle_start: start } = this.document;
    const own = [...handles.subarray(start[moment]!, start[moment + 1]!)];
    this.host.selection.set({ method, handles: own, node: null });
  }

  /** The selection changed; whether another view did it. */
  changed(): boolean {
    if (this.own) return false;
    this.local = [];
    return true;
  }
}
