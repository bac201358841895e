// What lies over and under the rectangles of a plan: the peak, holes, ghosts, outlines, lines.
import type { MemoryDocument } from "../contract.ts";
import { bytes as showBytes } from "../common/format.ts";
import { hatchPattern } from "../common/palette.ts";
import type { Theme } from "../common/theme.ts";
import { outline, rectOf, ruler, type Frame } from "./paint.ts";
import { holes, reuse, type Places } from "./scene.ts";

const GHOSTS = 1500;

/** All that the chart shows. */
export interface ChartState {
  document: MemoryDocument;
  /** Where things lie: the plan that holds, or a preview. */
  places: Places;
  /** Of a preview: the plan that holds, whose places are drawn as ghosts where they differ. */
  before: Places | null;
  moved: ArrayLike<number> | null;
  arena: number;
  /** Bytes of the arena, of the preview if there is one. */
  size: number;
  /** Of a preview: bytes of the arena in the plan that holds. */
  sizeBefore: number;
  peak: number;
  lowerBound: number;
  limit: number | null;
  alignment: number;
  pins: ReadonlySet<number>;
  selected: ReadonlySet<number>;
  /** In the way of a pin. */
  conflicts: ReadonlySet<number>;
}

/** A limit far above the arena would make all that is in it small. */
export function limitShown(state: ChartState): number | null {
  return state.limit !== null && state.limit <= 2 * state.size ? state.limit : null;
}

export function paintPeak(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  state: ChartState,
): void {
  const left = frame.x(state.peak);
  pen.fillStyle = theme.raised;
  pen.fillRect(left, 0, Math.max(frame.perMoment, 2), frame.height);
}

export function paintHoles(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  state: ChartState,
  places: Places,
  rows: Int32Array,
): void {
  const width = Math.max(frame.perMoment, 8);
  const left = frame.x(state.peak) + frame.perMoment / 2 - width / 2;
  const pattern = hatchPattern(pen, "cross", theme.error);
  for (const [from, to] of holes(state.document, places, rows, state.peak, state.size)) {
    const top = frame.y(to);
    const high = frame.y(from) - top;
    if (high < 0.5) continue;
    if (pattern) {
      pen.fillStyle = pattern;
      pen.fillRect(left, top, width, high);
    }
    outline(pen, { x: left, y: top, width, height: high }, theme.error, 1);
  }
}

export function paintGhosts(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  state: ChartState,
  rows: Int32Array,
): void {
  const { moved, before, document } = state;
  if (!before || !moved) return;
  let room = GHOSTS;
  for (const row of rows) {
    if (!moved[row] || !room) continue;
    const now = rectOf(frame, document, state.places, row);
    if (now.x > frame.width) break;
    if (now.x + now.width < 0 || now.height < 1.5) continue;
    room -= 1;
    outline(pen, now, theme.text, 1);
    if (before.arena[row] === state.arena) {
      outline(pen, rectOf(frame, document, before, row), theme.muted, 1, [3, 3]);
    }
  }
}

export function paintMarks(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  state: ChartState,
  places: Places,
  rows: Int32Array,
  hovered: number,
): void {
  const { document } = state;
  const rect = (row: number) => rectOf(frame, document, places, row);
  for (const row of state.pins) {
    if (places.arena[row] !== state.arena) continue;
    const box = rect(row);
    pen.fillStyle = theme.text;
    pen.beginPath();
    pen.moveTo(box.x, box.y + box.height / 2 - 6);
    pen.lineTo(box.x + 8, box.y + box.height / 2);
    pen.lineTo(box.x, box.y + box.height / 2 + 6);
    pen.fill();
    outline(pen, box, theme.text, 1.5);
  }
  const focus = hovered >= 0 ? hovered : state.selected.size === 1 ? [...state.selected][0]! : -1;
  if (focus >= 0 && places.arena[focus] === state.arena) {
    const near = reuse(document, places, rows, focus);
    for (const row of near.before) outline(pen, rect(row), theme.muted, 1.5, [2, 2]);
    for (const row of near.after) outline(pen, rect(row), theme.muted, 1.5, [6, 3]);
  }
  for (const row of state.conflicts) {
    if (places.arena[row] === state.arena) outline(pen, rect(row), theme.error, 2, [5, 3]);
  }
  for (const row of state.selected) {
    if (places.arena[row] !== state.arena) continue;
    outline(pen, rect(row), theme.background, 5);
    outline(pen, rect(row), theme.accent, 3);
  }
  if (hovered >= 0) outline(pen, rect(hovered), theme.text, 1.5);
}

export function paintLines(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  state: ChartState,
): void {
  const needed = `${showBytes(state.size)} needed`;
  ruler(pen, frame, theme, state.size, needed, { color: theme.text, dash: [] });
  if (state.lowerBound < state.size) {
    const text = `${showBytes(state.lowerBound)} alive at the peak`;
    ruler(pen, frame, theme, state.lowerBound, text, {
      color: theme.muted,
      dash: [4, 3],
      left: true,
      below: true,
    });
  }
  const limit = limitShown(state);
  if (limit !== null) {
    const color = limit < state.size ? theme.error : theme.warn;
    ruler(pen, frame, theme, limit, `limit ${showBytes(limit)}`, {
      color,
      dash: [8, 4],
      left: true,
    });
  }
}
