// The values that an observer saw, and which of them are represented: tails beyond the range are marked by colour and
// hatch.
import type { QuantizationObservers } from "../contract.ts";
import { svg, unique } from "../common/dom.ts";
import { count, number } from "../common/format.ts";
import { Figure, type Drawn } from "./figure.ts";
import { binsOf, share, ticks, tickText, type Bin } from "./model.ts";

const HEIGHT = 150;
const TOP = 18;
const BOTTOM = 22;
const SIDE = 10;

export function histogramLabel(seen: QuantizationObservers, at: number): string {
  return (
    `Histogram of ${seen.values.get(at)}: ${number(seen.min[at]!)} to ${number(seen.max[at]!)} seen, ` +
    `${number(seen.low[at]!)} to ${number(seen.high[at]!)} represented, ${share(seen.clipped[at]!)} clipped.`
  );
}

export function makeHistogram(seen: QuantizationObservers, at: number, log: boolean): Figure {
  const clipped = seen.clipped[at]!;
  const rest = `${count(seen.elements[at]!)} values; ${
    clipped > 0 ? `${share(clipped)} clipped (hatched)` : "nothing is clipped"
  }`;
  return new Figure(histogramLabel(seen, at), HEIGHT, rest, (width) => draw(seen, at, log, width));
}

function draw(seen: QuantizationObservers, at: number, log: boolean, width: number): Drawn {
  const bins = binsOf(seen, at);
  const [low, high] = [seen.low[at]!, seen.high[at]!];
  const first = Math.min(bins[0]?.low ?? low, low);
  const last = Math.max(bins.at(-1)?.high ?? high, high);
  const across = (width - 2 * SIDE) / (last - first || 1);
  const x = (value: number) => SIDE + (value - first) * across;
  const size = (amount: number) => (log ? Math.log1p(amount) : amount);
  const most = Math.max(1e-9, ...bins.map((bin) => size(bin.count)));
  const floor = HEIGHT - BOTTOM;
  const y = (amount: number) => floor - ((floor - TOP) * size(amount)) / most;
  const hatch = unique("hatch");
  const parts: SVGElement[] = [
    svg(
      "defs",
      {},
      svg(
        "pattern",
        { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("rect", { width: 5, height: 5, class: "wb-quant-clipped" }),
        svg("rect", { width: 1.6, height: 5, class: "wb-quant-stripe" }),
      ),
    ),
    svg("rect", { class: "wb-quant-range", x: x(low), y: TOP, width: Math.max(0, x(high) - x(low)), height: floor - TOP }),
  ];
  for (const bin of bins) if (bin.count) parts.push(...bar(bin, low, high, x, y, floor, hatch));
  parts.push(...axis(first, last, width, floor, x), ...limits(low, high, width, floor, x));
  const places = bins.map((bin) => ({
    x: x(bin.low),
    width: x(bin.high) - x(bin.low),
    text: `${number(bin.low)} to ${number(bin.high)}: ${count(bin.count)} ${bin.count === 1 ? "value" : "values"}${bin.clipped ? ", clipped" : ""}`,
  }));
  return { parts, places, top: TOP, bottom: floor };
}

/** A bin; where an end of the range goes through it, in two parts. */
function bar(
  bin: Bin,
  low: number,
  high: number,
  x: (value: number) => number,
  y: (amount: number) => number,
  floor: number,
  hatch: string,
): SVGElement[] {
  const cuts = [bin.low, Math.min(Math.max(low, bin.low), bin.high), Math.min(Math.max(high, bin.low), bin.high), bin.high];
  // A bin that is a small share of the picture stays visible.
  const top = Math.min(y(bin.count), floor - 1);
  return [0, 1, 2].flatMap((part) => {
    const [from, to] = [cuts[part]!, cuts[part + 1]!];
    if (to <= from) return [];
    const inside = part === 1;
    const gap = x(to) - x(from) > 3 ? 0.6 : 0;
    return svg("rect", {
      class: inside ? "wb-quant-inside" : "wb-quant-outside",
      fill: inside ? null : `url(#${hatch})`,
      x: x(from),
      y: top,
      width: Math.max(0.6, x(to) - x(from) - gap),
      height: floor - top,
    });
  });
}

function axis(first: number, last: number, width: number, floor: number, x: (value: number) => number): SVGElement[] {
  const marks = ticks(first, last, Math.max(2, Math.floor(width / 90)));
  return [
    svg("line", { class: "wb-quant-axis", x1: SIDE, x2: width - SIDE, y1: floor + 0.5, y2: floor + 0.5 }),
    ...marks.flatMap((value) => [
      svg("line", { class: "wb-quant-axis", x1: x(value), x2: x(value), y1: floor, y2: floor + 4 }),
      svg("text", { class: "wb-quant-tick", x: x(value), y: floor + 16, "text-anchor": anchor(x(value), width) }, tickText(value)),
    ]),
  ];
}

/** The ends of what is represented, with their numbers; where there is no room for two, as one text. */
function limits(low: number, high: number, width: number, floor: number, x: (value: number) => number): SVGElement[] {
  const lines = [low, high].map((value) =>
    svg("line", { class: "wb-quant-limit", x1: x(value), x2: x(value), y1: 4, y2: floor }),
  );
  const text = (place: number, side: string, content: string) =>
    svg("text", { class: "wb-quant-tick", x: place + (side === "start" ? 3 : -3), y: 12, "text-anchor": side }, content);
  if (x(high) - x(low) >= 110) return [...lines, text(x(low), "start", tickText(low)), text(x(high), "end", tickText(high))];
  const both = `${tickText(low)} … ${tickText(high)}`;
  return [...lines, x(high) < width - 120 ? text(x(high), "start", both) : text(x(low), "end", both)];
}

export function anchor(x: number, width: number): string {
  return x < 24 ? "start" : x > width - 24 ? "end" : "middle";
}
