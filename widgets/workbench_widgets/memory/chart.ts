// The picture of a plan: offset by time, the bytes alive above it, an axis beside it; pan, zoom, drag.
import type { MemoryDocument } from "../contract.ts";
import { h, on } from "../shared/dom.ts";
import { bytes as showBytes } from "../shared/format.ts";
import { hatchPattern } from "../shared/palette.ts";
import type { Theme } from "../shared/theme.ts";
import { Viewport, type Transform } from "../shared/viewport.ts";
import { kindLook, outline, paintLabels, paintRows, rectOf, ruler, type Frame } from "./paint.ts";
import { holes, hit, liveAt, outlineOf, reuse, rowsOf, snap, steps, type Places } from "./scene.ts";

/** All that the chart shows. */
export interface ChartState {
  document: MemoryDocument;
  /** Where things lie: the plan that holds, or a preview. */
  places: Places;
  /** Of a preview: the plan that holds, whose places are drawn as ghosts where they differ. */
  before: Places | null;
  moved: ArrayLike<number> | null;
  arena: number;
  /** Bytes of the arena, of the preview if there is one. */
  size: number;
  /** Of a preview: bytes of the arena in the plan that holds. */
  sizeBefore: number;
  peak: number;
  lowerBound: number;
  limit: number | null;
  alignment: number;
  pins: ReadonlySet<number>;
  selected: ReadonlySet<number>;
  /** In the way of a pin. */
  conflicts: ReadonlySet<number>;
}

export interface ChartOptions {
  hover(row: number, event: PointerEvent | null, moment: number): void;
  pick(row: number, extend: boolean): void;
  /** A moment was chosen on the line of live bytes. */
  pickMoment(moment: number): void;
  /** A tensor is dragged; `done` when it is let go. Null ends a drag without a change. */
  drag(row: number, offset: number | null, done: boolean): void;
  canDrag(): boolean;
  gathered(count: number): void;
}

const GUTTER = 64;
const STRIP = 58;
const HEADROOM = 18;
const GHOSTS = 1500;

export class Chart {
  readonly el: HTMLElement;
  readonly viewport: Viewport;
  private readonly strip = h("canvas.wb-memory-strip", { "aria-hidden": true, title: "Bytes alive; a click chooses the instruction" });
  private readonly axis = h("canvas.wb-memory-axis", { "aria-hidden": true });
  private readonly plot = h("div.wb-memory-plot");
  private readonly options: ChartOptions;
  private readonly ends: (() => void)[] = [];
  private state: ChartState | null = null;
  private rows = new Int32Array();
  private line: { moment: Int32Array; bytes: Float64Array } = { moment: new Int32Array(), bytes: new Float64Array() };
  private most = 1;
  private zoomY = 1;
  private size = { width: 1, height: 1 };
  private hovered = -1;
  private moment = -1;
  private dragging: { row: number; grab: number; moved: boolean; startY: number } | null = null;
  /** Where a dragged tensor is. */
  private held: { row: number; offset: number } | null = null;

  constructor(parent: HTMLElement, options: ChartOptions) {
    this.options = options;
    const corner = h("div.wb-memory-corner", {}, "alive");
    this.el = h("div.wb-memory-chart", {}, corner, this.strip, this.axis, this.plot);
    // In its place first: the theme is read off the surroundings.
    parent.append(this.el);
    this.viewport = new Viewport(this.plot, {
      draw: (pen, transform, theme, size) => this.draw(pen, transform, theme, size),
      extent: () => ({ x: 0, y: 0, width: this.state?.document.moments ?? 1, height: this.size.height * this.zoomY }),
      horizontal: true,
      minScale: 1e-4,
      maxScale: 400,
      pans: (event) => !this.grabs(event),
      label:
        "Memory plan: time from left to right, bytes from the bottom up. Dot and comma walk, P pins, " +
        "Alt with an arrow moves a pin, + and - zoom time, braces zoom bytes, 0 shows all",
    });
    this.listen();
  }

  show(state: ChartState, fit = false): void {
    const other = this.state?.document !== state.document || this.state.arena !== state.arena;
    const moved = other || this.state?.places !== state.places;
    this.state = state;
    if (moved) {
      this.rows = rowsOf(state.document, state.places, state.arena) as Int32Array<ArrayBuffer>;
      this.line = steps(state.document, this.rows, state.alignment);
      this.most = this.line.bytes.reduce((most, item) => Math.max(most, item), 1);
    }
    if (other || fit) this.fit();
    this.viewport.redraw();
  }

  fit(): void {
    this.zoomY = 1;
    this.viewport.fit();
  }

  /** Brings a tensor into sight. */
  reveal(row: number): void {
    const state = this.state;
    if (!state || state.places.arena[row] !== state.arena) return;
    const frame = this.frame();
    const rect = rectOf(frame, state.document, state.places, row);
    this.viewport.reveal({
      x: state.document.first[row]!,
      y: rect.y - this.viewport.transform.y,
      width: state.document.last[row]! + 1 - state.document.first[row]!,
      height: rect.height,
    });
  }

  /** Rows as they are drawn, by time. */
  order(): Int32Array {
    return this.rows;
  }

  destroy(): void {
    for (const end of this.ends) end();
    this.viewport.destroy();
    this.el.remove();
  }

  zoomOffsets(factor: number, at = this.size.height / 2): void {
    const before = this.zoomY;
    this.zoomY = Math.min(Math.max(before * factor, 1), 4096);
    const { transform } = this.viewport;
    const y = at - ((at - transform.y) * this.zoomY) / before;
    transform.y = Math.min(0, Math.max(y, this.size.height * (1 - this.zoomY)));
    this.viewport.redraw();
  }

  private frame(): Frame {
    const { transform } = this.viewport;
    const state = this.state;
    const high = this.size.height * this.zoomY;
    const top = Math.max(state?.size ?? 1, state?.sizeBefore ?? 0, this.limitShown() ?? 0, 1);
    const perByte = (high - HEADROOM) / top;
    return {
      width: this.size.width,
      height: this.size.height,
      x: (moment) => moment * transform.scale + transform.x,
      y: (offset) => transform.y + high - offset * perByte,
      perMoment: transform.scale,
      perByte,
    };
  }

  /** A limit far above the arena would make all that is in it small. */
  private limitShown(): number | null {
    const state = this.state;
    return state?.limit != null && state.limit <= 2 * state.size ? state.limit : null;
  }

  // ---- pointer and keys ------------------------------------------------------------------------------------

  private at(event: PointerEvent): { moment: number; offset: number; row: number } {
    const rect = this.plot.getBoundingClientRect();
    const frame = this.frame();
    const moment = (event.clientX - rect.left - this.viewport.transform.x) / frame.perMoment;
    const offset = (frame.y(0) - (event.clientY - rect.top)) / frame.perByte;
    const state = this.state;
    const slack = { moments: 2 / frame.perMoment, bytes: 2 / frame.perByte };
    const row = state ? hit(state.document, this.placed(), this.rows, moment, offset, slack) : -1;
    return { moment, offset, row };
  }

  /** Places, with what is being dragged where it is. */
  private placed(): Places {
    const { state, held } = this;
    if (!state) return { arena: [], offset: [] };
    if (!held) return state.places;
    const offset = Float64Array.from(state.places.offset);
    offset[held.row] = held.offset;
    return { arena: state.places.arena, offset };
  }

  /** A press on a selected tensor takes hold of it; elsewhere it pans. */
  private grabs(event: PointerEvent): boolean {
    if (event.button !== 0 || !this.state || !this.options.canDrag()) return false;
    const { row, offset } = this.at(event);
    if (row < 0 || !(this.state.selected.has(row) || event.altKey)) return false;
    this.dragging = { row, grab: offset - this.state.places.offset[row]!, moved: false, startY: event.clientY };
    this.viewport.canvas.setPointerCapture(event.pointerId);
    return true;
  }

  private listen(): void {
    const canvas = this.viewport.canvas;
    let pressed: { x: number; y: number } | null = null;
    this.ends.push(
      on(canvas, "pointerdown", (event) => {
        pressed = event.button === 0 ? { x: event.clientX, y: event.clientY } : null;
        canvas.focus({ preventScroll: true });
      }),
      on(canvas, "pointermove", (event) => this.move(event, pressed !== null)),
      on(canvas, "pointerup", (event) => {
        const still = pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) < 4;
        pressed = null;
        if (this.drop(false) || !still) return;
        this.options.pick(this.at(event).row, event.shiftKey || event.ctrlKey || event.metaKey);
      }),
      on(canvas, "pointercancel", () => this.drop(true)),
      on(canvas, "pointerleave", () => {
        this.hovered = this.moment = -1;
        this.options.hover(-1, null, -1);
        this.viewport.redraw();
      }),
      on(canvas, "keydown", (event) => {
        if (event.key === "Escape" && this.drop(true)) event.stopPropagation();
      }),
      on(this.strip, "click", (event) => {
        const at = (event.clientX - this.strip.getBoundingClientRect().left - this.viewport.transform.x) / this.viewport.transform.scale;
        const last = (this.state?.document.moments ?? 1) - 1;
        if (at >= 0 && at <= last + 1) this.options.pickMoment(Math.min(Math.floor(at), last));
      }),
      on(this.strip, "pointermove", (event) => {
        const at = event.clientX - this.strip.getBoundingClientRect().left - this.viewport.transform.x;
        this.moment = Math.floor(at / this.viewport.transform.scale);
        this.viewport.redraw();
      }),
      on(this.strip, "pointerleave", () => {
        this.moment = -1;
        this.viewport.redraw();
      }),
      on(this.plot, "keydown", (event) => this.key(event), { capture: true }),
      on(this.plot, "wheel", (event) => this.wheel(event), { capture: true, passive: false }),
    );
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "{" || event.key === "}") {
      this.zoomOffsets(event.key === "}" ? 1.25 : 0.8);
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "0" || event.key === "f") {
      this.zoomY = 1; // the viewport fits the rest
    }
  }

  private wheel(event: WheelEvent): void {
    if (!event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const amount = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    this.zoomOffsets(Math.exp(-amount * 0.002), event.clientY - this.plot.getBoundingClientRect().top);
  }

  private move(event: PointerEvent, pressed: boolean): void {
    const { state, dragging } = this;
    if (!state) return;
    if (dragging) {
      if (!dragging.moved && Math.abs(event.clientY - dragging.startY) < 3) return;
      dragging.moved = true;
      const offset = snap(this.at(event).offset - dragging.grab, state.alignment);
      if (offset !== this.held?.offset) {
        this.held = { row: dragging.row, offset };
        this.options.drag(dragging.row, offset, false);
        this.viewport.redraw();
      }
      return;
    }
    const { row, moment } = this.at(event);
    const grabbable = row >= 0 && this.options.canDrag() && (state.selected.has(row) || event.altKey);
    this.viewport.canvas.style.cursor = grabbable ? "ns-resize" : row >= 0 ? "pointer" : "grab";
    const now = Math.floor(moment);
    if (row !== this.hovered || now !== this.moment) {
      this.hovered = row;
      this.moment = now;
      this.viewport.redraw();
    }
    this.options.hover(pressed ? -1 : row, event, now);
  }

  private drop(cancel: boolean): boolean {
    const { dragging, held } = this;
    this.dragging = this.held = null;
    if (!dragging?.moved) return false;
    this.options.drag(dragging.row, cancel || !held ? null : held.offset, true);
    this.viewport.redraw();
    return true;
  }

  // ---- drawing ---------------------------------------------------------------------------------------------

  private draw(
    pen: CanvasRenderingContext2D,
    _: Transform,
    theme: Theme,
    size: { width: number; height: number },
  ): void {
    this.size = size;
    const state = this.state;
    if (!state) return;
    const frame = this.frame();
    const { document } = state;
    const places = this.placed();
    this.paintPeak(pen, frame, theme, state);
    this.options.gathered(paintRows(pen, frame, theme, document, places, this.rows, false));
    this.paintHoles(pen, frame, theme, state, places);
    paintLabels(pen, frame, theme, document, places, this.rows);
    this.paintGhosts(pen, frame, theme, state);
    this.paintMarks(pen, frame, theme, state, places);
    this.paintLines(pen, frame, theme, state);
    this.paintAxis(frame, theme, state);
    this.paintStrip(frame, theme, state);
  }

  private paintPeak(pen: CanvasRenderingContext2D, frame: Frame, theme: Theme, state: ChartState): void {
    const left = frame.x(state.peak);
    pen.fillStyle = theme.raised;
    pen.fillRect(left, 0, Math.max(frame.perMoment, 2), frame.height);
  }

  private paintHoles(pen: CanvasRenderingContext2D, frame: Frame, theme: Theme, state: ChartState, places: Places): void {
    const width = Math.max(frame.perMoment, 8);
    const left = frame.x(state.peak) + frame.perMoment / 2 - width / 2;
    const pattern = hatchPattern(pen, "cross", theme.error);
    for (const [from, to] of holes(state.document, places, this.rows, state.peak, state.size)) {
      const top = frame.y(to);
      const high = frame.y(from) - top;
      if (high < 0.5) continue;
      if (pattern) {
        pen.fillStyle = pattern;
        pen.fillRect(left, top, width, high);
      }
      outline(pen, { x: left, y: top, width, height: high }, theme.error, 1);
    }
  }

  private paintGhosts(pen: CanvasRenderingContext2D, frame: Frame, theme: Theme, state: ChartState): void {
    const { moved, before, document } = state;
    if (!before || !moved) return;
    let room = GHOSTS;
    for (const row of this.rows) {
      if (!moved[row] || !room) continue;
      const now = rectOf(frame, document, state.places, row);
      if (now.x > frame.width) break;
      if (now.x + now.width < 0 || now.height < 1.5) continue;
      room -= 1;
      outline(pen, now, theme.text, 1);
      if (before.arena[row] === state.arena) {
        outline(pen, rectOf(frame, document, before, row), theme.muted, 1, [3, 3]);
      }
    }
  }

  private paintMarks(pen: CanvasRenderingContext2D, frame: Frame, theme: Theme, state: ChartState, places: Places): void {
    const { document } = state;
    const rect = (row: number) => rectOf(frame, document, places, row);
    for (const row of state.pins) {
      if (places.arena[row] !== state.arena) continue;
      const box = rect(row);
      pen.fillStyle = theme.text;
      pen.beginPath();
      pen.moveTo(box.x, box.y + box.height / 2 - 6);
      pen.lineTo(box.x + 8, box.y + box.height / 2);
      pen.lineTo(box.x, box.y + box.height / 2 + 6);
      pen.fill();
      outline(pen, box, theme.text, 1.5);
    }
    const focus = this.hovered >= 0 ? this.hovered : state.selected.size === 1 ? [...state.selected][0]! : -1;
    if (focus >= 0 && places.arena[focus] === state.arena) {
      const near = reuse(document, places, this.rows, focus);
      for (const row of near.before) outline(pen, rect(row), theme.muted, 1.5, [2, 2]);
      for (const row of near.after) outline(pen, rect(row), theme.muted, 1.5, [6, 3]);
    }
    for (const row of state.conflicts) {
      if (places.arena[row] === state.arena) outline(pen, rect(row), theme.error, 2, [5, 3]);
    }
    for (const row of state.selected) {
      if (places.arena[row] !== state.arena) continue;
      outline(pen, rect(row), theme.background, 5);
      outline(pen, rect(row), theme.accent, 3);
    }
    if (this.hovered >= 0) outline(pen, rect(this.hovered), theme.text, 1.5);
  }

  private paintLines(pen: CanvasRenderingContext2D, frame: Frame, theme: Theme, state: ChartState): void {
    const needed = `${showBytes(state.size)} needed`;
    ruler(pen, frame, theme, state.size, needed, { color: theme.text, dash: [] });
    if (state.lowerBound < state.size) {
      const text = `${showBytes(state.lowerBound)} alive at the peak`;
      ruler(pen, frame, theme, state.lowerBound, text, { color: theme.muted, dash: [4, 3], left: true, below: true });
    }
    const limit = this.limitShown();
    if (limit !== null) {
      const color = limit < state.size ? theme.error : theme.warn;
      ruler(pen, frame, theme, limit, `limit ${showBytes(limit)}`, { color, dash: [8, 4], left: true });
    }
  }

  private paintAxis(frame: Frame, theme: Theme, state: ChartState): void {
    const pen = prepared(this.axis, GUTTER, frame.height);
    if (!pen) return;
    pen.font = `11px ${theme.font || "sans-serif"}`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = theme.muted;
    pen.strokeStyle = theme.border;
    const visible = frame.height / frame.perByte;
    const step = nice(visible / Math.max(2, frame.height / 60));
    const low = Math.max(0, Math.floor((frame.y(0) - frame.height) / frame.perByte / step) * step);
    for (let offset = low; offset <= low + visible + step; offset += step) {
      const y = frame.y(offset);
      if (y < 6 || y > frame.height - 5 + (offset === 0 ? 6 : 0) || offset > Math.max(state.size, state.limit ?? 0) * 1.5) continue;
      pen.fillText(showBytes(offset), GUTTER - 7, Math.min(y, frame.height - 7));
      pen.beginPath();
      pen.moveTo(GUTTER - 4, Math.round(y) + 0.5);
      pen.lineTo(GUTTER, Math.round(y) + 0.5);
      pen.stroke();
    }
  }

  private paintStrip(frame: Frame, theme: Theme, state: ChartState): void {
    const pen = prepared(this.strip, frame.width, STRIP);
    if (!pen) return;
    const most = this.most;
    const y = (bytes: number) => STRIP - 4 - (bytes / most) * (STRIP - 18);
    const points = outlineOf(this.line, (moment) => frame.x(moment), frame.width);
    pen.beginPath();
    pen.moveTo(points[0]?.x ?? 0, y(0));
    for (const point of points) pen.lineTo(point.x, y(point.bytes));
    pen.lineTo(points.at(-1)?.x ?? 0, y(0));
    pen.fillStyle = mixed(theme);
    pen.fill();
    pen.strokeStyle = kindLook(0).color;
    pen.lineWidth = 1.2;
    pen.stroke();
    pen.font = `11px ${theme.font || "sans-serif"}`;
    pen.textBaseline = "top";
    const mark = (moment: number, color: string, text: string) => {
      const x = frame.x(moment + 0.5);
      if (x < 0 || x > frame.width) return;
      pen.fillStyle = color;
      pen.beginPath();
      pen.arc(x, y(liveAt(this.line, moment)), 3, 0, 7);
      pen.fill();
      const width = pen.measureText(text).width;
      pen.fillText(text, Math.min(Math.max(x + 6, 2), frame.width - width - 4), 1);
    };
    const peak = liveAt(this.line, state.peak);
    if (this.moment >= 0 && this.moment < state.document.moments) {
      const name = state.document.moment_name.get(this.moment);
      mark(this.moment, theme.text, `${showBytes(liveAt(this.line, this.moment))} at ${name}`);
    } else {
      mark(state.peak, theme.error, `peak ${showBytes(peak)} at ${state.document.moment_name.get(state.peak)}`);
    }
  }
}

function mixed(theme: Theme): string {
  return theme.dark ? "rgb(86 180 233 / 25%)" : "rgb(0 114 178 / 18%)";
}

/** 1, 2 or 4 times a power of 1024's powers of two: steps that read well in KiB and MiB. */
export function nice(step: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(step, 1)));
}

/** A canvas of this size in CSS pixels, cleared. */
function prepared(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
  const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== hgt) canvas.height = hgt;
  const pen = canvas.getContext("2d");
  pen?.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen?.clearRect(0, 0, width, height);
  return pen;
}
