// Rectangles found by place: a grid of cells, each with the rectangles that meet it.
import type { Box } from "../common/viewport.ts";

const MOST_CELLS = 1 << 16;

export class Grid<T extends Box> {
  private readonly cells = new Map<number, T[]>();
  private readonly size: number;
  private readonly columns: number;
  private readonly extent: Box;

  /** Cells are about as large as a few boxes; the extent's number of cells is bounded. */
  constructor(boxes: readonly T[], extent: Box, size = 400) {
    const area = Math.max(extent.width, 1) * Math.max(extent.height, 1);
    this.size = Math.max(size, Math.sqrt(area / MOST_CELLS));
    this.columns = Math.max(1, Math.ceil(extent.width / this.size) + 1);
    this.extent = extent;
    for (const box of boxes) {
      this.visit(box, (cell) => {
        const known = this.cells.get(cell);
        if (known) known.push(box);
        else this.cells.set(cell, [box]);
      });
    }
  }

  /**
   * Boxes that meet a rectangle, in the order in which they were given within a cell, each once.
   */
  query(rect: Box): T[] {
    const found = new Set<T>();
    this.visit(rect, (cell) => {
      for (const box of this.cells.get(cell) ?? []) if (meets(box, rect)) found.add(box);
    });
    return [...found];
  }

  private visit(rect: Box, action: (cell: number) => void): void {
    const column = (x: number) => Math.floor((x - this.extent.x) / this.size);
    const row = (y: number) => Math.floor((y - this.extent.y) / this.size);
    const last = Math.ceil(this.extent.height / this.size);
    const [left, right] = [
      Math.max(0, column(rect.x)),
      Math.min(this.columns - 1, column(rect.x + rect.width)),
    ];
    const [top, bottom] = [Math.max(0, row(rect.y)), Math.min(last, row(rect.y + rect.height))];
    for (let y = top; y <= bottom; y++)
      for (let x = left; x <= right; x++) action(y * this.columns + x);
  }
}

export function meets(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

export function contains(box: Box, x: number, y: number): boolean {
  return x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
}
