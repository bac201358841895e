// The shared selection, in the graph: what is lit, what a click selects, and what is opened to show
// it.
import type { Picked } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { HandleIndex } from "../common/selection.ts";
import type { GraphCore } from "./core.ts";
import type { PictureBox } from "./picture.ts";

export class GraphSelection {
  /** Selected nodes of the graph that is shown, ascending. */
  nodes: readonly number[] = [];
  private readonly host: Host;
  private readonly core: GraphCore;
  private readonly listeners = new Set<(own: boolean) => void>();
  private readonly end: () => void;
  private method: string;
  private index: HandleIndex | null = null;
  private lit = new Map<number, 1 | 2>();
  private own = false;

  constructor(host: Host, core: GraphCore, method: string) {
    this.host = host;
    this.core = core;
    this.method = method;
    this.end = host.selection.subscribe((picked) => this.take(picked, !this.own));
    core.selected = (box) => this.lit.get(box.item) ?? 0;
  }

  destroy(): void {
    this.end();
    this.listeners.clear();
  }

  /** Calls back after the selection changed; tells whether it was changed here. */
  onChange(listener: (own: boolean) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** A new graph is shown. */
  show(method: string): void {
    this.method = method;
    const document = this.core.model?.document;
    this.index = document ? new HandleIndex(document.handle_start, document.handles) : null;
    this.take(this.host.selection.get(), false);
  }

  /** Selects what a box stands for; with `extend` adds or removes it. */
  pick(box: PictureBox | null, extend: boolean): void {
    const members = box ? [...box.members()] : [];
    const single = box?.kind === "node" ? box.index : null;
    this.pickNodes(members, extend, single);
  }

  pickNodes(nodes: readonly number[], extend: boolean, single: number | null = null): void {
    const { index } = this;
    const document = this.core.model?.document;
    if (!index || !document) return;
    const wanted = single === null ? nodes : [single];
    let handles = wanted.flatMap((node) => index.handles(node));
    const before = this.host.selection.get();
    if (extend && before.method === this.method) {
      const known = new Set(before.handles);
      const all = handles.length > 0 && handles.every((handle) => known.has(handle));
      handles = all
        ? before.handles.filter((handle) => !handles.includes(handle))
        : [...known, ...handles];
    } else if (extend && !handles.length) {
      return;
    }
    const node = !extend && wanted.length === 1 ? document.name.get(wanted[0]!) : null;
    this.own = true;
    this.host.selection.set({ method: this.method, handles, node });
    this.own = false;
  }

  /** Whether a node is among the selected. */
  has(node: number): boolean {
    return this.chosen.has(node);
  }
  private chosen = new Set<number>();

  private take(picked: Picked, reveal: boolean): void {
    const { model } = this.core;
    if (!this.index || !model) return;
    let found = picked.method === this.method ? this.index.find(picked.handles) : [];
    if (picked.node !== null && found.length > 1) {
      // Of several nodes with these handles the one that was meant.
      const named = found.filter((node) => model.document.name.get(node) === picked.node);
      if (named.length) found = named;
    }
    this.nodes = found;
    this.chosen = new Set(found);
    this.lit = new Map();
    const whole = new Map<number, number>();
    for (const node of found) {
      const home = model.home[node]!;
      if (!model.isDrawn(home)) continue;
      this.lit.set(home, 2);
      for (const item of model.ancestors(home)) whole.set(item, (whole.get(item) ?? 0) + 1);
    }
    const { handle_start: start } = model.document;
    for (const [item, count] of whole) {
      const all = model
        .members(item)
        .reduce((sum, node) => sum + (start[node + 1]! > start[node]! ? 1 : 0), 0);
      this.lit.set(item, count === all ? 2 : 1);
    }
    if (reveal && found.length) this.bring(found);
    this.core.redraw();
    for (const listener of [...this.listeners]) listener(this.own);
  }

  /** Shows what was selected elsewhere; of very many only the boxes that hold them. */
  private bring(nodes: readonly number[]): void {
    const few = nodes.length <= 24;
    const { core } = this;
    if (few) core.reveal(nodes);
    else if (core.picture) core.center([core.picture.boxOf(nodes[0]!)]);
  }
}
