// Each row as a point: the reference across, another side up. Above the diagonal the other side takes more.
import type { CompareDocument } from "../contract.ts";
import { h, on, throttled } from "../common/dom.ts";
import { bytes, delta, ms } from "../common/format.ts";
import { readTheme, watchTheme, type Theme } from "../common/theme.ts";
import { facts, makeTooltip } from "../common/tooltip.ts";
import { deltaOf, nodesOf, ranked, valueOf, type Metric } from "./model.ts";

export interface Scatter {
  readonly el: HTMLElement;
  update(doc: CompareDocument, side: number, metric: Metric, rows: readonly number[]): void;
  select(rows: Iterable<number>): void;
  destroy(): void;
}

interface Point {
  readonly row: number;
  readonly x: number;
  readonly y: number;
  readonly change: number;
}

const LEFT = 76;
const BOTTOM = 40;
const TOP = 12;
const RIGHT = 12;
const REACH = 12;
// Vermilion and blue of Okabe and Ito, doubled by triangles that point up and down; lighter on dark pages.
const MORE = { light: "#D55E00", dark: "#F0813A" } as const;
const LESS = { light: "#0072B2", dark: "#56B4E9" } as const;

/** The powers of ten that hold all values. */
export function decades(values: readonly number[]): [number, number] {
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return [0, 1];
  const low = Math.floor(Math.log10(Math.min(...extremes(positive))));
  const high = Math.ceil(Math.log10(Math.max(...extremes(positive))));
  return [low, Math.max(high, low + 1)];
}

function extremes(values: readonly number[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

export function makeScatter(onPick: (row: number, extend: boolean) => void): Scatter {
  const canvas = h("canvas.wb-scatter", { tabindex: 0, role: "application" });
  const status = h("div.wb-visually-hidden", { role: "status" });
  const empty = h("p.wb-muted.wb-scatter-empty", { hidden: true });
  const el = h("div.wb-scatter-box", {}, canvas, empty, status);
  const tooltip = makeTooltip(el);
  let doc: CompareDocument | null = null;
  let side = 1;
  let metric: Metric = "ms";
  let points: Point[] = [];
  let range: [number, number] = [0, 1];
  let selected = new Set<number>();
  let cursor = -1;
  let theme: Theme | null = null;
  const format = (value: number) => (metric === "ms" ? ms(value) : bytes(value));
  const place = (value: number, from: number, to: number) =>
    from + ((Math.log10(value) - range[0]) / (range[1] - range[0])) * (to - from);
  const at = (point: Point) => ({
    x: place(point.x, LEFT, canvas.clientWidth - RIGHT),
    y: place(point.y, canvas.clientHeight - BOTTOM, TOP),
  });

  const paint = () => {
    const pen = canvas.getContext("2d");
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!pen || !doc || !width || !height) return;
    theme ??= readTheme(el);
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    axes(pen, theme, width, height);
    for (const point of points) if (!selected.has(point.row)) mark(pen, theme, point, false);
    for (const point of points) if (selected.has(point.row)) mark(pen, theme, point, true);
  };
  const redraw = throttled(paint);

  const axes = (pen: CanvasRenderingContext2D, colors: Theme, width: number, height: number) => {
    pen.font = `11px ${colors.font}`;
    pen.lineWidth = 1;
    pen.fillStyle = colors.muted;
    const step = Math.max(1, Math.ceil((range[1] - range[0]) / 6));
    for (let power = range[0]; power <= range[1]; power += step) {
      const value = 10 ** power;
      const x = place(value, LEFT, width - RIGHT);
      const y = place(value, height - BOTTOM, TOP);
      pen.strokeStyle = colors.border;
      pen.beginPath();
      pen.moveTo(x, TOP);
      pen.lineTo(x, height - BOTTOM);
      pen.moveTo(LEFT, y);
      pen.lineTo(width - RIGHT, y);
      pen.stroke();
      pen.textAlign = "center";
      pen.textBaseline = "top";
      if (x < width - RIGHT - 12) pen.fillText(format(value), x, height - BOTTOM + 5);
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(format(value), LEFT - 6, Math.max(y, TOP + 2));
    }
    pen.strokeStyle = colors.muted;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(LEFT, height - BOTTOM);
    pen.lineTo(width - RIGHT, TOP);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = colors.text;
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    pen.fillText(doc!.sides[doc!.reference]!.name, (LEFT + width - RIGHT) / 2, height - 4);
    pen.save();
    pen.translate(12, (TOP + height - BOTTOM) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "middle";
    pen.fillText(doc!.sides[side]!.name, 0, 0);
    pen.restore();
  };

  const mark = (pen: CanvasRenderingContext2D, colors: Theme, point: Point, chosen: boolean) => {
    const { x, y } = at(point);
    const size = chosen ? 7 : 5;
    const near = Math.abs(point.change) <= 0.02 * point.x;
    pen.beginPath();
    if (near) pen.arc(x, y, size - 1, 0, 2 * Math.PI);
    else {
      const up = point.change > 0 ? -1 : 1;
      pen.moveTo(x, y + up * size);
      pen.lineTo(x + size, y - up * size * 0.8);
      pen.lineTo(x - size, y - up * size * 0.8);
      pen.closePath();
    }
    pen.globalAlpha = chosen ? 1 : 0.85;
    const shade = colors.dark ? "dark" : "light";
    pen.fillStyle = near ? colors.muted : (point.change > 0 ? MORE : LESS)[shade];
    pen.fill();
    pen.globalAlpha = 1;
    pen.lineWidth = chosen ? 2 : 1;
    pen.strokeStyle = chosen ? colors.text : colors.background;
    pen.stroke();
  };

  const nearest = (event: MouseEvent): Point | null => {
    const rect = canvas.getBoundingClientRect();
    let best: Point | null = null;
    let least = REACH;
    for (const point of points) {
      const { x, y } = at(point);
      const away = Math.hypot(event.clientX - rect.left - x, event.clientY - rect.top - y);
      if (away < least) [best, least] = [point, away];
    }
    return best;
  };
  const describe = (point: Point) =>
    facts([
      ["Nodes", nodesOf(doc!, point.row)],
      [doc!.sides[doc!.reference]!.name, format(point.x)],
      [doc!.sides[side]!.name, format(point.y)],
      ["Difference", delta(point.change, format)],
      ["Source", doc!.source.get(point.row)],
    ]);
  const observer = new ResizeObserver(() => paint());
  observer.observe(el);
  const ends = [
    () => observer.disconnect(),
    watchTheme(() => {
      theme = null;
      redraw();
    }),
    on(canvas, "pointermove", (event) => {
      const point = nearest(event);
      canvas.style.cursor = point ? "pointer" : "";
      if (point) tooltip.show(event.clientX, event.clientY, describe(point));
      else tooltip.hide();
    }),
    on(canvas, "pointerleave", () => tooltip.hide()),
    on(canvas, "click", (event) => {
      const point = nearest(event);
      if (point) onPick(point.row, event.shiftKey || event.ctrlKey || event.metaKey);
    }),
    on(canvas, "keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !points.length) return;
      const targets: Readonly<Record<string, number>> = {
        ArrowRight: cursor + 1,
        ArrowDown: cursor + 1,
        ArrowLeft: cursor - 1,
        ArrowUp: cursor - 1,
        Home: 0,
        End: points.length - 1,
      };
      const target = targets[event.key];
      if (target === undefined) return;
      cursor = Math.min(Math.max(target, 0), points.length - 1);
      const point = points[cursor]!;
      status.textContent = `${nodesOf(doc!, point.row)}: ${format(point.x)} against ${format(point.y)}`;
      onPick(point.row, event.shiftKey);
      event.preventDefault();
      event.stopPropagation();
    }),
  ];

  return {
    el,
    update(next, other, what, rows) {
      [doc, side, metric] = [next, other, what];
      const wanted = new Set(rows);
      // The largest differences first: that is the order of the arrow keys.
      points = ranked(next, other, what)
        .filter((row) => wanted.has(row))
        .map((row) => ({
          row,
          x: valueOf(next, row, next.reference, what) ?? 0,
          y: valueOf(next, row, other, what) ?? 0,
          change: deltaOf(next, row, other, what) ?? 0,
        }))
        .filter((point) => point.x > 0 && point.y > 0);
      range = decades(points.flatMap((point) => [point.x, point.y]));
      cursor = -1;
      const named = next.sides[other]!.name;
      empty.hidden = points.length > 0;
      empty.textContent =
        what === "ms"
          ? `No row was timed on both sides: ${named} needs a run`
          : "No row is on both sides";
      canvas.hidden = points.length === 0;
      const label = `${points.length} rows: ${next.sides[next.reference]!.name} across, ${named} up`;
      canvas.setAttribute("aria-label", `${label}; arrow keys go from the largest difference down`);
      redraw();
    },
    select(rows) {
      selected = new Set(rows);
      redraw();
    },
    destroy() {
      redraw.cancel();
      tooltip.destroy();
      for (const end of ends) end();
      el.remove();
    },
  };
}
