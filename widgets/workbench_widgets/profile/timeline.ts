// One execution as a flame chart: lanes of modules, instructions and the inside of delegates over time.
import type { ProfileDocument, TimelineDocument } from "../contract.ts";
import { h, on } from "../common/dom.ts";
import { ms, percent } from "../common/format.ts";
import { hatchCss, hatchPattern, swatch } from "../common/palette.ts";
import type { Theme } from "../common/theme.ts";
import { facts, type Tooltip } from "../common/tooltip.ts";
import { Viewport, type Transform } from "../common/viewport.ts";
import { shortSource } from "./columns.ts";
import { shortOperator } from "./groups.ts";
import { lanesOf, spanAt, spanBefore, type Lanes, type Span } from "./lanes.ts";
import { inkOn, outline } from "./pens.ts";
import { timeTicks } from "./ticks.ts";

const RULER = 22;
const LANE = 21;
const COLOURS = 6;

interface Place {
  readonly lane: number;
  readonly index: number;
}

export interface TimelineOptions {
  readonly tooltip: Tooltip;
  onPick(rows: readonly number[], extend: boolean): void;
}

export class Timeline {
  readonly el: HTMLElement;
  readonly viewport: Viewport;
  private readonly titles = h("div.wb-profile-lanes", { "aria-hidden": true });
  private readonly legend = h("div.wb-legend.wb-profile-legend");
  private readonly status = h("div.wb-visually-hidden", { role: "status" });
  private readonly options: TimelineOptions;
  private readonly ends: (() => void)[] = [];
  private profile: ProfileDocument | null = null;
  private duration = 0;
  private lanes: Lanes = { lanes: [], spans: [] };
  private colours = new Map<string, number>();
  private readonly patterns = new Map<number, CanvasPattern | null>();
  private selected: ReadonlySet<number> = new Set();
  private cursor: Place | null = null;
  private hovered: Place | null = null;

  constructor(options: TimelineOptions) {
    this.options = options;
    const stage = h("div.wb-profile-canvas");
    this.el = h(
      "div.wb-profile-timeline",
      {},
      h("div.wb-profile-lanes-row", {}, this.titles, stage),
      this.legend,
      this.status,
    );
    this.viewport = new Viewport(stage, {
      label:
        "Timeline of one execution. W and S zoom, A and D move, comma and full stop step through a lane, Page keys change the lane, Enter selects.",
      horizontal: true,
      minScale: 1e-6,
      maxScale: 1e9,
      extent: () => ({ x: 0, y: 0, width: this.duration || 1, height: this.height() }),
      draw: (pen, transform, theme, size) => this.draw(pen, transform, theme, size),
    });
    const { canvas } = this.viewport;
    let pressed: { x: number; y: number } | null = null;
    this.ends.push(
      on(canvas, "pointerdown", (event) => {
        pressed = { x: event.clientX, y: event.clientY };
      }),
      on(canvas, "click", (event) => {
        // The end of a pan is no click.
        const still =
          pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) < 4;
        if (still) this.pick(this.find(event), event.shiftKey || event.ctrlKey || event.metaKey);
      }),
      on(canvas, "dblclick", (event) => this.zoomTo(this.find(event))),
      on(canvas, "pointermove", (event) => this.hover(event)),
      on(canvas, "pointerleave", () => {
        this.hovered = null;
        options.tooltip.hide();
        this.viewport.redraw();
      }),
      on(canvas, "keydown", (event) => this.key(event), { capture: true }),
    );
  }

  show(timeline: TimelineDocument, profile: ProfileDocument): void {
    const same = this.duration > 0 && this.profile?.run === profile.run;
    this.profile = profile;
    this.duration = timeline.duration;
    this.lanes = lanesOf(timeline, profile);
    this.cursor = this.hovered = null;
    this.colour();
    this.titles.replaceChildren(
      ...this.lanes.lanes.map((lane, at) =>
        h("div", { style: `top:${RULER + at * LANE}px` }, lane.title),
      ),
    );
    if (!same) this.viewport.fit();
    else this.viewport.redraw();
  }

  select(rows: Iterable<number>, reveal: boolean): void {
    this.selected = new Set(rows);
    if (reveal && this.selected.size) {
      for (const lane of this.lanes.spans) {
        const span = lane.find(
          (item) => item.rows.length === 1 && this.selected.has(item.rows[0]!),
        );
        if (!span) continue;
        this.viewport.reveal({ x: span.start, y: 0, width: span.end - span.start, height: 1 });
        break;
      }
    }
    this.viewport.redraw();
  }

  /** The spans as rows of a table. */
  spans(): readonly Span[] {
    return this.lanes.spans.flat();
  }

  destroy(): void {
    for (const end of this.ends) end();
    this.viewport.destroy();
    this.el.remove();
  }

  private height(): number {
    return RULER + this.lanes.lanes.length * LANE + 4;
  }

  /** Colours for the operators that take most of the time. */
  private colour(): void {
    const sums = new Map<string, number>();
    for (const span of this.spans()) {
      const name = this.operator(span);
      if (name) sums.set(name, (sums.get(name) ?? 0) + span.end - span.start);
    }
    const order = [...sums].sort((a, b) => b[1] - a[1]);
    this.colours = new Map(order.slice(0, COLOURS).map(([name], index) => [name, index]));
    const entries = [...this.colours].map(([name, index]) => {
      const share = sums.get(name)! / (this.duration || 1);
      const { color, hatch } = swatch(index);
      const lines = hatchCss(
        hatch,
        inkOn(color) === "#000000" ? "rgba(0,0,0,0.5)" : "rgba(255,255,255,0.6)",
      );
      const colour = h("span.wb-swatch", {
        style: `background:${lines === "none" ? "" : `${lines},`}${color}`,
      });
      return h("span", {}, colour, `${name} ${percent(share)}`);
    });
    const rest = order.length - this.colours.size;
    this.legend.replaceChildren(
      ...entries,
      ...(rest > 0 ? [h("span.wb-muted", {}, `and ${rest} others, grey`)] : []),
    );
  }

  private operator(span: Span): string {
    if (span.kind === "module" || span.kind === "method" || !this.profile || !span.rows.length)
      return "";
    return shortOperator(this.profile.operator.get(span.rows[0]!)).replace(/ #\d+$/, "");
  }

  private find(event: { clientX: number; clientY: number }): Place | null {
    const { x, y } = this.viewport.world(event);
    const lane = Math.floor((y - RULER) / LANE);
    const spans = this.lanes.spans[lane];
    if (y < RULER || !spans) return null;
    const index = spanAt(spans, x, 2 / this.viewport.transform.scale);
    return index < 0 ? null : { lane, index };
  }

  private at(place: Place | null): Span | null {
    return place ? (this.lanes.spans[place.lane]?.[place.index] ?? null) : null;
  }

  private pick(place: Place | null, extend: boolean): void {
    this.cursor = place;
    this.options.onPick(this.at(place)?.rows ?? [], extend);
    this.viewport.redraw();
  }

  private zoomTo(place: Place | null): void {
    const span = this.at(place);
    if (span)
      this.viewport.fit({ x: span.start, y: 0, width: span.end - span.start, height: 1 }, 40);
  }

  private hover(event: PointerEvent): void {
    const place = this.find(event);
    const span = this.at(place);
    if (this.hovered?.lane !== place?.lane || this.hovered?.index !== place?.index) {
      this.hovered = place;
      this.viewport.redraw();
    }
    if (!span || event.buttons) this.options.tooltip.hide();
    else this.options.tooltip.show(event.clientX, event.clientY, this.describe(span));
  }

  private describe(span: Span): HTMLElement {
    const profile = this.profile!;
    const row = span.rows.length === 1 ? span.rows[0]! : -1;
    const length = span.end - span.start;
    return facts([
      [span.kind, span.label],
      ["operator", row < 0 ? null : profile.operator.get(row)],
      ["time", `${ms(length)}, ${percent(length / (this.duration || 1))} of the execution`],
      ["from", span.start > 0 ? ms(span.start) : "0"],
      ["median", row < 0 ? null : ms(profile.median[row]!)],
      ["module", row < 0 ? null : profile.module.get(row)],
      ["source", row < 0 ? null : shortSource(profile.source.get(row))],
      ["instructions", span.kind === "module" ? String(span.rows.length) : null],
    ]);
  }

  private key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const width = this.viewport.visible().width * this.viewport.transform.scale;
    const actions: Readonly<Record<string, () => void>> = {
      w: () => this.viewport.zoom(1.4),
      s: () => this.viewport.zoom(1 / 1.4),
      a: () => this.viewport.pan(width / 6, 0),
      d: () => this.viewport.pan(-width / 6, 0),
      ",": () => this.step(0, -1),
      ".": () => this.step(0, 1),
      PageUp: () => this.step(-1, 0),
      PageDown: () => this.step(1, 0),
      Enter: () => this.pick(this.cursor, event.shiftKey),
      z: () => this.zoomTo(this.cursor),
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  }

  private step(lanes: number, spans: number): void {
    const now = this.at(this.cursor);
    const last = this.lanes.spans.length - 1;
    const lane = Math.min(Math.max((this.cursor?.lane ?? 0) + lanes, 0), last);
    const line = this.lanes.spans[lane] ?? [];
    let index = (this.cursor?.index ?? -1) + spans;
    if (lanes && now)
      index = Math.max(
        0,
        line.findIndex((span) => span.end > now.start),
      );
    index = Math.min(Math.max(index, 0), line.length - 1);
    const span = line[index];
    if (!span) return;
    this.cursor = { lane, index };
    this.viewport.reveal({ x: span.start, y: 0, width: span.end - span.start, height: 1 });
    this.viewport.redraw();
    this.status.textContent = `${span.kind} ${span.label}, ${ms(span.end - span.start)}`;
  }

  private draw(
    pen: CanvasRenderingContext2D,
    transform: Transform,
    theme: Theme,
    size: { width: number; height: number },
  ): void {
    const { scale, x, y } = transform;
    this.titles.style.transform = `translateY(${y}px)`;
    const low = -x / scale;
    const high = (size.width - x) / scale;
    pen.font = `11px ${theme.font}`;
    pen.textBaseline = "middle";
    const ticks = timeTicks(
      Math.max(low, 0),
      Math.min(high, this.duration),
      Math.max(2, size.width / 90),
    );
    const places = ticks.map((tick) => ({
      text: tick.text,
      at: Math.round(tick.value * scale + x) + 0.5,
    }));
    pen.strokeStyle = theme.border;
    pen.globalAlpha = 0.6;
    pen.beginPath();
    for (const { at } of places) {
      pen.moveTo(at, RULER - 7);
      pen.lineTo(at, size.height);
    }
    pen.stroke();
    pen.globalAlpha = 1;
    this.lanes.spans.forEach((spans, lane) => {
      const top = RULER + lane * LANE + y;
      if (top > size.height || top + LANE < RULER) return;
      let edge = -1;
      const from = Math.max(0, spanBefore(spans, low));
      for (let index = from; index < spans.length; index++) {
        const span = spans[index]!;
        if (span.start > high) break;
        const left = span.start * scale + x;
        const right = span.end * scale + x;
        // What is thinner than a pixel is drawn once for a pixel.
        if (right - edge < 0.7 && !this.isSelected(span)) continue;
        edge = Math.max(right, left + 1);
        this.drawSpan(pen, theme, span, Math.max(left, -4), Math.min(edge, size.width + 4), top, {
          lane,
          index,
        });
      }
    });
    pen.fillStyle = theme.surface;
    pen.fillRect(0, 0, size.width, RULER - 7);
    pen.fillStyle = theme.muted;
    for (const { text, at } of places) {
      if (at + pen.measureText(text).width + 4 < size.width) pen.fillText(text, at + 3, 9);
    }
  }

  private drawSpan(
    pen: CanvasRenderingContext2D,
    theme: Theme,
    span: Span,
    left: number,
    right: number,
    top: number,
    place: Place,
  ): void {
    const width = Math.max(right - left - (right - left > 3 ? 1 : 0), 1);
    const colour = this.colours.get(this.operator(span));
    const plain = span.kind === "module" || span.kind === "method";
    pen.fillStyle = plain ? theme.raised : colour === undefined ? "#8a8f98" : swatch(colour).color;
    pen.fillRect(left, top + 1, width, LANE - 3);
    if (colour !== undefined && width > 8) this.hatch(pen, colour, left, top, width);
    if (span.kind === "inside" && width > 4) {
      // A line below says without colour that this is the inside of a delegate.
      pen.fillStyle = theme.text;
      pen.fillRect(left, top + LANE - 4, width, 2);
    }
    if (this.isSelected(span)) outline(pen, theme.text, left, top, width, LANE - 3, 2);
    else if (same(this.hovered, place)) outline(pen, theme.text, left, top, width, LANE - 3, 1);
    if (same(this.cursor, place)) outline(pen, theme.accent, left, top, width, LANE - 3, 2);
    if (width > 26) {
      pen.fillStyle = plain
        ? theme.text
        : colour === undefined
          ? "#ffffff"
          : inkOn(swatch(colour).color);
      pen.save();
      pen.beginPath();
      pen.rect(left, top, width - 3, LANE);
      pen.clip();
      pen.fillText(span.label, Math.max(left, 0) + 4, top + LANE / 2);
      pen.restore();
    }
  }

  /** Says the same as the colour. */
  private hatch(
    pen: CanvasRenderingContext2D,
    colour: number,
    left: number,
    top: number,
    width: number,
  ): void {
    const { color, hatch } = swatch(colour);
    let pattern = this.patterns.get(colour);
    if (pattern === undefined) {
      const ink = inkOn(color) === "#000000" ? "rgba(0,0,0,0.3)" : "rgba(255,255,255,0.35)";
      this.patterns.set(colour, (pattern = hatchPattern(pen, hatch, ink)));
    }
    if (!pattern) return;
    pen.fillStyle = pattern;
    pen.fillRect(left, top + 1, width, LANE - 3);
  }

  private isSelected(span: Span): boolean {
    return span.rows.length === 1 && this.selected.has(span.rows[0]!);
  }
}

function same(a: Place | null, b: Place): boolean {
  return a?.lane === b.lane && a.index === b.index;
}
