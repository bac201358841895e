// The tree that is drawn: of the document's containers those that say something, with stacks of
// equal modules.
//
// Items are numbered through: nodes, then the document's containers, then stacks ("folds"). A
// container with one
// part only is not drawn: a module of one node is that node, a module of one module is that module,
// named after
// both. Constants are drawn only when asked for; otherwise each stands for its first user.
import type { GraphDocument } from "../contract.ts";
import { lift } from "./edges.ts";
import { findFolds, topologicalOrder } from "./order.ts";

export const HIDDEN_KINDS: ReadonlySet<string> = new Set([
  "parameter",
  "buffer",
  "constant",
  "attribute",
]);

export interface ModelOptions {
  /** Draw weights and other constants as boxes. */
  readonly constants?: boolean;
}

export class GraphModel {
  readonly document: GraphDocument;
  readonly nodes: number;
  readonly modules: number;
  /** Per item the container item that holds it; -1 for the root and for what is not drawn. */
  parent: Int32Array;
  /** Per item how far from the root. */
  depth: Int32Array = new Int32Array(0);
  /** Per container item its parts, in topological order. */
  readonly parts: (readonly number[])[];
  /** Per node the node that it is drawn as: itself, or the first user of a constant. */
  readonly home: Int32Array;
  /** Titles of modules that stand for several. */
  private readonly titles = new Map<number, string>();
  /** First item of each fold, by fold. */
  private readonly folds: (readonly number[])[] = [];
  /** Edges that are drawn, as indices into the document's. */
  readonly edges: Int32Array;
  private readonly slot: Int32Array;
  private readonly span: Int32Array;
  private readonly sequence: Int32Array;

  constructor(document: GraphDocument, options: ModelOptions = {}) {
    this.document = document;
    this.nodes = document.name.length;
    this.modules = document.module_parent.length;
    const hidden = this.hidden(options.constants ?? false);
    this.home = this.homes(hidden);
    const { src } = document;
    this.edges = Int32Array.from(src.keys()).filter((edge) => !hidden[src[edge]!]);
    const plain = this.plainParts(hidden);
    const parts = this.merge(plain);
    this.parent = this.parents(parts, this.nodes + this.modules);
    this.order(parts);
    const folded = this.fold(parts);
    this.parts = folded;
    this.parent = this.parents(folded, this.nodes + this.modules + this.folds.length);
    this.depth = this.depths();
    [this.sequence, this.slot, this.span] = this.ranges();
  }

  get root(): number {
    return this.nodes;
  }

  get items(): number {
    return this.nodes + this.modules + this.folds.length;
  }

  kind(item: number): "node" | "module" | "fold" {
    return item < this.nodes ? "node" : item < this.nodes + this.modules ? "module" : "fold";
  }

  /** Row of a node or of a module; of a fold that of its first module. */
  index(item: number): number {
    if (item < this.nodes) return item;
    return item < this.nodes + this.modules
      ? item - this.nodes
      : this.folded(item)[0]! - this.nodes;
  }

  /** The modules of a fold. */
  folded(item: number): readonly number[] {
    return this.folds[item - this.nodes - this.modules] ?? [];
  }

  isContainer(item: number): boolean {
    return item >= this.nodes;
  }

  isDrawn(item: number): boolean {
    return item === this.root || this.parent[item]! >= 0;
  }

  /** A name that stays the same from stage to stage. */
  key(item: number): string {
    if (item < this.nodes) return `n${item}`;
    const path = this.document.module_path.get(this.index(item));
    return item < this.nodes + this.modules ? path : `${path}×`;
  }

  title(item: number): string {
    if (this.kind(item) === "fold") {
      const run = this.folded(item);
      return `${this.title(run[0]!)} … ${this.title(run[run.length - 1]!)}`;
    }
    return this.titles.get(item) ?? this.ownTitle(this.index(item));
  }

  /** A name that is a number only, as in a sequence of modules, says nothing without the class. */
  private ownTitle(module: number): string {
    const { module_name: names, module_type: types } = this.document;
    const name = names.get(module);
    if (!/^\d+(@\d+)?$/.test(name)) return name;
    return `${types.get(module).split(".").pop() ?? ""} ${name}`.trim();
  }

  /** Nodes below an item, ascending; constants that stand for a user among them are included. */
  members(item: number): Int32Array {
    const start = this.slot[item]!;
    return this.sequence.slice(start, start + this.span[item]!).sort();
  }

  /** How many nodes are below an item. */
  count(item: number): number {
    return this.span[item]!;
  }

  /** The container items that hold an item, outermost first, without the root. */
  ancestors(item: number): number[] {
    const found: number[] = [];
    for (let at = this.parent[item]!; at >= 0 && at !== this.root; at = this.parent[at]!)
      found.push(at);
    return found.reverse();
  }

  /**
   * The item that draws a container of the document, which may have been merged with its only part.
   */
  itemOfModule(module: number): number {
    let item = this.nodes + module;
    while (!this.isDrawn(item)) {
      const next = this.merged.get(item);
      if (next === undefined) return this.root;
      item = next;
    }
    return item;
  }
  private readonly merged = new Map<number, number>();

  // ---- making it
  // ------------------------------------------------------------------------------------------

  private hidden(constants: boolean): Uint8Array {
    const { kind } = this.document;
    const codes = new Set<number>();
    if (!constants)
      kind.values.forEach((value, code) => HIDDEN_KINDS.has(value) && codes.add(code));
    return Uint8Array.from(kind.codes, (code) => (codes.has(code) ? 1 : 0));
  }

  private homes(hidden: Uint8Array): Int32Array {
    const home = Int32Array.from({ length: this.nodes }, (_, node) => node);
    const { src, dst } = this.document;
    for (let edge = src.length - 1; edge >= 0; edge--) {
      const [from, to] = [src[edge]!, dst[edge]!];
      if (hidden[from] && (home[from] === from || to < home[from]!)) home[from] = to;
    }
    for (let node = this.nodes - 1; node >= 0; node--) {
      let at = home[node]!;
      for (let steps = 0; hidden[at] && home[at] !== at && steps < 8; steps++) at = home[at]!;
      home[node] = at;
    }
    return home;
  }

  private plainParts(hidden: Uint8Array): number[][] {
    const { module, module_parent: parents } = this.document;
    const parts: number[][] = Array.from({ length: this.nodes + this.modules }, () => NONE);
    const add = (container: number, item: number) => {
      if (parts[container] === NONE) parts[container] = [];
      parts[container]!.push(item);
    };
    for (let node = 0; node < this.nodes; node++) {
      if (!hidden[node]) add(this.nodes + module[node]!, node);
    }
    for (let index = this.modules - 1; index > 0; index--) {
      if (parts[this.nodes + index]!.length) add(this.nodes + parents[index]!, this.nodes + index);
    }
    return parts;
  }

  /** Leaves out containers with one part. */
  private merge(parts: number[][]): number[][] {
    const { module_kind: kinds } = this.document;
    for (let item = this.nodes + this.modules - 1; item >= this.nodes; item--) {
      parts[item] = parts[item]!.map((part) => {
        if (part < this.nodes || parts[part]!.length !== 1) return part;
        const only = parts[part]![0]!;
        const named = kinds.get(part - this.nodes) === "module";
        if (!named && only >= this.nodes) return part;
        if (only < this.nodes && !named) return part;
        if (only >= this.nodes) {
          if (kinds.get(only - this.nodes) !== "module") return part;
          this.titles.set(only, `${this.ownTitle(part - this.nodes)} / ${this.title(only)}`);
        }
        this.merged.set(part, only);
        parts[part] = NONE;
        return only;
      });
    }
    return parts;
  }

  private parents(parts: readonly (readonly number[])[], items: number): Int32Array {
    const parent = new Int32Array(items).fill(-1);
    parts.forEach((members, container) => {
      for (const member of members) parent[member] = container;
    });
    return parent;
  }

  private depths(): Int32Array {
    const depth = new Int32Array(this.items);
    const queue = [this.root];
    for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
      for (const part of this.parts[item]!) {
        depth[part] = depth[item]! + 1;
        queue.push(part);
      }
    }
    return depth;
  }

  private order(parts: number[][]): void {
    this.depth = new Int32Array(this.nodes + this.modules);
    const stack = [this.root];
    for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
      for (const part of parts[item]!) {
        this.depth[part] = this.depth[item]! + 1;
        if (part >= this.nodes) stack.push(part);
      }
    }
    const lifted = lift(this);
    const first = this.firstRows(parts);
    const buckets = new Map<number, number[]>();
    lifted.at.forEach((container, edge) => {
      const known = buckets.get(container);
      if (known) known.push(edge);
      else buckets.set(container, [edge]);
    });
    for (let item = this.nodes; item < this.nodes + this.modules; item++) {
      if (parts[item]!.length < 2) continue;
      const edges = (buckets.get(item) ?? []).map(
        (edge) => [lifted.left[edge]!, lifted.right[edge]!] as const,
      );
      parts[item] = topologicalOrder(parts[item]!, edges, first);
      const found = findFolds(this, parts[item]!, edges);
      if (found.length) this.runs.set(item, found);
    }
  }
  private readonly runs = new Map<number, (readonly number[])[]>();

  private firstRows(parts: readonly (readonly number[])[]): Float64Array {
    const first = new Float64Array(this.nodes + this.modules).fill(Infinity);
    for (let node = 0; node < this.nodes; node++) first[node] = node;
    // A constant that is drawn stands before its first user.
    const { src, dst, kind } = this.document;
    for (let edge = 0; edge < src.length; edge++) {
      const from = src[edge]!;
      if (!HIDDEN_KINDS.has(kind.get(from))) continue;
      const before = dst[edge]! - 0.5;
      if (first[from] === from || before < first[from]!) first[from] = before;
    }
    for (let item = this.nodes + this.modules - 1; item >= this.nodes; item--) {
      for (const part of parts[item]!) first[item] = Math.min(first[item]!, first[part]!);
    }
    return first;
  }

  /** Puts runs of equal modules into stacks. */
  private fold(parts: number[][]): (readonly number[])[] {
    for (const [container, runs] of this.runs) {
      const within = new Map<number, number>();
      for (const run of runs) {
        const item = this.nodes + this.modules + this.folds.length;
        this.folds.push(run);
        parts[item] = [...run];
        for (const module of run) within.set(module, item);
      }
      const kept: number[] = [];
      for (const part of parts[container]!) {
        const fold = within.get(part);
        if (fold === undefined) kept.push(part);
        else if (kept[kept.length - 1] !== fold) kept.push(fold);
      }
      parts[container] = kept;
    }
    return parts;
  }

  /** Depth-first order of the nodes, so that what is below an item is a range of it. */
  private ranges(): [Int32Array, Int32Array, Int32Array] {
    const guests = new Map<number, number[]>();
    this.home.forEach((home, node) => {
      if (home === node) return;
      const known = guests.get(home);
      if (known) known.push(node);
      else guests.set(home, [node]);
    });
    const sequence: number[] = [];
    const slot = new Int32Array(this.items);
    const span = new Int32Array(this.items);
    const visit = (item: number) => {
      slot[item] = sequence.length;
      if (item < this.nodes) sequence.push(item, ...(guests.get(item) ?? []));
      for (const part of this.parts[item]!) visit(part);
      span[item] = sequence.length - slot[item]!;
    };
    visit(this.root);
    return [Int32Array.from(sequence), slot, span];
  }
}

const NONE: number[] = [];
