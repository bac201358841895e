// One execution as spans in lanes: the method, its modules as they nest, instructions, the inside of delegates.
import type { ProfileDocument, TimelineDocument } from "../contract.ts";

export interface Span {
  readonly lane: number;
  /** ms from the start of the execution. */
  readonly start: number;
  readonly end: number;
  readonly label: string;
  /** Rows of the profile. */
  readonly rows: readonly number[];
  readonly kind: "method" | "module" | "instruction" | "inside";
}

export interface Lane {
  readonly title: string;
  readonly kind: Span["kind"];
}

export interface Lanes {
  readonly lanes: readonly Lane[];
  /** By lane, and in each ascending by start. */
  readonly spans: readonly (readonly Span[])[];
}

/** Deeper modules are written into one lane. */
const DEEPEST = 12;

export function lanesOf(timeline: TimelineDocument, profile: ProfileDocument): Lanes {
  const instructions: Span[] = [];
  const inside: Span[] = [];
  timeline.row.forEach((row, index) => {
    const start = timeline.start[index]!;
    const within = timeline.inside[index] === 1;
    const span: Span = {
      lane: 0,
      start,
      end: start + timeline.length[index]!,
      label: row < 0 ? "?" : profile.name.get(row),
      rows: row < 0 ? [] : [row],
      kind: within ? "inside" : "instruction",
    };
    (within ? inside : instructions).push(span);
  });
  const whole: Span = {
    lane: 0,
    start: 0,
    end: timeline.duration,
    label: timeline.method,
    rows: [],
    kind: "method",
  };
  const levels = moduleSpans(instructions, profile);
  const lanes: Lane[] = [
    { title: "execution", kind: "method" },
    ...levels.map((_, depth): Lane => ({ title: depth ? "" : "modules", kind: "module" })),
    { title: "instructions", kind: "instruction" },
    ...stacked(inside).map((_, depth): Lane => ({
      title: depth ? "" : "in delegates",
      kind: "inside",
    })),
  ];
  const spans = [[whole], ...levels, instructions, ...stacked(inside)];
  return { lanes, spans: spans.map((lane, at) => lane.map((span) => ({ ...span, lane: at }))) };
}

/** Neighbouring instructions of the same module as one span, for each depth of nesting. */
function moduleSpans(instructions: readonly Span[], profile: ProfileDocument): Span[][] {
  const paths = instructions.map((span) => {
    const path = span.rows.length ? profile.module.get(span.rows[0]!) : "";
    return path ? path.split(".") : [];
  });
  bridge(paths, instructions, profile);
  const shared = common(paths.filter((path) => path.length));
  const depth = Math.min(Math.max(0, ...paths.map((path) => path.length)) - shared, DEEPEST);
  const levels: Span[][] = [];
  for (let level = 0; level < depth; level++) {
    const spans: Span[] = [];
    let last: { key: string; at: number } | null = null;
    instructions.forEach((instruction, index) => {
      const path = paths[index]!;
      const place = shared + level;
      if (path.length <= place) {
        last = null;
        return;
      }
      const key = path.slice(0, place + 1).join(".");
      if (last?.key === key) {
        const open = spans[last.at]!;
        spans[last.at] = {
          ...open,
          end: instruction.end,
          rows: [...open.rows, ...instruction.rows],
        };
      } else {
        last = { key, at: spans.length };
        spans.push({ ...instruction, label: level ? path[place]! : key, kind: "module" });
      }
    });
    levels.push(spans);
  }
  return levels;
}

/** What nothing is known of (a move, a guard of the runtime) belongs where its neighbours are. */
function bridge(paths: string[][], instructions: readonly Span[], profile: ProfileDocument): void {
  const unknown = instructions.map(
    (span) => !span.rows.length || !profile.source.get(span.rows[0]!),
  );
  paths.forEach((path, index) => {
    if (path.length || !unknown[index]) return;
    const before = paths[index - 1] ?? [];
    const after = paths.slice(index + 1).find((_, at) => !unknown[index + 1 + at]) ?? [];
    let length = 0;
    while (length < before.length && before[length] === after[length]) length++;
    paths[index] = before.slice(0, length);
  });
}

/** How many parts all paths begin with, the last part of the shortest left out. */
function common(paths: readonly (readonly string[])[]): number {
  const first = paths[0];
  if (!first) return 0;
  let length = 0;
  while (paths.every((path) => path.length > length + 1 && path[length] === first[length]))
    length++;
  return length;
}

/** Spans in as many lanes as none overlaps another of its lane. */
export function stacked(spans: readonly Span[]): Span[][] {
  const lanes: Span[][] = [];
  for (const span of spans) {
    const free = lanes.find((lane) => lane[lane.length - 1]!.end <= span.start + 1e-9);
    if (free) free.push(span);
    else lanes.push([span]);
  }
  return lanes;
}

/** The span of a lane at a time, by bisection; -1 for none. `slack` is how far beside it still counts. */
export function spanAt(lane: readonly Span[], time: number, slack: number): number {
  let [low, high] = [0, lane.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane[middle]!.start <= time) low = middle + 1;
    else high = middle;
  }
  let best = -1;
  let distance = slack;
  for (const index of [low - 1, low]) {
    const span = lane[index];
    if (!span) continue;
    const away = Math.max(span.start - time, time - span.end, 0);
    if (away <= distance) {
      if (away < distance || best < 0) best = index;
      distance = away;
    }
  }
  return best;
}

/** Index of the last span that begins before a time. */
export function spanBefore(spans: readonly Span[], time: number): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle]!.start < time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
