// A canvas that is panned and zoomed: pointer, wheel, touch, keyboard. It redraws at most once a frame.
import { throttled } from "./dom.ts";
import { readTheme, watchTheme, type Theme } from "./theme.ts";

export interface Transform {
  /** Screen = world * scale + offset, in CSS pixels. */
  scale: number;
  x: number;
  y: number;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface ViewportOptions {
  /** Draws everything; the context is in CSS pixels, cleared. */
  draw(pen: CanvasRenderingContext2D, transform: Transform, theme: Theme, size: { width: number; height: number }): void;
  /** The world's extent, for `fit` and for where panning ends. */
  extent(): Box;
  /** Shows what is to be seen first, and again at another size until somebody moves; by default `fit`. */
  home?(): void;
  /** Zooms only horizontally (timelines): y is then not transformed by the scale. */
  horizontal?: boolean;
  minScale?: number;
  maxScale?: number;
  /** Whether a press begins a pan; false leaves the pointer to the view's tool. */
  pans?(event: PointerEvent): boolean;
  label: string;
}

const STEP = 40;

export class Viewport {
  readonly canvas: HTMLCanvasElement;
  readonly transform: Transform = { scale: 1, x: 0, y: 0 };
  theme: Theme;
  private readonly options: ViewportOptions;
  private readonly request;
  private readonly ends: (() => void)[] = [];
  private width = 0;
  private height = 0;
  private wasFitted = true;
  private moving: { id: number; x: number; y: number } | null = null;

  constructor(parent: HTMLElement, options: ViewportOptions) {
    this.options = options;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "wb-canvas";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", options.label);
    Object.assign(this.canvas.style, { display: "block", width: "100%", height: "100%", touchAction: "none" });
    parent.append(this.canvas);
    // Tests find what is drawn where.
    Object.assign(this.canvas, { wbViewport: this });
    this.theme = readTheme(parent);
    this.request = throttled(() => this.paint());
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(parent);
    this.ends.push(() => observer.disconnect(), watchTheme(() => {
      this.theme = readTheme(parent);
      this.redraw();
    }));
    this.resize();
    this.listen();
  }

  /** Paints at the next frame. */
  redraw(): void {
    this.request();
  }

  /** The visible part of the world. */
  visible(): Box {
    const { scale, x, y } = this.transform;
    const vertical = this.options.horizontal ? 1 : scale;
    return { x: -x / scale, y: -y / vertical, width: this.width / scale, height: this.height / vertical };
  }

  /** World coordinates of a pointer event. */
  world(event: { clientX: number; clientY: number }): { x: number; y: number } {
    const rect = this.canvas.getBoundingClientRect();
    const { scale, x, y } = this.transform;
    const vertical = this.options.horizontal ? 1 : scale;
    return { x: (event.clientX - rect.left - x) / scale, y: (event.clientY - rect.top - y) / vertical };
  }

  /** Client coordinates of a point of the world. */
  client(x: number, y: number): { x: number; y: number } {
    const rect = this.canvas.getBoundingClientRect();
    const vertical = this.options.horizontal ? 1 : this.transform.scale;
    return {
      x: rect.left + x * this.transform.scale + this.transform.x,
      y: rect.top + y * vertical + this.transform.y,
    };
  }

  /** Shows a part of the world, by default all of it. */
  fit(box: Box = this.options.extent(), padding = 16, most = 1.5): void {
    this.wasFitted = true;
    const width = Math.max(1, this.width - 2 * padding);
    const height = Math.max(1, this.height - 2 * padding);
    const wide = width / Math.max(box.width, 1e-9);
    const high = this.options.horizontal ? Infinity : height / Math.max(box.height, 1e-9);
    const limit = this.options.horizontal ? Infinity : most;
    this.transform.scale = this.clamp(Math.min(wide, high, limit));
    const { scale } = this.transform;
    this.transform.x = padding + (width - box.width * scale) / 2 - box.x * scale;
    this.transform.y = this.options.horizontal
      ? 0
      : padding + (height - box.height * scale) / 2 - box.y * scale;
    this.redraw();
  }

  /** Moves as little as needed to bring a box into sight. */
  reveal(box: Box, margin = 24): void {
    const { scale } = this.transform;
    const vertical = this.options.horizontal ? 1 : scale;
    const shift = (low: number, high: number, room: number) =>
      low < margin || high - low > room - 2 * margin
        ? margin - low
        : high > room - margin
          ? room - margin - high
          : 0;
    const left = box.x * scale + this.transform.x;
    const top = box.y * vertical + this.transform.y;
    this.pan(
      shift(left, left + box.width * scale, this.width),
      shift(top, top + box.height * vertical, this.height),
    );
  }

  pan(dx: number, dy: number): void {
    if (!dx && !dy) return;
    this.wasFitted = false;
    this.transform.x += dx;
    this.transform.y += dy;
    this.hold();
    this.redraw();
  }

  /** Zooms about a point of the canvas, by default its middle. */
  zoom(factor: number, x = this.width / 2, y = this.height / 2): void {
    this.wasFitted = false;
    const before = this.transform.scale;
    const after = this.clamp(before * factor);
    this.transform.scale = after;
    this.transform.x = x - ((x - this.transform.x) * after) / before;
    if (!this.options.horizontal) this.transform.y = y - ((y - this.transform.y) * after) / before;
    this.hold();
    this.redraw();
  }

  destroy(): void {
    this.request.cancel();
    for (const end of this.ends) end();
    this.canvas.remove();
  }

  /** Paints now; views measure with it. */
  paint(): void {
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.width || !this.height) return;
    const ratio = this.canvas.width / this.width;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.options.draw(pen, this.transform, this.theme, { width: this.width, height: this.height });
  }

  private clamp(scale: number): number {
    return Math.min(Math.max(scale, this.options.minScale ?? 0.005), this.options.maxScale ?? 8);
  }

  /** Keeps at least a piece of the world in sight. */
  private hold(): void {
    const box = this.options.extent();
    const { scale } = this.transform;
    const vertical = this.options.horizontal ? 1 : scale;
    const keep = 60;
    const within = (offset: number, low: number, high: number, room: number) =>
      Math.min(Math.max(offset, keep - high), room - keep - low);
    this.transform.x = within(this.transform.x, box.x * scale, (box.x + box.width) * scale, this.width);
    if (this.options.horizontal && box.height <= this.height) this.transform.y = 0;
    else this.transform.y = within(this.transform.y, box.y * vertical, (box.y + box.height) * vertical, this.height);
  }

  private resize(): void {
    const parent = this.canvas.parentElement;
    if (!parent) return;
    const width = parent.clientWidth;
    const height = parent.clientHeight;
    if (!width || !height) return;
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    [this.width, this.height] = [width, height];
    // Notebooks attach an element after it was rendered: until then no colour was known.
    this.theme = readTheme(parent);
    if (this.wasFitted) (this.options.home ?? (() => this.fit()))();
    // At once: a canvas is cleared by its new size, and would blink.
    this.paint();
  }

  private listen(): void {
    const canvas = this.canvas;
    const add = <K extends keyof HTMLElementEventMap>(
      name: K,
      listener: (event: HTMLElementEventMap[K]) => void,
      options?: AddEventListenerOptions,
    ) => {
      canvas.addEventListener(name, listener, options);
      this.ends.push(() => canvas.removeEventListener(name, listener, options));
    };
    add("wheel", (event) => this.wheel(event), { passive: false });
    add("pointerdown", (event) => {
      if (event.button > 1 || this.moving) return;
      if (event.button === 0 && this.options.pans && !this.options.pans(event)) return;
      this.moving = { id: event.pointerId, x: event.clientX, y: event.clientY };
      canvas.setPointerCapture(event.pointerId);
    });
    add("pointermove", (event) => {
      if (this.moving?.id !== event.pointerId) return;
      this.pan(event.clientX - this.moving.x, event.clientY - this.moving.y);
      this.moving = { id: event.pointerId, x: event.clientX, y: event.clientY };
    });
    const stop = () => {
      this.moving = null;
    };
    add("pointerup", stop);
    add("pointercancel", stop);
    add("keydown", (event) => this.key(event));
  }

  private wheel(event: WheelEvent): void {
    // A page must stay scrollable over a view: zooming takes Ctrl or Cmd (pinching sends Ctrl), or the focus.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    const rect = this.canvas.getBoundingClientRect();
    const amount = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    if (event.shiftKey) this.pan(-amount, 0);
    else this.zoom(Math.exp(-amount * 0.002), event.clientX - rect.left, event.clientY - rect.top);
  }

  private key(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = event.shiftKey ? 4 * STEP : STEP;
    const actions: Readonly<Record<string, () => void>> = {
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      "0": () => this.fit(),
      f: () => this.fit(),
      ArrowLeft: () => this.pan(step, 0),
      ArrowRight: () => this.pan(-step, 0),
      ArrowUp: () => this.pan(0, step),
      ArrowDown: () => this.pan(0, -step),
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    // A notebook has shortcuts of its own for plain keys.
    event.stopPropagation();
  }
}
