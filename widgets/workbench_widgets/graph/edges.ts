// Edges between boxes: each of the graph's edges runs within one container, and crosses the borders
// of those
// below it. What runs between the same two parts of a container is one bundle.
import type { GraphModel } from "./model.ts";

/**
 * The side of a border: above an item that gets something from outside, below one that gives
 * something.
 */
export const OUTSIDE = -1;

export interface Lifted {
  /** Per drawn edge the container that it runs in. */
  readonly at: Int32Array;
  /** The part of it that holds the producer, and the one that holds the consumer. */
  readonly left: Int32Array;
  readonly right: Int32Array;
}

type Tree = Pick<GraphModel, "parent" | "depth" | "edges" | "document">;

/** Where each drawn edge runs. */
export function lift(tree: Tree): Lifted {
  const { parent, depth, edges } = tree;
  const { src, dst } = tree.document;
  const at = new Int32Array(edges.length);
  const left = new Int32Array(edges.length);
  const right = new Int32Array(edges.length);
  for (let index = 0; index < edges.length; index++) {
    let a = src[edges[index]!]!;
    let b = dst[edges[index]!]!;
    while (depth[a]! > depth[b]!) a = parent[a]!;
    while (depth[b]! > depth[a]!) b = parent[b]!;
    while (parent[a] !== parent[b]) {
      a = parent[a]!;
      b = parent[b]!;
    }
    at[index] = parent[a]!;
    left[index] = a;
    right[index] = b;
  }
  return { at, left, right };
}

export interface Bundle {
  /** Part of the container, or OUTSIDE. */
  readonly from: number;
  readonly to: number;
  /** How many edges of the graph. */
  count: number;
  bytes: number;
  /** Their indices in the document. */
  readonly edges: number[];
}

/** The bundles of each container, made when it is first opened. */
export class Bundles {
  private readonly model: GraphModel;
  private readonly inside = new Map<number, number[]>();
  private readonly known = new Map<number, readonly Bundle[]>();
  private readonly lifted: Lifted;

  constructor(model: GraphModel) {
    this.model = model;
    this.lifted = lift(model);
    const { edges, parent } = model;
    const { src, dst } = model.document;
    const add = (container: number, edge: number) => {
      const list = this.inside.get(container);
      if (list) list.push(edge);
      else this.inside.set(container, [edge]);
    };
    for (let index = 0; index < edges.length; index++) {
      const at = this.lifted.at[index]!;
      add(at, index);
      for (let item = parent[src[edges[index]!]!]!; item !== at; item = parent[item]!)
        add(item, index);
      for (let item = parent[dst[edges[index]!]!]!; item !== at; item = parent[item]!)
        add(item, index);
    }
  }

  /** The bundles within a container: between its parts, and from and to the outside. */
  of(container: number): readonly Bundle[] {
    let made = this.known.get(container);
    if (!made) this.known.set(container, (made = this.make(container)));
    return made;
  }

  private make(container: number): readonly Bundle[] {
    const { edges, document, items } = this.model;
    const found = new Map<number, Bundle>();
    for (const index of this.inside.get(container) ?? []) {
      const edge = edges[index]!;
      const within = this.lifted.at[index] === container;
      const from = within ? this.lifted.left[index]! : this.part(document.src[edge]!, container);
      const to = within ? this.lifted.right[index]! : this.part(document.dst[edge]!, container);
      const key = (from + 1) * (items + 1) + to + 1;
      let bundle = found.get(key);
      if (!bundle) found.set(key, (bundle = { from, to, count: 0, bytes: 0, edges: [] }));
      bundle.count++;
      bundle.bytes += document.edge_bytes[edge]!;
      bundle.edges.push(edge);
    }
    return [...found.values()];
  }

  /** The part of a container that holds a node; OUTSIDE if none does. */
  private part(node: number, container: number): number {
    const { parent } = this.model;
    let item = node;
    while (item >= 0 && parent[item] !== container) item = parent[item]!;
    return item;
  }
}
