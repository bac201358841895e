// What is connected with a box: the bundles that carry its edges, at every border they cross.
import type { GraphModel } from "./model.ts";
import { OUTSIDE } from "./edges.ts";
import type { Picture } from "./picture.ts";

export interface Highlight {
  /** By container item: bundles (their places in the wiring) that come in. */
  readonly incoming: ReadonlyMap<number, ReadonlySet<number>>;
  readonly outgoing: ReadonlyMap<number, ReadonlySet<number>>;
  /** Visible items at the other ends. */
  readonly producers: ReadonlySet<number>;
  readonly consumers: ReadonlySet<number>;
}

/** Edges of the document by node, made once for a model. */
export class Adjacency {
  private readonly startOut: Int32Array;
  private readonly startIn: Int32Array;
  private readonly out: Int32Array;
  private readonly into: Int32Array;

  constructor(model: GraphModel) {
    const { src, dst } = model.document;
    const make = (ends: Int32Array): [Int32Array, Int32Array] => {
      const start = new Int32Array(model.nodes + 1);
      for (const edge of model.edges) start[ends[edge]! + 1]!++;
      for (let node = 0; node < model.nodes; node++) start[node + 1]! += start[node]!;
      const next = start.slice();
      const list = new Int32Array(model.edges.length);
      for (const edge of model.edges) list[next[ends[edge]!]!++] = edge;
      return [start, list];
    };
    [this.startOut, this.out] = make(src);
    [this.startIn, this.into] = make(dst);
  }

  /** Edges that leave a node, as indices into the document's. */
  outgoing(node: number): Int32Array {
    return this.out.subarray(this.startOut[node]!, this.startOut[node + 1]!);
  }

  incoming(node: number): Int32Array {
    return this.into.subarray(this.startIn[node]!, this.startIn[node + 1]!);
  }
}

export function highlightOf(picture: Picture, adjacency: Adjacency, item: number): Highlight {
  const { model } = picture;
  const { src, dst } = model.document;
  const members = model.members(item);
  const inside = new Set<number>(members);
  const incoming: number[] = [];
  const outgoing: number[] = [];
  for (const node of members) {
    for (const edge of adjacency.outgoing(node)) if (!inside.has(dst[edge]!)) outgoing.push(edge);
    for (const edge of adjacency.incoming(node)) if (!inside.has(src[edge]!)) incoming.push(edge);
  }
  const ends = (edges: readonly number[], column: Int32Array) =>
    new Set(edges.map((edge) => itemOf(picture, column[edge]!)));
  return {
    incoming: carriers(picture, incoming),
    outgoing: carriers(picture, outgoing),
    producers: ends(incoming, src),
    consumers: ends(outgoing, dst),
  };
}

function itemOf(picture: Picture, node: number): number {
  return picture.boxOf(node).item;
}

/** For each container the bundles that carry one of the edges. */
function carriers(picture: Picture, edges: readonly number[]): Map<number, Set<number>> {
  const wanted = new Set(edges);
  const found = new Map<number, Set<number>>();
  if (!wanted.size) return found;
  const { model } = picture;
  const { src, dst } = model.document;
  const containers = new Set<number>();
  for (const edge of wanted) {
    for (const node of [src[edge]!, dst[edge]!]) {
      for (let item = model.parent[node]!; item >= 0; item = model.parent[item]!)
        containers.add(item);
    }
  }
  for (const { placed } of picture.wirings) {
    if (!containers.has(placed.item)) continue;
    placed.bundles.forEach((bundle, at) => {
      if (bundle.from === OUTSIDE && bundle.to === OUTSIDE) return;
      if (!bundle.edges.some((edge) => wanted.has(edge))) return;
      const known = found.get(placed.item);
      if (known) known.add(at);
      else found.set(placed.item, new Set([at]));
    });
  }
  return found;
}
