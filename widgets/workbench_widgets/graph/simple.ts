// A plain layout by ranks: what the tests arrange with, so that they do not depend on the compiled
// engine.
import type { Engine, EngineInput, EngineResult } from "./arrange.ts";

const GAP_X = 24;
const GAP_Y = 34;
const MARGIN = 14;

export const simpleEngine: Engine = {
  layout(input: EngineInput): EngineResult {
    const { width, height, src, dst } = input;
    const n = width.length;
    const rank = new Int32Array(n);
    for (let round = 0; round < n; round++) {
      let moved = false;
      for (let edge = 0; edge < src.length; edge++) {
        const [from, to] = [src[edge]!, dst[edge]!];
        if (from < 0 || to < 0 || from >= to || rank[to]! > rank[from]!) continue;
        rank[to] = rank[from]! + 1;
        moved = true;
      }
      if (!moved) break;
    }
    const rows: number[][] = [];
    for (let at = 0; at < n; at++) (rows[rank[at]!] ??= []).push(at);
    const x = new Float32Array(n);
    const y = new Float32Array(n);
    const widths = rows.map((row) => row.reduce((sum, at) => sum + width[at]! + GAP_X, -GAP_X));
    const full = Math.max(0, ...widths) + 2 * MARGIN;
    let top = MARGIN;
    rows.forEach((row, at) => {
      let left = (full - widths[at]!) / 2;
      let tallest = 0;
      for (const box of row) {
        x[box] = left;
        y[box] = top;
        left += width[box]! + GAP_X;
        tallest = Math.max(tallest, height[box]!);
      }
      top += tallest + GAP_Y;
    });
    const bottom = Math.max(top - GAP_Y, MARGIN) + MARGIN;
    const edgeStart = new Int32Array(src.length + 1);
    const points: number[] = [];
    for (let edge = 0; edge < src.length; edge++) {
      const [from, to] = [src[edge]!, dst[edge]!];
      const x1 = from < 0 ? x[to]! + width[to]! / 2 : x[from]! + width[from]! / 2;
      const y1 = from < 0 ? 0 : y[from]! + height[from]!;
      const x2 = to < 0 ? x1 : x[to]! + width[to]! / 2;
      const y2 = to < 0 ? bottom : y[to]!;
      const bend = y2 - GAP_Y / 2;
      points.push(x1, y1, ...(x1 === x2 ? [] : [x1, bend, x2, bend]), x2, y2);
      edgeStart[edge + 1] = points.length / 2;
    }
    return { x, y, width: full, height: bottom, edgeStart, points: Float32Array.from(points) };
  },
};
