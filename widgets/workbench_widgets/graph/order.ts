// The order of a container's parts, and the stacks of equal ones among them.
import type { GraphModel } from "./model.ts";

type Edge = readonly [number, number];

/**
 * Producers before consumers, as near to the order of the rows as that allows; a cycle is cut at
 * its first row.
 */
export function topologicalOrder(
  parts: readonly number[],
  edges: readonly Edge[],
  first: Float64Array,
): number[] {
  const sorted = [...parts].sort((a, b) => first[a]! - first[b]!);
  const place = new Map(sorted.map((part, index) => [part, index]));
  const waiting = new Int32Array(sorted.length);
  const users: number[][] = sorted.map(() => []);
  let forward = true;
  for (const [from, to] of edges) {
    const [a, b] = [place.get(from), place.get(to)];
    if (a === undefined || b === undefined || a === b) continue;
    if (a > b) forward = false;
    users[a]!.push(b);
    waiting[b]!++;
  }
  if (forward) return sorted;
  // The ready part with the first row is next; without one, the first row that is left begins a
  // cycle.
  const heap = new Heap();
  const done = new Uint8Array(sorted.length);
  waiting.forEach((count, part) => count === 0 && heap.push(part));
  const order: number[] = [];
  let left = 0;
  while (order.length < sorted.length) {
    let next = heap.pop();
    if (next === undefined) {
      while (done[left]) left++;
      next = left;
    }
    if (done[next]) continue;
    done[next] = 1;
    order.push(sorted[next]!);
    for (const user of users[next]!) if (--waiting[user]! === 0 && !done[user]) heap.push(user);
  }
  return order;
}

/** Runs of modules that hold the same. Parallel or tiny ones are a stack only if there are many. */
export function findFolds(
  model: GraphModel,
  parts: readonly number[],
  edges: readonly Edge[],
): (readonly number[])[] {
  const { module_hash: hash, module_kind: kind } = model.document;
  const linked = new Set(edges.map(([from, to]) => from * model.items + to));
  const equal = (a: number, b: number) =>
    a >= model.nodes &&
    b >= model.nodes &&
    hash[a - model.nodes] === hash[b - model.nodes] &&
    kind.get(a - model.nodes) === kind.get(b - model.nodes) &&
    foldable(kind.get(a - model.nodes));
  const runs: number[][] = [];
  for (let start = 0; start < parts.length;) {
    let end = start + 1;
    while (end < parts.length && equal(parts[start]!, parts[end]!)) end++;
    const run = parts.slice(start, end);
    const chain = run.every(
      (part, at) => at === 0 || linked.has(run[at - 1]! * model.items + part),
    );
    if (run.length >= (chain ? 2 : 4) && run.length < parts.length + 1) runs.push(run);
    start = end;
  }
  return runs;
}

function foldable(kind: string): boolean {
  return kind === "module" || kind === "group" || kind === "delegate";
}

class Heap {
  private readonly values: number[] = [];

  push(value: number): void {
    const { values } = this;
    let at = values.push(value) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (values[up]! <= value) break;
      values[at] = values[up]!;
      at = up;
    }
    values[at] = value;
  }

  pop(): number | undefined {
    const { values } = this;
    const top = values[0];
    const last = values.pop();
    if (top === undefined || last === undefined || values.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= values.length) break;
      if (child + 1 < values.length && values[child + 1]! < values[child]!) child++;
      if (values[child]! >= last) break;
      values[at] = values[child]!;
      at = child;
    }
    values[at] = last;
    return top;
  }
}
