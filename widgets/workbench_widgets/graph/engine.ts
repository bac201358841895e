// The compiled layout engine, as the arranger uses it; loaded once for the page.
import { loadLayout } from "../../layout/engine.ts";
import type { Engine } from "./arrange.ts";

const OPTIONS = { gap_x: 22, gap_y: 30, margin: 14, sweeps: 8, max_span: 24 };

export async function loadEngine(): Promise<Engine> {
  const engine = await loadLayout();
  return {
    layout({ width, height, src, dst, weight, anchorX, anchorY }) {
      const anchored = anchorX.some((place) => !Number.isNaN(place));
      const anchors = anchored ? { anchor_x: anchorX, anchor_y: anchorY } : {};
      const made = engine.layout({ width, height, src, dst, weight, ...anchors, options: OPTIONS });
      return {
        x: made.x,
        y: made.y,
        width: made.width,
        height: made.height,
        edgeStart: made.edge_start,
        points: made.points,
      };
    },
  };
}
