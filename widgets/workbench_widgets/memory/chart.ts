// The picture of a plan: offset by time, the bytes alive above it, an axis beside it; pan, zoom, drag.
import { h, on } from "../common/dom.ts";
import type { Theme } from "../common/theme.ts";
import { Viewport, type Transform } from "../common/viewport.ts";
import { paintAxis, paintStrip, type StepLine } from "./axes.ts";
import {
  limitShown,
  paintGhosts,
  paintHoles,
  paintLines,
  paintMarks,
  paintPeak,
  type ChartState,
} from "./layers.ts";
import { paintLabels, paintRows, rectOf, type Frame } from "./paint.ts";
import { hit, rowsOf, snap, steps, type Places } from "./scene.ts";

const HEADROOM = 18;

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

export class Chart {
  readonly el: HTMLElement;
  readonly viewport: Viewport;
  private readonly strip = h("canvas.wb-memory-strip", {
    "aria-hidden": true,
    title: "Bytes alive; a click chooses the instruction",
  });
  private readonly axis = h("canvas.wb-memory-axis", { "aria-hidden": true });
  private readonly plot = h("div.wb-memory-plot");
  private readonly options: ChartOptions;
  private readonly ends: (() => void)[] = [];
  private state: ChartState | null = null;
  private rows = new Int32Array();
  private line: StepLine = { moment: new Int32Array(), bytes: new Float64Array(), most: 1 };
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
      extent: () => ({
        x: 0,
        y: 0,
        width: this.state?.document.moments ?? 1,
        height: this.size.height * this.zoomY,
      }),
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
      const line = steps(state.document, this.rows, state.alignment);
      this.line = { ...line, most: line.bytes.reduce((most, item) => Math.max(most, item), 1) };
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
    const top = Math.max(
      state?.size ?? 1,
      state?.sizeBefore ?? 0,
      (state && limitShown(state)) ?? 0,
      1,
    );
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
    this.dragging = {
      row,
      grab: offset - this.state.places.offset[row]!,
      moved: false,
      startY: event.clientY,
    };
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
        const still =
          pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) < 4;
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
        const at =
          (event.clientX - this.strip.getBoundingClientRect().left - this.viewport.transform.x) /
          this.viewport.transform.scale;
        const last = (this.state?.document.moments ?? 1) - 1;
        if (at >= 0 && at <= last + 1) this.options.pickMoment(Math.min(Math.floor(at), last));
      }),
      on(this.strip, "pointermove", (event) => {
        const at =
          event.clientX - this.strip.getBoundingClientRect().left - this.viewport.transform.x;
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
    this.zoomOffsets(
      Math.exp(-amount * 0.002),
      event.clientY - this.plot.getBoundingClientRect().top,
    );
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
    const grabbable =
      row >= 0 && this.options.canDrag() && (state.selected.has(row) || event.altKey);
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
    paintPeak(pen, frame, theme, state);
    this.options.gathered(paintRows(pen, frame, theme, document, places, this.rows, false));
    paintHoles(pen, frame, theme, state, places, this.rows);
    paintLabels(pen, frame, theme, document, places, this.rows);
    paintGhosts(pen, frame, theme, state, this.rows);
    paintMarks(pen, frame, theme, state, places, this.rows, this.hovered);
    paintLines(pen, frame, theme, state);
    paintAxis(this.axis, frame, theme, state);
    paintStrip(this.strip, frame, theme, state, this.line, this.moment);
  }
}
