// Places for all visible boxes: one container at a time, equal ones once.
import type { Bundle, Bundles } from "./edges.ts";
import { OUTSIDE } from "./edges.ts";
import { HEADER, TITLE_SIZE, type Labels, type Measure } from "./labels.ts";
import type { GraphModel } from "./model.ts";
import type { OpenState } from "./state.ts";

/** The part of the layout engine that is used here. */
export interface Engine {
  layout(input: EngineInput): EngineResult;
}

export interface EngineInput {
  readonly width: Float32Array;
  readonly height: Float32Array;
  readonly src: Int32Array;
  readonly dst: Int32Array;
  readonly weight: Int32Array;
  readonly anchorX: Float32Array;
  readonly anchorY: Float32Array;
}

export interface EngineResult {
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly width: number;
  readonly height: number;
  readonly edgeStart: Int32Array;
  readonly points: Float32Array;
}

/** Where a part of a container was before, relative to the container; null if nobody knows. */
export type Anchor = (
  container: number,
  part: number,
) => { readonly x: number; readonly y: number } | null;

export interface PlacedContainer {
  readonly item: number;
  readonly parts: readonly number[];
  readonly bundles: readonly Bundle[];
  readonly layout: EngineResult;
  /** Containers that are open in this one, by part. */
  readonly open: ReadonlyMap<number, PlacedContainer>;
  readonly width: number;
  readonly height: number;
}

const PADDING = 10;

/** Lays out with one engine, and remembers: an engine call costs far more than a look-up. */
export class Arranger {
  private readonly engine: Engine;
  private readonly cache = new Map<string, EngineResult>();
  /** Calls of the engine, for measuring. */
  calls = 0;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  arrange(
    model: GraphModel,
    bundles: Bundles,
    state: OpenState,
    labels: Labels,
    measure: Measure,
    anchor: Anchor | null = null,
  ): PlacedContainer {
    const place = (item: number): PlacedContainer => {
      const parts = model.parts[item]!;
      const open = new Map<number, PlacedContainer>();
      const width = new Float32Array(parts.length);
      const height = new Float32Array(parts.length);
      parts.forEach((part, at) => {
        if (state.isOpen(model, part)) {
          const inner = place(part);
          open.set(part, inner);
          width[at] = inner.width;
          height[at] = inner.height;
        } else {
          const size = labels.of(part);
          width[at] = size.width;
          height[at] = size.height;
        }
      });
      const own = bundles.of(item);
      const layout = this.layout(parts, width, height, own, item, anchor);
      if (item === model.root)
        return {
          item,
          parts,
          bundles: own,
          layout,
          open,
          width: layout.width,
          height: layout.height,
        };
      // Room for the title, wherever the content is narrower.
      const title = labels.of(item);
      const needed = measure(title.title, TITLE_SIZE, true) + 44;
      return {
        item,
        parts,
        bundles: own,
        layout,
        open,
        width: Math.max(layout.width, Math.min(needed, 320)),
        height: layout.height + HEADER + PADDING,
      };
    };
    return place(model.root);
  }

  private layout(
    parts: readonly number[],
    width: Float32Array,
    height: Float32Array,
    bundles: readonly Bundle[],
    item: number,
    anchor: Anchor | null,
  ): EngineResult {
    const places = new Map(parts.map((part, at) => [part, at]));
    const end = (part: number) => (part === OUTSIDE ? OUTSIDE : places.get(part)!);
    const src = Int32Array.from(bundles, (bundle) => end(bundle.from));
    const dst = Int32Array.from(bundles, (bundle) => end(bundle.to));
    const weight = Int32Array.from(bundles, (bundle) => Math.min(bundle.count, 1000));
    const anchorX = new Float32Array(parts.length).fill(NaN);
    const anchorY = new Float32Array(parts.length).fill(NaN);
    if (anchor) {
      parts.forEach((part, at) => {
        const known = anchor(item, part);
        if (!known) return;
        anchorX[at] = known.x;
        anchorY[at] = known.y;
      });
    }
    const key = [width, height, src, dst, weight, ...(anchor ? [anchorX, anchorY] : [])].join("|");
    let known = this.cache.get(key);
    if (!known) {
      this.calls++;
      known = this.engine.layout({ width, height, src, dst, weight, anchorX, anchorY });
      if (this.cache.size > 1500) this.cache.clear();
      this.cache.set(key, known);
    }
    return known;
  }
}
