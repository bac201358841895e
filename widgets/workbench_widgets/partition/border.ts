// What crosses the border of a partition, box by box: bytes in at the top, bytes out at the bottom.
import type { GraphDocument, GraphScene, SceneBox } from "../graph/scene.ts";
import { bytes } from "../common/format.ts";
import type { Theme } from "../common/theme.ts";
import type { PartitionEditor } from "./editor.ts";

// Weights go into the delegate once, when it is made.
const CONSTANTS = new Set(["parameter", "buffer", "constant", "attribute"]);

export interface Crossing {
  /** By row of a consumer inside: bytes that it takes from outside. */
  readonly into: ReadonlyMap<number, number>;
  /** By row of a producer inside: bytes that it hands out. */
  readonly out: ReadonlyMap<number, number>;
}

/** The values that cross the borders of these tags; each counted once where it enters and where it leaves. */
export function crossingOf(document: GraphDocument, editor: PartitionEditor, tags: ReadonlySet<string>): Crossing {
  const into = new Map<number, number>();
  const out = new Map<number, number>();
  const entered = new Set<string>();
  const { src, dst, edge_bytes: size } = document;
  for (let edge = 0; edge < src.length; edge++) {
    const [from, to] = [src[edge]!, dst[edge]!];
    const [before, after] = [editor.tagOf(from)?.name, editor.tagOf(to)?.name];
    if (before === after || CONSTANTS.has(document.kind.get(from))) continue;
    const value = size[edge]!;
    if (after !== undefined && tags.has(after)) {
      // A value that several nodes of a tag use goes in once.
      const key = `${from} ${after}`;
      if (!entered.has(key)) into.set(to, (into.get(to) ?? 0) + value);
      entered.add(key);
    }
    if (before !== undefined && tags.has(before)) out.set(from, Math.max(out.get(from) ?? 0, value));
  }
  return { into, out };
}

/** Chips with the bytes at the boxes' edges. */
export function drawCrossing(
  pen: CanvasRenderingContext2D, scene: GraphScene, crossing: Crossing, scale: number, theme: Theme,
): void {
  const at = (rows: ReadonlyMap<number, number>, sign: string, bottom: boolean) => {
    const sums = new Map<SceneBox, number>();
    for (const [row, value] of rows) {
      const box = scene.boxOf(row);
      sums.set(box, (sums.get(box) ?? 0) + value);
    }
    for (const [box, value] of sums) chip(pen, box, `${sign} ${bytes(value)}`, bottom, scale, theme);
  };
  at(crossing.into, "→ in", false);
  at(crossing.out, "out →", true);
}

function chip(pen: CanvasRenderingContext2D, box: SceneBox, text: string, bottom: boolean, scale: number, theme: Theme): void {
  const size = Math.min(Math.max(9.5, 8.5 / scale), 18);
  pen.font = `${size}px ${theme.font || "sans-serif"}`;
  const width = pen.measureText(text).width + 8;
  const height = size * 1.35;
  // Beside the box: above and below it are edges and names.
  const x = box.x - width - 10;
  // Both keep apart from one another where the box is lower than they are.
  const middle = box.y + box.height / 2;
  const y = bottom ? Math.max(box.y + box.height - height, middle) : Math.min(box.y, middle - height);
  pen.beginPath();
  pen.roundRect(x, y, width, height, height / 2);
  pen.fillStyle = theme.background;
  pen.fill();
  pen.lineWidth = 1;
  pen.strokeStyle = theme.muted;
  pen.stroke();
  pen.fillStyle = theme.text;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(text, x + 4, y + height / 2 + 0.5);
}
