// The geometry of a memory plan: what lies where and when, without a canvas.
import type { MemoryDocument } from "../contract.ts";

/** Where each tensor lies: the document's columns, or a preview's. */
export interface Places {
  readonly arena: ArrayLike<number>;
  readonly offset: ArrayLike<number>;
}

export const KINDS = ["temporary", "input", "output", "state"] as const;

/** Rows of an arena, by the moment from which they are in use. */
export function rowsOf(document: MemoryDocument, places: Places, arena: number): Int32Array {
  const rows: number[] = [];
  for (let row = 0; row < document.name.length; row++)
    if (places.arena[row] === arena) rows.push(row);
  rows.sort((a, b) => document.first[a]! - document.first[b]! || a - b);
  return Int32Array.from(rows);
}

export function aligned(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

/** The nearest place that the alignment allows, not below 0. */
export function snap(offset: number, alignment: number): number {
  return Math.max(0, Math.round(offset / alignment) * alignment);
}

/** Bytes that an arena needs for these places. */
export function extent(document: MemoryDocument, places: Places, rows: ArrayLike<number>): number {
  let top = 0;
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!;
    if (document.bytes[row]) top = Math.max(top, places.offset[row]! + document.bytes[row]!);
  }
  return top;
}

/** Bytes alive from each moment on, rounded up to the alignment each: a step line. */
export function steps(
  document: MemoryDocument,
  rows: ArrayLike<number>,
  alignment: number,
): { moment: Int32Array; bytes: Float64Array } {
  const changes = new Map<number, number>();
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!;
    const size = aligned(document.bytes[row]!, alignment);
    const first = document.first[row]!;
    const end = document.last[row]! + 1;
    changes.set(first, (changes.get(first) ?? 0) + size);
    changes.set(end, (changes.get(end) ?? 0) - size);
  }
  const moments = Int32Array.from([...changes.keys()].sort((a, b) => a - b));
  const bytes = new Float64Array(moments.length);
  let alive = 0;
  moments.forEach((moment, at) => {
    alive += changes.get(moment)!;
    bytes[at] = alive;
  });
  return { moment: moments, bytes };
}

/** A step line as points to draw: its corners, or where they are denser than pixels, the most of each pixel. */
export function outlineOf(
  line: { moment: ArrayLike<number>; bytes: ArrayLike<number> },
  x: (moment: number) => number,
  width: number,
): { x: number; bytes: number }[] {
  const points: { x: number; bytes: number }[] = [];
  let before = 0;
  let column = -Infinity;
  for (let at = 0; at < line.moment.length; at++) {
    const place = x(line.moment[at]!);
    const bytes = line.bytes[at]!;
    // What ends before the picture or begins after it shows by its last step only.
    const next = at + 1 < line.moment.length ? x(line.moment[at + 1]!) : Infinity;
    if (next < 0) {
      before = bytes;
      continue;
    }
    if (place > width) {
      points.push({ x: width, bytes: before });
      return points;
    }
    const pixel = Math.floor(place);
    if (pixel === column) {
      const last = points[points.length - 1]!;
      last.bytes = Math.max(last.bytes, bytes);
    } else {
      points.push({ x: place, bytes: before }, { x: place, bytes });
      column = pixel;
    }
    before = bytes;
  }
  return points;
}

/** Bytes alive at a moment. */
export function liveAt(
  line: { moment: ArrayLike<number>; bytes: ArrayLike<number> },
  moment: number,
): number {
  let low = 0;
  let high = line.moment.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.moment[middle]! <= moment) low = middle + 1;
    else high = middle;
  }
  return low ? line.bytes[low - 1]! : 0;
}

export function isAlive(document: MemoryDocument, row: number, moment: number): boolean {
  return document.first[row]! <= moment && moment <= document.last[row]!;
}

/** What is alive at a moment, the largest first. */
export function aliveAt(
  document: MemoryDocument,
  rows: ArrayLike<number>,
  moment: number,
): number[] {
  const found = Array.from(rows).filter((row) => isAlive(document, row, moment));
  return found.sort((a, b) => document.bytes[b]! - document.bytes[a]! || a - b);
}

/** Bytes between what is alive at a moment: from, to. */
export function holes(
  document: MemoryDocument,
  places: Places,
  rows: ArrayLike<number>,
  moment: number,
  size: number,
): [number, number][] {
  const taken = aliveAt(document, rows, moment)
    .filter((row) => document.bytes[row]! > 0)
    .map((row): [number, number] => [
      places.offset[row]!,
      places.offset[row]! + document.bytes[row]!,
    ])
    .sort((a, b) => a[0] - b[0]);
  const found: [number, number][] = [];
  let end = 0;
  for (const [from, to] of taken) {
    if (from > end) found.push([end, from]);
    end = Math.max(end, to);
  }
  if (size > end) found.push([end, size]);
  return found;
}

function shareBytes(document: MemoryDocument, places: Places, row: number, other: number): boolean {
  const [a, b] = [places.offset[row]!, places.offset[other]!];
  return a < b + document.bytes[other]! && b < a + document.bytes[row]!;
}

function shareMoments(document: MemoryDocument, row: number, other: number): boolean {
  return (
    document.first[row]! <= document.last[other]! && document.first[other]! <= document.last[row]!
  );
}

/** Those of a list, in its order, that have bytes which none before them in the list had. */
function direct(
  document: MemoryDocument,
  places: Places,
  row: number,
  others: readonly number[],
): number[] {
  const start = places.offset[row]!;
  let open: [number, number][] = [[start, start + document.bytes[row]!]];
  return others.filter((other) => {
    const from = places.offset[other]!;
    const to = from + document.bytes[other]!;
    const left = open.flatMap(([low, high]): [number, number][] =>
      to <= low || from >= high
        ? [[low, high]]
        : (
            [
              [low, from],
              [to, high],
            ] as [number, number][]
          ).filter(([begin, end]) => end > begin),
    );
    const before = open.reduce((sum, [low, high]) => sum + high - low, 0);
    const after = left.reduce((sum, [low, high]) => sum + high - low, 0);
    open = left;
    return after < before;
  });
}

export interface Reuse {
  /** Who had the same bytes last, the latest first. */
  readonly before: number[];
  /** Who has them next, the earliest first. */
  readonly after: number[];
  /** How many others had or will have some of them. */
  readonly others: number;
}

/** Who had some of the same bytes just before a tensor, and who has them next. */
export function reuse(
  document: MemoryDocument,
  places: Places,
  rows: ArrayLike<number>,
  row: number,
): Reuse {
  const before: number[] = [];
  const after: number[] = [];
  for (let at = 0; at < rows.length; at++) {
    const other = rows[at]!;
    if (other === row || !shareBytes(document, places, row, other)) continue;
    if (document.last[other]! < document.first[row]!) before.push(other);
    else if (document.first[other]! > document.last[row]!) after.push(other);
  }
  before.sort((a, b) => document.last[b]! - document.last[a]!);
  after.sort((a, b) => document.first[a]! - document.first[b]!);
  const near = {
    before: direct(document, places, row, before),
    after: direct(document, places, row, after),
  };
  return { ...near, others: before.length + after.length - near.before.length - near.after.length };
}

/** What is in use at the same time as a tensor and would share bytes with it at another place. */
export function overlaps(
  document: MemoryDocument,
  places: Places,
  row: number,
  arena: number,
  offset: number,
): number[] {
  const found: number[] = [];
  const end = offset + document.bytes[row]!;
  for (let other = 0; other < document.name.length; other++) {
    if (other === row || places.arena[other] !== arena) continue;
    if (!document.bytes[other] || !shareMoments(document, row, other)) continue;
    const from = places.offset[other]!;
    if (from < end && offset < from + document.bytes[other]!) found.push(other);
  }
  return found;
}

/** The tensor at a moment and a byte; where rectangles are too thin to hit, the nearest within `slack`. */
export function hit(
  document: MemoryDocument,
  places: Places,
  rows: ArrayLike<number>,
  moment: number,
  offset: number,
  slack: { moments: number; bytes: number },
): number {
  let best = -1;
  let distance = Infinity;
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!;
    const first = document.first[row]!;
    if (first > moment + slack.moments) break;
    const from = places.offset[row]!;
    const dx =
      Math.max(first - moment, moment - document.last[row]! - 1, 0) / Math.max(slack.moments, 1e-9);
    const dy =
      Math.max(from - offset, offset - from - document.bytes[row]!, 0) /
      Math.max(slack.bytes, 1e-9);
    const away = Math.max(dx, dy);
    // Of several that are hit, the last: it lies on top.
    if (away <= 1 && away <= distance) [best, distance] = [row, away];
  }
  return best;
}
