// The roofline: what each instruction reaches, beside what the machine allows at its operations per byte.
import { h, on, throttled } from "../common/dom.ts";
import { bytes, ms, number, percent } from "../common/format.ts";
import { readTheme, watchTheme, type Theme } from "../common/theme.ts";
import { facts, type Tooltip } from "../common/tooltip.ts";
import { scaled } from "./columns.ts";
import type { ProfileModel } from "./model.ts";
import { pointsOf, rangesOf, scaleOf, type Point, type Ranges } from "./points.ts";
import { logTicks } from "./ticks.ts";

const LEFT = 58;
const RIGHT = 14;
const TOP = 14;
const BOTTOM = 40;

export interface RooflineOptions {
  readonly tooltip: Tooltip;
  onPick(rows: readonly number[], extend: boolean): void;
}

export class Roofline {
  readonly el: HTMLElement;
  private readonly canvas = document.createElement("canvas");
  private readonly note = h("div.wb-muted.wb-profile-legend");
  private readonly status = h("div.wb-visually-hidden", { role: "status" });
  private readonly request = throttled(() => this.paint());
  private readonly observer: ResizeObserver;
  private readonly ends: (() => void)[] = [];
  private readonly options: RooflineOptions;
  private model: ProfileModel;
  private points: Point[] = [];
  private places: { x: number; y: number; radius: number }[] = [];
  private ranges: Ranges = { x: [0.1, 10], y: [0.1, 10] };
  private selected: ReadonlySet<number> = new Set();
  private cursor = -1;
  private hovered = -1;

  constructor(model: ProfileModel, options: RooflineOptions) {
    this.model = model;
    this.options = options;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute(
      "aria-label",
      "Roofline. Arrow keys step through the instructions, the slowest first; Enter selects.",
    );
    const stage = h("div.wb-profile-canvas", {}, this.canvas);
    this.el = h("div.wb-profile-roofline", {}, stage, this.note, this.status);
    this.observer = new ResizeObserver(() => this.request());
    this.observer.observe(stage);
    this.ends.push(
      watchTheme(() => this.request()),
      on(this.canvas, "pointermove", (event) => this.hover(event)),
      on(this.canvas, "pointerleave", () => this.leave()),
      on(this.canvas, "click", (event) =>
        this.pick(this.find(event), event.shiftKey || event.ctrlKey || event.metaKey),
      ),
      on(this.canvas, "keydown", (event) => this.key(event)),
    );
    this.update(model);
  }

  update(model: ProfileModel): void {
    this.model = model;
    this.points = pointsOf(model);
    this.ranges = rangesOf(this.points, model.peaks);
    const silent = model.instructions().filter((row) => !(model.document.flops[row]! > 0)).length;
    const peaks = model.peaks;
    const machine = peaks
      ? `One core: ${number(peaks.gflops)} GFLOP/s, ${number(peaks.gbytes)} GB/s, ridge at ${number(peaks.gflops / peaks.gbytes)} FLOP/byte. ○ memory-bound, ◇ compute-bound; area = time.`
      : "The machine's limits were not measured.";
    const left = silent
      ? ` ${silent} instructions that only move data, or whose work is not known, are in the table.`
      : "";
    this.note.textContent = machine + left;
    this.request();
  }

  select(rows: Iterable<number>): void {
    this.selected = new Set(rows);
    this.request();
  }

  destroy(): void {
    this.request.cancel();
    this.observer.disconnect();
    for (const end of this.ends) end();
    this.el.remove();
  }

  private find(event: MouseEvent): number {
    const rect = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    let best = -1;
    let nearest = 6;
    this.places.forEach((place, index) => {
      const away = Math.hypot(place.x - x, place.y - y) - place.radius;
      // Small points lie on large ones: the last drawn wins.
      if (away < nearest || (away <= 0 && nearest <= 0)) {
        best = index;
        nearest = Math.max(away, 0);
      }
    });
    return best;
  }

  private pick(index: number, extend: boolean): void {
    this.cursor = index;
    const point = this.points[index];
    this.options.onPick(point ? [point.row] : [], extend);
    this.request();
  }

  private hover(event: PointerEvent): void {
    const index = this.find(event);
    if (index !== this.hovered) {
      this.hovered = index;
      this.request();
    }
    if (index < 0) this.options.tooltip.hide();
    else
      this.options.tooltip.show(event.clientX, event.clientY, this.describe(this.points[index]!));
  }

  private leave(): void {
    this.hovered = -1;
    this.options.tooltip.hide();
    this.request();
  }

  private describe(point: Point): HTMLElement {
    const { document } = this.model;
    const { limit, row } = point;
    return facts([
      ["node", document.name.get(row)],
      ["operator", document.operator.get(row)],
      ["time", ms(point.time)],
      [
        "work",
        `${scaled(document.flops[row]!)}FLOP, ${bytes(document.bytes[row]!)}, ${number(limit.intensity)} FLOP/byte`,
      ],
      ["reached", `${number(limit.reached)} GFLOP/s, ${number(limit.bytesRate)} GB/s`],
      ["attainable", Number.isNaN(limit.attainable) ? null : `${number(limit.attainable)} GFLOP/s`],
      [
        "of the limit",
        Number.isNaN(limit.part) ? null : `${percent(limit.part)}, bound by ${limit.bound}`,
      ],
    ]);
  }

  private key(event: KeyboardEvent): void {
    const last = this.points.length - 1;
    if (event.altKey || event.ctrlKey || event.metaKey || last < 0) return;
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: this.cursor + 1,
      ArrowDown: this.cursor + 1,
      ArrowLeft: this.cursor - 1,
      ArrowUp: this.cursor - 1,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      this.cursor = Math.min(Math.max(target, 0), last);
      const point = this.points[this.cursor]!;
      const place = this.places[this.cursor];
      const rect = this.canvas.getBoundingClientRect();
      if (place)
        this.options.tooltip.show(rect.left + place.x, rect.top + place.y, this.describe(point));
      this.status.textContent = `${this.model.document.name.get(point.row)}, ${ms(point.time)}, ${number(point.limit.reached)} GFLOP/s, ${point.limit.bound}`;
      this.request();
    } else if (event.key === "Enter") {
      this.pick(this.cursor, event.shiftKey);
    } else if (event.key === "Escape") {
      this.options.tooltip.hide();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private paint(): void {
    const stage = this.canvas.parentElement;
    const pen = this.canvas.getContext("2d");
    if (!stage || !pen || !stage.clientWidth || !stage.clientHeight) return;
    const [width, height] = [stage.clientWidth, stage.clientHeight];
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const theme = readTheme(this.el);
    const x = scaleOf(this.ranges.x, LEFT, width - RIGHT);
    const y = scaleOf(this.ranges.y, height - BOTTOM, TOP);
    pen.font = `11px ${theme.font}`;
    this.axes(pen, theme, x, y, width, height);
    this.roof(pen, theme, x, y, width);
    const slowest = this.points[0]?.time ?? 1;
    this.places = this.points.map((point) => ({
      x: x(point.limit.intensity),
      y: y(point.limit.reached),
      radius: Math.max(3, 22 * Math.sqrt(point.time / slowest)),
    }));
    this.points.forEach((point, index) => this.point(pen, theme, point, index));
  }

  private axes(
    pen: CanvasRenderingContext2D,
    theme: Theme,
    x: (v: number) => number,
    y: (v: number) => number,
    width: number,
    height: number,
  ): void {
    pen.strokeStyle = theme.border;
    pen.fillStyle = theme.muted;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const tick of logTicks(...this.ranges.x)) {
      const at = Math.round(x(tick.value)) + 0.5;
      pen.globalAlpha = tick.major ? 0.8 : 0.25;
      line(pen, at, TOP, at, height - BOTTOM);
      pen.globalAlpha = 1;
      if (tick.major) pen.fillText(tick.text, at, height - BOTTOM + 5);
    }
    pen.fillText("FLOP per byte", LEFT + (width - LEFT - RIGHT) / 2, height - BOTTOM + 21);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of logTicks(...this.ranges.y)) {
      const at = Math.round(y(tick.value)) + 0.5;
      pen.globalAlpha = tick.major ? 0.8 : 0.25;
      line(pen, LEFT, at, width - RIGHT, at);
      pen.globalAlpha = 1;
      if (tick.major) pen.fillText(tick.text, LEFT - 6, at);
    }
    pen.save();
    pen.translate(12, TOP + (height - TOP - BOTTOM) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText("GFLOP/s", 0, 0);
    pen.restore();
    pen.textAlign = "left";
  }

  private roof(
    pen: CanvasRenderingContext2D,
    theme: Theme,
    x: (v: number) => number,
    y: (v: number) => number,
    width: number,
  ): void {
    const peaks = this.model.peaks;
    if (!peaks) return;
    const ridge = peaks.gflops / peaks.gbytes;
    // From where the slope enters the picture, at its left or at its bottom.
    const start = Math.max(this.ranges.x[0], this.ranges.y[0] / peaks.gbytes);
    pen.strokeStyle = theme.text;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x(start), y(start * peaks.gbytes));
    pen.lineTo(x(ridge), y(peaks.gflops));
    pen.lineTo(width - RIGHT, y(peaks.gflops));
    pen.stroke();
    pen.lineWidth = 1;
    pen.setLineDash([4, 4]);
    line(pen, x(ridge), y(peaks.gflops), x(ridge), y(this.ranges.y[0]));
    pen.setLineDash([]);
    pen.fillStyle = theme.text;
    pen.textBaseline = "bottom";
    pen.textAlign = "right";
    pen.fillText(`${number(peaks.gflops)} GFLOP/s`, width - RIGHT - 4, y(peaks.gflops) - 3);
    pen.save();
    const middle = Math.sqrt(start * ridge);
    pen.translate(x(middle), y(middle * peaks.gbytes));
    pen.rotate(Math.atan2(y(peaks.gflops) - y(start * peaks.gbytes), x(ridge) - x(start)));
    pen.textAlign = "center";
    pen.fillText(`${number(peaks.gbytes)} GB/s`, 0, -4);
    pen.restore();
    pen.textAlign = "left";
  }

  private point(pen: CanvasRenderingContext2D, theme: Theme, point: Point, index: number): void {
    const { x, y, radius } = this.places[index]!;
    const compute = point.limit.bound === "compute";
    pen.beginPath();
    if (compute) {
      const side = radius * 1.25;
      pen.moveTo(x, y - side);
      pen.lineTo(x + side, y);
      pen.lineTo(x, y + side);
      pen.lineTo(x - side, y);
      pen.closePath();
    } else {
      pen.arc(x, y, radius, 0, 2 * Math.PI);
    }
    pen.fillStyle = compute ? "#E69F00" : "#0072B2";
    pen.globalAlpha = 0.45;
    pen.fill();
    pen.globalAlpha = 1;
    const marked = this.selected.has(point.row) || index === this.cursor || index === this.hovered;
    pen.strokeStyle =
      this.selected.has(point.row) || index === this.hovered
        ? theme.text
        : index === this.cursor
          ? theme.accent
          : pen.fillStyle;
    pen.lineWidth = marked ? 2.5 : 1;
    pen.stroke();
    pen.lineWidth = 1;
    if (marked) {
      pen.fillStyle = theme.text;
      pen.textBaseline = "middle";
      const name = this.model.document.name.get(point.row);
      const right = x + radius * 1.25 + 5;
      const room = pen.measureText(name).width;
      const fits = right + room < this.canvas.clientWidth;
      pen.textAlign = fits ? "left" : "right";
      pen.fillText(name, fits ? right : x - radius * 1.25 - 5, y);
      pen.textAlign = "left";
    }
  }
}

function line(pen: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
