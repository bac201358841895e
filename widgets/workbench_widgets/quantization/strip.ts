// The range of each channel, side by side; the one that is served worst is marked by colour and by a shape.
import type { QuantizationObservers } from "../contract.ts";
import { svg } from "../common/dom.ts";
import { count, number } from "../common/format.ts";
import { Figure, type Drawn } from "./figure.ts";
import { channelName, channelsOf, ticks, tickText, type Channel } from "./model.ts";

const HEIGHT = 110;
const TOP = 14;
const BOTTOM = 6;
const LEFT = 46;
const RIGHT = 8;

export function stripLabel(seen: QuantizationObservers, at: number): string {
  const worst = channelsOf(seen, at)[seen.worst[at]!];
  const marked = worst ? ` Marked: ${channelName(worst)}, ${seen.worst_why.get(at)}.` : "";
  return `Ranges of ${count(seen.channels[at]!)} channels of ${seen.values.get(at)}.${marked}`;
}

export function makeStrip(seen: QuantizationObservers, at: number): Figure {
  const channels = channelsOf(seen, at);
  const worst = channels[seen.worst[at]!];
  const rest = worst
    ? `▼ ${channelName(worst)}: ${seen.worst_why.get(at)}`
    : `${count(seen.channels[at]!)} channels, none stands out`;
  return new Figure(stripLabel(seen, at), HEIGHT, rest, (width) => draw(seen, at, channels, width));
}

function draw(seen: QuantizationObservers, at: number, channels: readonly Channel[], width: number): Drawn {
  const own = seen.per_channel[at] === 1;
  let [low, high] = [0, 0];
  for (const { min, max } of channels) [low, high] = [Math.min(low, min), Math.max(high, max)];
  if (!own) [low, high] = [Math.min(low, seen.low[at]!), Math.max(high, seen.high[at]!)];
  if (low === high) high = low + 1;
  const floor = HEIGHT - BOTTOM;
  const y = (value: number) => floor - ((floor - TOP) * (value - low)) / (high - low);
  const step = (width - LEFT - RIGHT) / Math.max(1, channels.length);
  const x = (place: number) => LEFT + (place + 0.5) * step;
  const thick = Math.max(0.8, Math.min(step * 0.7, 14));
  const line = (channel: Channel, place: number) => {
    const [top, bottom] = [y(channel.max), y(channel.min)];
    // A channel of one value is a dot.
    return `M${x(place).toFixed(2)} ${Math.min(top, bottom - 1).toFixed(2)}V${bottom.toFixed(2)}`;
  };
  const worst = seen.worst[at]!;
  const parts: SVGElement[] = ticks(low, high, 3).flatMap((value) => [
    svg("line", { class: value === 0 ? "wb-quant-axis" : "wb-quant-grid", x1: LEFT - 4, x2: width - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { class: "wb-quant-tick", x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" }, tickText(value)),
  ]);
  parts.push(
    svg("path", {
      class: "wb-quant-channels",
      "stroke-width": thick,
      d: channels.map((channel, place) => (place === worst ? "" : line(channel, place))).join(""),
    }),
  );
  if (!own) {
    for (const end of [seen.low[at]!, seen.high[at]!]) {
      parts.push(svg("line", { class: "wb-quant-limit", x1: LEFT, x2: width - RIGHT, y1: y(end), y2: y(end) }));
    }
  }
  const marked = channels[worst];
  if (marked) {
    const place = x(worst);
    parts.push(
      svg("path", { class: "wb-quant-worst", "stroke-width": Math.max(2, thick), d: line(marked, worst) }),
      svg("path", { class: "wb-quant-mark", d: `M${place - 5} 1h10l-5 8z` }),
    );
  }
  const places = channels.map((channel, place) => ({
    x: x(place) - step / 2,
    width: step,
    text: `${channelName(channel)}: ${number(channel.min)} to ${number(channel.max)}, scale ${number(channel.scale)}`,
  }));
  return { parts, places, top: TOP, bottom: floor };
}
