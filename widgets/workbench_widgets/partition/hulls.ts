// Outlines around the boxes of each tag: rectilinear unions of padded boxes, merged where boxes are neighbours.
import type { Box } from "../common/viewport.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface TaggedBox extends Box {
  readonly tag: number;
  /** Only boxes of the same holder are joined: a bridge must not cross a frame. */
  readonly holder: unknown;
}

/** One connected outline. */
export interface Hull {
  readonly tag: number;
  /** Closed, without repeating the first point; the inside lies to the right of each edge. */
  readonly loops: readonly (readonly Point[])[];
  readonly bounds: Box;
  readonly boxes: number;
}

export interface HullOptions {
  /** Room between a box and its outline. */
  readonly pad: number;
  /** Boxes of a tag that are at most this far apart are joined, if nothing stands between. */
  readonly reach: number;
}

// Above this many rectangles the union's grid would cost more than anybody can see.
const MOST = 160;
const LEAST_OVERLAP = 6;
const BAND = 64;

/** Outlines of all tags. `others` are boxes that no bridge may touch, those of other tags apart. */
export function hullsOf(boxes: readonly TaggedBox[], others: readonly Box[], options: HullOptions): Hull[] {
  const byTag = new Map<number, TaggedBox[]>();
  for (const box of boxes) {
    const known = byTag.get(box.tag);
    if (known) known.push(box);
    else byTag.set(box.tag, [box]);
  }
  const found: Hull[] = [];
  const obstacles = new Obstacles(boxes, others);
  for (const [tag, own] of byTag) {
    const rects: Box[] = own.map((box) => grown(box, options.pad));
    rects.push(...bridges(own, (bridge) => obstacles.free(bridge, tag), options));
    for (const part of clusters(rects)) {
      const inside = part.filter((at) => at < own.length).length;
      if (!inside) continue;
      const chosen = part.map((at) => rects[at]!);
      const loops = chosen.length > MOST ? chosen.map(corners) : outline(chosen);
      found.push({ tag, loops, bounds: bounds(chosen), boxes: inside });
    }
  }
  return found;
}

function grown(box: Box, by: number): Box {
  return { x: box.x - by, y: box.y - by, width: box.width + 2 * by, height: box.height + 2 * by };
}

export function meets(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** All boxes in bands of the same height, to find those that a bridge would touch. */
class Obstacles {
  private readonly bands = new Map<number, { box: Box; tag: number }[]>();

  constructor(boxes: readonly TaggedBox[], others: readonly Box[]) {
    for (const box of boxes) this.add(box, box.tag);
    for (const box of others) this.add(box, NaN);
  }

  private add(box: Box, tag: number): void {
    for (let band = Math.floor(box.y / BAND); band * BAND < box.y + box.height; band++) {
      const known = this.bands.get(band);
      if (known) known.push({ box, tag });
      else this.bands.set(band, [{ box, tag }]);
    }
  }

  /** Whether a rectangle touches no box but those of a tag. */
  free(rect: Box, tag: number): boolean {
    for (let band = Math.floor(rect.y / BAND); band * BAND < rect.y + rect.height; band++) {
      if (this.bands.get(band)?.some((other) => other.tag !== tag && meets(rect, other.box))) return false;
    }
    return true;
  }
}

/** Rectangles between neighbours of one tag. */
function bridges(own: readonly TaggedBox[], free: (bridge: Box) => boolean, { pad, reach }: HullOptions): Box[] {
  const found: Box[] = [];
  const sorted = [...own].sort((a, b) => a.y - b.y || a.x - b.x);
  sorted.forEach((a, at) => {
    for (let next = at + 1; next < sorted.length; next++) {
      const b = sorted[next]!;
      if (b.y - (a.y + a.height) > reach) break;
      if (b.holder !== a.holder) continue;
      const left = Math.max(a.x, b.x);
      const right = Math.min(a.x + a.width, b.x + b.width);
      const top = Math.max(a.y, b.y);
      const bottom = Math.min(a.y + a.height, b.y + b.height);
      if (right - left >= LEAST_OVERLAP && top > bottom) {
        const bridge = { x: left - pad, y: bottom, width: right - left + 2 * pad, height: top - bottom };
        if (free(bridge)) found.push(bridge);
      } else if (bottom - top >= LEAST_OVERLAP && left > right && left - right <= reach) {
        const bridge = { x: right, y: top - pad, width: left - right, height: bottom - top + 2 * pad };
        if (free(bridge)) found.push(bridge);
      }
    }
  });
  return found;
}

/** Indices of rectangles that overlap, directly or over others. */
function clusters(rects: readonly Box[]): number[][] {
  const parent = rects.map((_, at) => at);
  const find = (at: number): number => {
    let root = at;
    while (parent[root] !== root) root = parent[root]!;
    while (parent[at] !== root) [parent[at], at] = [root, parent[at]!];
    return root;
  };
  const order = rects.map((_, at) => at).sort((a, b) => rects[a]!.y - rects[b]!.y);
  order.forEach((a, at) => {
    const one = rects[a]!;
    for (let next = at + 1; next < order.length; next++) {
      const b = order[next]!;
      if (rects[b]!.y >= one.y + one.height) break;
      if (meets(one, rects[b]!)) parent[find(a)] = find(b);
    }
  });
  const groups = new Map<number, number[]>();
  for (let at = 0; at < rects.length; at++) {
    const root = find(at);
    const known = groups.get(root);
    if (known) known.push(at);
    else groups.set(root, [at]);
  }
  return [...groups.values()];
}

function bounds(rects: readonly Box[]): Box {
  const x = Math.min(...rects.map((r) => r.x));
  const y = Math.min(...rects.map((r) => r.y));
  const right = Math.max(...rects.map((r) => r.x + r.width));
  const bottom = Math.max(...rects.map((r) => r.y + r.height));
  return { x, y, width: right - x, height: bottom - y };
}

function corners(box: Box): Point[] {
  const [right, bottom] = [box.x + box.width, box.y + box.height];
  return [{ x: box.x, y: box.y }, { x: right, y: box.y }, { x: right, y: bottom }, { x: box.x, y: bottom }];
}

/** The outline of a union of rectangles: its loops, holes included. */
export function outline(rects: readonly Box[]): Point[][] {
  const xs = distinct(rects.flatMap((r) => [r.x, r.x + r.width]));
  const ys = distinct(rects.flatMap((r) => [r.y, r.y + r.height]));
  const wide = xs.length - 1;
  const high = ys.length - 1;
  const column = new Map(xs.map((value, at) => [value, at]));
  const row = new Map(ys.map((value, at) => [value, at]));
  const filled = new Uint8Array(wide * high);
  for (const r of rects) {
    const last = column.get(r.x + r.width)!;
    for (let j = row.get(r.y)!; j < row.get(r.y + r.height)!; j++) {
      filled.fill(1, j * wide + column.get(r.x)!, j * wide + last);
    }
  }
  const has = (i: number, j: number) => i >= 0 && j >= 0 && i < wide && j < high && filled[j * wide + i] === 1;
  // Edges with the inside to their right, by the grid point that they start at.
  const starts = new Map<number, number[]>();
  const point = (i: number, j: number) => j * (wide + 1) + i;
  const add = (from: number, to: number) => {
    const known = starts.get(from);
    if (known) known.push(to);
    else starts.set(from, [to]);
  };
  for (let j = 0; j < high; j++) {
    for (let i = 0; i < wide; i++) {
      if (!has(i, j)) continue;
      if (!has(i, j - 1)) add(point(i, j), point(i + 1, j));
      if (!has(i + 1, j)) add(point(i + 1, j), point(i + 1, j + 1));
      if (!has(i, j + 1)) add(point(i + 1, j + 1), point(i, j + 1));
      if (!has(i - 1, j)) add(point(i, j + 1), point(i, j));
    }
  }
  const loops: Point[][] = [];
  const at = (p: number): Point => ({ x: xs[p % (wide + 1)]!, y: ys[Math.floor(p / (wide + 1))]! });
  for (const [first, targets] of starts) {
    while (targets.length) {
      const path = [first];
      let before = first;
      let here = targets.pop()!;
      while (here !== first) {
        path.push(here);
        const next = turn(before, here, starts.get(here)!, wide + 1);
        [before, here] = [here, next];
      }
      loops.push(straightened(path.map(at)));
    }
  }
  return loops;
}

/** Where two corners touch, the outline turns right: it stays with its own cell. */
function turn(before: number, here: number, targets: number[], width: number): number {
  if (targets.length === 1) return targets.pop()!;
  const dx = (here % width) - (before % width);
  const dy = Math.floor(here / width) - Math.floor(before / width);
  const right = targets.findIndex((to) => {
    const ex = (to % width) - (here % width);
    const ey = Math.floor(to / width) - Math.floor(here / width);
    return Math.sign(ex) === -Math.sign(dy) && Math.sign(ey) === Math.sign(dx);
  });
  return targets.splice(Math.max(right, 0), 1)[0]!;
}

function straightened(path: readonly Point[]): Point[] {
  return path.filter((p, at) => {
    const a = path[(at + path.length - 1) % path.length]!;
    const b = path[(at + 1) % path.length]!;
    return !((a.x === p.x && p.x === b.x) || (a.y === p.y && p.y === b.y));
  });
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

/** Adds a closed loop with round corners to the path of a pen. */
export function roundLoop(pen: CanvasRenderingContext2D | Path2D, loop: readonly Point[], radius: number): void {
  const first = loop[0];
  const last = loop[loop.length - 1];
  if (!first || !last) return;
  pen.moveTo((first.x + last.x) / 2, (first.y + last.y) / 2);
  loop.forEach((p, at) => {
    const a = loop[(at + loop.length - 1) % loop.length]!;
    const b = loop[(at + 1) % loop.length]!;
    const room = Math.min(Math.hypot(p.x - a.x, p.y - a.y), Math.hypot(b.x - p.x, b.y - p.y)) / 2;
    pen.arcTo(p.x, p.y, (p.x + b.x) / 2, (p.y + b.y) / 2, Math.min(radius, room));
  });
  pen.closePath();
}

/** Whether a point lies inside a polygon. */
export function insidePolygon(x: number, y: number, polygon: readonly Point[]): boolean {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [a, b] = [polygon[i]!, polygon[j]!];
    if (a.y > y !== b.y > y && x < ((b.x - a.x) * (y - a.y)) / (b.y - a.y) + a.x) inside = !inside;
  }
  return inside;
}
