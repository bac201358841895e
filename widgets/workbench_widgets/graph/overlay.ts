// Numbers as colours: a value for each visible box, a scale over them, and the fill.
import type { OverlayColumn } from "../contract.ts";
import { bytes, count, ms, number, percent } from "../common/format.ts";
import { inkOn, ramp, swatch } from "../common/palette.ts";
import type { GraphModel } from "./model.ts";
import type { Fill } from "./paint.ts";
import type { Picture, PictureBox } from "./picture.ts";

export function formatUnit(value: number, unit: OverlayColumn["unit"]): string {
  switch (unit) {
    case "ms":
      return ms(value);
    case "bytes":
      return bytes(value);
    case "flops":
      return value >= 1e9
        ? `${(value / 1e9).toPrecision(3)} GFLOP`
        : value >= 1e6
          ? `${(value / 1e6).toPrecision(3)} MFLOP`
          : `${count(value)} FLOP`;
    case "share":
      return percent(value);
    case "dB":
      return value === Infinity ? "exact" : `${number(value)} dB`;
    case "number":
      return number(value);
  }
}

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly log: boolean;
  /** In decibels little is bad: the bright end is the low one. */
  readonly reversed: boolean;
}

export class Overlay {
  readonly column: OverlayColumn;
  scale: Scale = { low: 0, high: 1, log: false, reversed: false };
  private readonly values = new Map<number, number>();
  private readonly model: GraphModel;

  constructor(model: GraphModel, column: OverlayColumn) {
    this.model = model;
    this.column = column;
  }

  /**
   * The value of an item: of a container that of all its nodes together. NaN where there is none.
   */
  value(item: number): number {
    let known = this.values.get(item);
    if (known === undefined) this.values.set(item, (known = this.aggregate(item)));
    return known;
  }

  private aggregate(item: number): number {
    const { aggregate, values } = this.column;
    let result = NaN;
    for (const node of this.model.members(item)) {
      const value = values[node]!;
      if (Number.isNaN(value)) continue;
      if (Number.isNaN(result)) result = value;
      else if (aggregate === "sum") result += value;
      else result = aggregate === "max" ? Math.max(result, value) : Math.min(result, value);
    }
    return result;
  }

  /** Scales to the closed boxes that are visible. */
  fit(picture: Picture, log: boolean): void {
    let [low, high] = [Infinity, -Infinity];
    for (const box of picture.boxes) {
      if (box.open) continue;
      const value = this.value(box.item);
      if (!Number.isFinite(value) || (log && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const reversed = this.column.unit === "dB";
    if (low > high) [low, high] = [0, 1];
    else if (!log && !reversed) low = Math.min(0, low);
    this.scale = { low, high, log, reversed };
  }

  /** 0 to 1, or null where there is no number. */
  share(value: number): number | null {
    const { low, high, log, reversed } = this.scale;
    if (!Number.isFinite(value)) return value === Infinity ? (reversed ? 0 : 1) : null;
    if (log && value <= 0) return 0;
    const place = (at: number) => (log ? Math.log(at) : at);
    const range = place(high) - place(low);
    const share = range > 0 ? (place(value) - place(low)) / range : 1;
    const bounded = Math.min(Math.max(share, 0), 1);
    return reversed ? 1 - bounded : bounded;
  }

  fill(box: PictureBox): Fill | null {
    const share = this.share(this.value(box.item));
    if (share === null) return { color: "transparent", ink: null, hatch: "none", share: null };
    const text = formatUnit(this.value(box.item), this.column.unit);
    return { color: ramp(share), ink: inkOn(share), hatch: "none", share, text };
  }
}

/**
 * Fills by partition: a colour and a hatch for each tag; a container of several tags stays plain.
 */
export class TagFill {
  readonly tags: readonly string[];
  private readonly model: GraphModel;
  private readonly order: Map<string, number>;
  private readonly known = new Map<number, number>();

  constructor(model: GraphModel) {
    this.model = model;
    this.tags = [...new Set(model.document.tag.values)].filter((tag) => tag);
    this.order = new Map(this.tags.map((tag, index) => [tag, index]));
  }

  fill(box: PictureBox): Fill | null {
    const index = this.of(box.item);
    if (index < 0) return { color: "transparent", ink: null, hatch: "none", share: null };
    const look = swatch(index);
    return { color: `${look.color}55`, ink: null, hatch: look.hatch, share: null };
  }

  private of(item: number): number {
    let known = this.known.get(item);
    if (known === undefined) {
      const tags = new Set<string>();
      for (const node of this.model.members(item)) {
        if (this.model.home[node] === node) tags.add(this.model.document.tag.get(node));
      }
      known = tags.size === 1 ? (this.order.get([...tags][0]!) ?? -1) : -1;
      this.known.set(item, known);
    }
    return known;
  }
}
