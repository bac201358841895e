// Draws bundles: orthogonal lines, thicker for more edges, joined along the borders that they
// cross.
import type { Theme } from "../common/theme.ts";
import type { Box } from "../common/viewport.ts";
import { OUTSIDE } from "./edges.ts";
import { meets } from "./grid.ts";
import type { Style } from "./paint.ts";
import { joinBorders, originOf, type Origin } from "./borders.ts";
import type { Picture } from "./picture.ts";

const COUNTS = 0.55;
const ARROWS = 0.3;
/** Below this many pixels a line is not drawn. */
const SHORTEST = 1.5;

/** What comes in is blue and solid, what goes out orange and dashed. */
export const IN = "#0072B2";
export const OUT = "#D55E00";
const DASH: readonly number[] = [6, 3];

export function paintEdges(
  pen: CanvasRenderingContext2D,
  picture: Picture,
  sight: Box,
  scale: number,
  theme: Theme,
  style: Style,
): void {
  const { highlight } = style;
  const widths = new Map<number, Path2D>();
  const arrows = new Path2D();
  const counts: { x: number; y: number; text: string }[] = [];
  const special: (() => void)[] = [];
  for (const wiring of picture.wirings) {
    const frame = wiring.owner ?? picture.extent;
    if (!meets(frame, sight) || frame.width * scale < 4) continue;
    const origin = originOf(wiring);
    const lit = highlight && {
      incoming: highlight.incoming.get(wiring.placed.item),
      outgoing: highlight.outgoing.get(wiring.placed.item),
    };
    const { bundles, layout } = wiring.placed;
    bundles.forEach((bundle, at) => {
      const [start, end] = [layout.edgeStart[at]!, layout.edgeStart[at + 1]!];
      const points = layout.points.subarray(2 * start, 2 * end);
      if (points.length < 4 || !inSight(points, origin, sight, scale)) return;
      const arrow = bundle.to !== OUTSIDE && !wiring.placed.open.has(bundle.to);
      if (lit?.incoming?.has(at))
        special.push(() => lone(pen, points, origin, IN, [], scale, arrow, sight));
      else if (lit?.outgoing?.has(at))
        special.push(() => lone(pen, points, origin, OUT, DASH, scale, arrow, sight));
      else {
        const width =
          scale < ARROWS ? 1 : Math.min(4, 1 + Math.round(Math.log2(bundle.count)) * 0.5);
        let path = widths.get(width);
        if (!path) widths.set(width, (path = new Path2D()));
        trace(path, points, origin, scale < ARROWS ? 0 : CORNER, sight);
        if (arrow && scale >= ARROWS) head(arrows, points, origin);
      }
      if (bundle.count > 1 && scale >= COUNTS && bundle.from !== OUTSIDE && bundle.to !== OUTSIDE)
        counts.push({ ...middle(points, origin), text: `×${bundle.count}` });
    });
    if (!wiring.owner || scale < 0.1) continue;
    let path = widths.get(1);
    if (!path) widths.set(1, (path = new Path2D()));
    joinBorders(path, wiring);
    if (!highlight) continue;
    for (const [carried, color, dash] of [
      [highlight.incoming, IN, []],
      [highlight.outgoing, OUT, DASH],
    ] as const) {
      const joint = new Path2D();
      if (joinBorders(joint, wiring, (item, at) => carried.get(item)?.has(at) ?? false)) {
        special.push(() => stroke(pen, joint, color, dash, scale));
      }
    }
  }
  pen.save();
  pen.globalAlpha = highlight ? 0.35 * style.edges : style.edges;
  pen.strokeStyle = pen.fillStyle = theme.muted;
  for (const [width, path] of widths) {
    pen.lineWidth = Math.max(width, 0.6 / scale);
    pen.stroke(path);
  }
  pen.fill(arrows);
  pen.restore();
  for (const draw of special) draw();
  paintCounts(pen, counts, theme);
}

function inSight(points: Float32Array, origin: Origin, sight: Box, scale: number): boolean {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let at = 0; at < points.length; at += 2) {
    left = Math.min(left, points[at]!);
    right = Math.max(right, points[at]!);
    top = Math.min(top, points[at + 1]!);
    bottom = Math.max(bottom, points[at + 1]!);
  }
  if (Math.max(right - left, bottom - top) * scale < SHORTEST) return false;
  const [x, y] = [origin.x + left, origin.y + top];
  return (
    x <= sight.x + sight.width &&
    y <= sight.y + sight.height &&
    origin.x + right >= sight.x &&
    origin.y + bottom >= sight.y
  );
}

const CORNER = 4;

/**
 * Adds a polyline with round corners; of what is out of sight nothing, for stroking it takes as
 * long.
 */
function trace(
  path: Path2D,
  points: Float32Array,
  { x, y }: Origin,
  corner: number,
  sight: Box,
): void {
  const [left, top] = [sight.x - x, sight.y - y];
  const [right, bottom] = [left + sight.width, top + sight.height];
  const last = points.length - 2;
  let down = false;
  for (let at = 2; at <= last; at += 2) {
    const [ax, ay, bx, by] = [points[at - 2]!, points[at - 1]!, points[at]!, points[at + 1]!];
    if (
      Math.max(ax, bx) < left ||
      Math.min(ax, bx) > right ||
      Math.max(ay, by) < top ||
      Math.min(ay, by) > bottom
    ) {
      down = false;
      continue;
    }
    if (!down) path.moveTo(ax + x, ay + y);
    down = true;
    if (at < last && corner > 0) {
      const [cx, cy] = [points[at + 2]!, points[at + 3]!];
      const radius = Math.min(
        corner,
        (Math.abs(bx - ax) + Math.abs(by - ay)) / 2,
        (Math.abs(cx - bx) + Math.abs(cy - by)) / 2,
      );
      if (radius > 0.5) {
        path.arcTo(bx + x, by + y, cx + x, cy + y, radius);
        continue;
      }
    }
    path.lineTo(bx + x, by + y);
  }
}

function head(path: Path2D, points: Float32Array, origin: Origin): void {
  const last = points.length - 2;
  const [x, y] = [points[last]! + origin.x, points[last + 1]! + origin.y];
  const [dx, dy] = [points[last]! - points[last - 2]!, points[last + 1]! - points[last - 1]!];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  path.moveTo(x, y);
  path.lineTo(x - 6 * ux - 3 * uy, y - 6 * uy + 3 * ux);
  path.lineTo(x - 6 * ux + 3 * uy, y - 6 * uy - 3 * ux);
  path.closePath();
}

function lone(
  pen: CanvasRenderingContext2D,
  points: Float32Array,
  origin: Origin,
  color: string,
  dash: readonly number[],
  scale: number,
  arrow: boolean,
  sight: Box,
): void {
  const path = new Path2D();
  trace(path, points, origin, CORNER, sight);
  stroke(pen, path, color, dash, scale);
  if (!arrow) return;
  const tip = new Path2D();
  head(tip, points, origin);
  pen.fillStyle = color;
  pen.fill(tip);
}

function stroke(
  pen: CanvasRenderingContext2D,
  path: Path2D,
  color: string,
  dash: readonly number[],
  scale: number,
): void {
  pen.strokeStyle = color;
  pen.lineWidth = Math.max(2, 1.6 / scale);
  pen.setLineDash([...dash]);
  pen.stroke(path);
  pen.setLineDash([]);
}

function middle(points: Float32Array, origin: Origin): Origin {
  let best = 0;
  let length = -1;
  for (let at = 2; at < points.length; at += 2) {
    const own =
      Math.abs(points[at]! - points[at - 2]!) + Math.abs(points[at + 1]! - points[at - 1]!);
    if (own > length) [best, length] = [at, own];
  }
  return {
    x: origin.x + (points[best]! + points[best - 2]!) / 2,
    y: origin.y + (points[best + 1]! + points[best - 1]!) / 2,
  };
}

function paintCounts(
  pen: CanvasRenderingContext2D,
  counts: readonly { x: number; y: number; text: string }[],
  theme: Theme,
): void {
  pen.font = `9px ${theme.font || "sans-serif"}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const { x, y, text } of counts) {
    const width = pen.measureText(text).width + 6;
    pen.fillStyle = theme.background;
    pen.beginPath();
    pen.roundRect(x - width / 2, y - 6, width, 12, 6);
    pen.fill();
    pen.lineWidth = 0.6;
    pen.strokeStyle = theme.border;
    pen.stroke();
    pen.fillStyle = theme.text;
    pen.fillText(text, x, y + 0.5);
  }
}
