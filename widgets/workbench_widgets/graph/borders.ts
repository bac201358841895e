// Lines along the borders of frames: between where the edges outside end and where those inside
// begin.
import { OUTSIDE } from "./edges.ts";
import type { Wiring } from "./picture.ts";

export interface Origin {
  readonly x: number;
  readonly y: number;
}

/** Whether a bundle of a container is to be joined. */
type Wanted = (container: number, bundle: number) => boolean;

/** Where a wiring's coordinates begin: it moves with its frame. */
export function originOf(wiring: Wiring): Origin {
  return { x: (wiring.owner?.x ?? 0) + wiring.dx, y: (wiring.owner?.y ?? 0) + wiring.dy };
}

/** Adds the lines to a path; tells whether there were any. */
export function joinBorders(path: Path2D, wiring: Wiring, wanted: Wanted = () => true): boolean {
  const { owner, placed } = wiring;
  if (!owner) return false;
  const origin = originOf(wiring);
  const inside = innerEnds(wiring, origin.x, wanted);
  const outside = outerEnds(wiring, wanted);
  const bottom = origin.y + placed.layout.height;
  const border = owner.y + owner.height;
  const above = bus(path, inside.top, outside.top, origin.y - 4, origin.y, owner.y);
  const below = bus(path, inside.bottom, outside.bottom, (bottom + border) / 2, bottom, border);
  return above || below;
}

interface Ends {
  readonly top: number[];
  readonly bottom: number[];
}

function innerEnds({ placed }: Wiring, x: number, wanted: Wanted): Ends {
  const found: Ends = { top: [], bottom: [] };
  const { bundles, layout } = placed;
  bundles.forEach((bundle, at) => {
    const [start, end] = [layout.edgeStart[at]!, layout.edgeStart[at + 1]!];
    if (end - start < 2 || !wanted(placed.item, at)) return;
    if (bundle.from === OUTSIDE) found.top.push(layout.points[2 * start]! + x);
    if (bundle.to === OUTSIDE) found.bottom.push(layout.points[2 * end - 2]! + x);
  });
  return found;
}

/** Where the edges of the container around meet this frame, at its top and at its bottom. */
function outerEnds({ around, placed }: Wiring, wanted: Wanted): Ends {
  const found: Ends = { top: [], bottom: [] };
  if (!around) return found;
  const { bundles, layout, item } = around.placed;
  const { x } = originOf(around);
  bundles.forEach((bundle, at) => {
    const [start, end] = [layout.edgeStart[at]!, layout.edgeStart[at + 1]!];
    if (end - start < 2 || !wanted(item, at)) return;
    if (bundle.to === placed.item) found.top.push(layout.points[2 * end - 2]! + x);
    if (bundle.from === placed.item) found.bottom.push(layout.points[2 * start]! + x);
  });
  return found;
}

function bus(
  path: Path2D,
  inner: readonly number[],
  outer: readonly number[],
  y: number,
  innerY: number,
  outerY: number,
): boolean {
  if (!inner.length || !outer.length) return false;
  for (const x of inner) {
    path.moveTo(x, innerY);
    path.lineTo(x, y);
  }
  for (const x of outer) {
    path.moveTo(x, outerY);
    path.lineTo(x, y);
  }
  const all = [...inner, ...outer];
  const [left, right] = [Math.min(...all), Math.max(...all)];
  if (right - left > 0.5) {
    path.moveTo(left, y);
    path.lineTo(right, y);
  }
  return true;
}
