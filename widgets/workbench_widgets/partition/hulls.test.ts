import { describe, expect, it } from "vitest";
import { hullsOf, insidePolygon, outline, roundLoop, type Point, type TaggedBox } from "./hulls.ts";

const OPTIONS = { pad: 4, reach: 40 };
const box = (tag: number, x: number, y: number, width = 100, height = 30, holder: unknown = null): TaggedBox => ({
  tag, x, y, width, height, holder,
});

/** Twice the area with the sign of the direction: positive with the inside to the right (y down). */
function area(loop: readonly Point[]): number {
  return loop.reduce((sum, p, at) => {
    const q = loop[(at + 1) % loop.length]!;
    return sum + p.x * q.y - q.x * p.y;
  }, 0) / 2;
}

describe("outline", () => {
  it("is the rectangle itself for one", () => {
    const loops = outline([{ x: 1, y: 2, width: 10, height: 5 }]);
    expect(loops).toHaveLength(1);
    expect(loops[0]).toHaveLength(4);
    expect(area(loops[0]!)).toBe(50);
  });

  it("has twelve corners for a cross, and the area of the union", () => {
    const loops = outline([
      { x: 0, y: 10, width: 30, height: 10 },
      { x: 10, y: 0, width: 10, height: 30 },
    ]);
    expect(loops).toHaveLength(1);
    expect(loops[0]).toHaveLength(12);
    expect(area(loops[0]!)).toBe(500);
  });

  it("has a loop of the other direction around a hole", () => {
    const loops = outline([
      { x: 0, y: 0, width: 30, height: 10 },
      { x: 0, y: 20, width: 30, height: 10 },
      { x: 0, y: 0, width: 10, height: 30 },
      { x: 20, y: 0, width: 10, height: 30 },
    ]);
    expect(loops.map(area).sort((a, b) => a - b)).toEqual([-100, 900]);
  });

  it("keeps two cells that touch at a corner apart", () => {
    const loops = outline([
      { x: 0, y: 0, width: 10, height: 10 },
      { x: 10, y: 10, width: 10, height: 10 },
    ]);
    expect(loops.map((loop) => loop.length)).toEqual([4, 4]);
    expect(loops.map(area)).toEqual([100, 100]);
  });
});

describe("hullsOf", () => {
  it("joins neighbours of a tag into one outline", () => {
    const found = hullsOf([box(0, 0, 0), box(0, 20, 60)], [], OPTIONS);
    expect(found).toHaveLength(1);
    expect(found[0]!.boxes).toBe(2);
    expect(found[0]!.bounds).toEqual({ x: -4, y: -4, width: 128, height: 98 });
  });

  it("joins boxes that stand side by side", () => {
    expect(hullsOf([box(0, 0, 0), box(0, 130, 0)], [], OPTIONS)).toHaveLength(1);
  });

  it("does not join across what stands between, across another tag, or across a frame", () => {
    const between = { x: 30, y: 35, width: 20, height: 20 };
    expect(hullsOf([box(0, 0, 0), box(0, 0, 60)], [between], OPTIONS)).toHaveLength(2);
    const other = box(1, 30, 35, 20, 20);
    expect(hullsOf([box(0, 0, 0), box(0, 0, 60), other], [], OPTIONS)).toHaveLength(3);
    expect(hullsOf([box(0, 0, 0, 100, 30, "a"), box(0, 0, 60, 100, 30, "b")], [], OPTIONS)).toHaveLength(2);
  });

  it("does not join what is far apart", () => {
    expect(hullsOf([box(0, 0, 0), box(0, 0, 200)], [], OPTIONS)).toHaveLength(2);
    expect(hullsOf([box(0, 0, 0), box(0, 300, 0)], [], OPTIONS)).toHaveLength(2);
  });

  it("stays fast for thousands of boxes", () => {
    const boxes = Array.from({ length: 5000 }, (_, at) => box(at % 50, (at % 40) * 120, Math.floor(at / 40) * 50));
    const start = performance.now();
    const found = hullsOf(boxes, [], OPTIONS);
    expect(found.reduce((sum, hull) => sum + hull.boxes, 0)).toBe(5000);
    expect(performance.now() - start).toBeLessThan(1500);
  });
});

describe("insidePolygon", () => {
  const shape = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 10 }, { x: 5, y: 3 }, { x: 0, y: 10 }];
  it("tells inside from outside, also in a notch", () => {
    expect(insidePolygon(2, 2, shape)).toBe(true);
    expect(insidePolygon(5, 8, shape)).toBe(false);
    expect(insidePolygon(20, 2, shape)).toBe(false);
  });
});

describe("roundLoop", () => {
  it("rounds every corner and never more than half an edge", () => {
    const arcs: number[] = [];
    const pen = {
      moveTo() {}, closePath() {},
      arcTo: (_a: number, _b: number, _c: number, _d: number, radius: number) => arcs.push(radius),
    };
    roundLoop(pen as unknown as Path2D, outline([{ x: 0, y: 0, width: 100, height: 6 }])[0]!, 8);
    expect(arcs).toEqual([3, 3, 3, 3]);
  });
});
