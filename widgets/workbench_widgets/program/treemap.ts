// Rectangles whose areas are bytes, as square as can be.
// Bruls, Huizing, van Wijk: "Squarified Treemaps" (2000). Python's half, treemap.py, does the same.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Divides a rectangle; sizes are positive and descending, areas come out in their proportion. */
export function squarify(sizes: readonly number[], box: Box): Box[] {
  const found: Box[] = [];
  let { x, y, width, height } = box;
  let left = sizes.reduce((sum, size) => sum + size, 0);
  let start = 0;
  while (start < sizes.length) {
    const scale = left > 0 ? (width * height) / left : 0;
    const side = Math.min(width, height);
    let end = start + 1;
    let total = sizes[start]!;
    // The row's largest is its first, its smallest the last: sizes descend.
    while (end < sizes.length) {
      const more = total + sizes[end]!;
      if (
        worst(sizes[start]!, sizes[end]!, more, side, scale) >
        worst(sizes[start]!, sizes[end - 1]!, total, side, scale)
      )
        break;
      total = more;
      end += 1;
    }
    const thick = side > 0 ? (total * scale) / side : 0;
    let along = 0;
    for (let at = start; at < end; at++) {
      const long = thick > 0 ? (sizes[at]! * scale) / thick : 0;
      found.push(
        width >= height
          ? { x, y: y + along, width: thick, height: long }
          : { x: x + along, y, width: long, height: thick },
      );
      along += long;
    }
    if (width >= height) {
      x += thick;
      width -= thick;
    } else {
      y += thick;
      height -= thick;
    }
    left -= total;
    start = end;
  }
  return found;
}

function worst(most: number, least: number, total: number, side: number, scale: number): number {
  if (!side || !scale) return 0;
  const thick = (total * scale) / side;
  const ratio = (size: number) => {
    const long = (size * scale) / thick;
    return long > 0 ? Math.max(long / thick, thick / long) : Infinity;
  };
  return Math.max(ratio(most), ratio(least));
}

/** What is drawn: a part of the file, or a group of parts. */
export interface TreeNode {
  readonly name: string;
  /** Kind of a part; `group` for a group that is none. */
  readonly kind: string;
  bytes: number;
  /** Row in the document; -1 for a group. */
  readonly row: number;
  readonly children: TreeNode[];
  parent: TreeNode | null;
}

export interface Cell extends Box {
  readonly node: TreeNode;
  readonly depth: number;
  /** Height of the line with the name above what is inside; 0 where there is no room. */
  readonly head: number;
}

const HEAD = 17;
const LEAST = 4;

/** Cells of a tree in a box, outer ones before inner ones. What is too small is not divided. */
export function layOut(root: TreeNode, box: Box): Cell[] {
  const cells: Cell[] = [];
  const place = (node: TreeNode, at: Box, depth: number) => {
    const divided = node.children.length > 0 && at.width > 2 * LEAST && at.height > 2 * LEAST;
    const head = divided && at.width > 40 && at.height > 2.5 * HEAD && depth > 0 ? HEAD : 0;
    cells.push({ ...at, node, depth, head });
    if (!divided) return;
    const pad = depth > 0 ? 2 : 0;
    const inner = {
      x: at.x + pad,
      y: at.y + head + (head ? 0 : pad),
      width: Math.max(0, at.width - 2 * pad),
      height: Math.max(0, at.height - head - (head ? pad : 2 * pad)),
    };
    const children = node.children
      .filter((child) => child.bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
    const boxes = squarify(
      children.map((child) => child.bytes),
      inner,
    );
    children.forEach((child, index) => place(child, boxes[index]!, depth + 1));
  };
  place(root, box, 0);
  return cells;
}

/** The innermost cell at a point, or null. */
export function cellAt(cells: readonly Cell[], x: number, y: number): Cell | null {
  for (let at = cells.length - 1; at >= 0; at--) {
    const cell = cells[at]!;
    if (x >= cell.x && x < cell.x + cell.width && y >= cell.y && y < cell.y + cell.height)
      return cell;
  }
  return null;
}

/** The nearest cell without children in a direction, for walking by arrows. */
export function neighbor(cells: readonly Cell[], from: Cell, dx: number, dy: number): Cell | null {
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  let best: Cell | null = null;
  let distance = Infinity;
  for (const cell of cells) {
    if (cell === from || cell.node.children.length) continue;
    const away = { x: cell.x + cell.width / 2 - x, y: cell.y + cell.height / 2 - y };
    const ahead = away.x * dx + away.y * dy;
    const aside = Math.abs(away.x * dy + away.y * dx);
    if (ahead <= 0.5) continue;
    const far = ahead + 2 * aside;
    if (far < distance) [best, distance] = [cell, far];
  }
  return best;
}
