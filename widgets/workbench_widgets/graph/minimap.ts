// The whole graph in a corner, with a rectangle for what is in sight.
import { h, on } from "../common/dom.ts";
import type { Theme } from "../common/theme.ts";
import type { Viewport } from "../common/viewport.ts";
import { CATEGORIES, type Categories } from "./category.ts";
import type { Picture } from "./picture.ts";

const WIDEST = 150;
const HIGHEST = 130;
const MOST = 4000;

export class Minimap {
  readonly el: HTMLCanvasElement;
  private readonly viewport: Viewport;
  private readonly categories: Categories;
  private readonly ends: (() => void)[] = [];
  private picture: Picture | null = null;
  private map: HTMLCanvasElement | null = null;
  private theme: Theme | null = null;
  private scale = 1;

  constructor(viewport: Viewport, categories: Categories) {
    this.viewport = viewport;
    this.categories = categories;
    // What it does, the arrow keys and the wheel do as well.
    this.el = h("canvas.wb-graph-minimap", {
      "aria-hidden": true,
      title: "Overview: drag to move",
    });
    let held = false;
    this.ends.push(
      on(this.el, "pointerdown", (event) => {
        held = true;
        this.el.setPointerCapture(event.pointerId);
        this.go(event);
      }),
      on(this.el, "pointermove", (event) => held && this.go(event)),
      on(this.el, "pointerup", () => (held = false)),
      on(this.el, "pointercancel", () => (held = false)),
    );
  }

  destroy(): void {
    for (const end of this.ends) end();
    this.el.remove();
  }

  show(picture: Picture): void {
    this.picture = picture;
    this.map = null;
  }

  /** Draws the rectangle; hides itself where everything is in sight. */
  paint(): void {
    const { picture, viewport } = this;
    if (!picture) return;
    const sight = viewport.visible();
    const { extent } = picture;
    const whole =
      sight.width >= extent.width && sight.height >= extent.height && sight.x <= 0 && sight.y <= 0;
    this.el.hidden = whole;
    if (whole) return;
    if (!this.map || this.theme !== viewport.theme) this.draw(picture);
    const pen = this.el.getContext("2d");
    if (!pen || !this.map) return;
    const ratio = this.ratio;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.el.width, this.el.height);
    pen.drawImage(this.map, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.strokeStyle = viewport.theme.accent;
    pen.lineWidth = 1.5;
    const clip = (low: number, length: number, most: number) => {
      const from = Math.min(Math.max(low * this.scale, 0.75), most - 4);
      return [
        from,
        Math.max(3, Math.min((low + length) * this.scale, most - 0.75) - from),
      ] as const;
    };
    const [x, width] = clip(sight.x, sight.width, this.el.width / ratio);
    const [y, height] = clip(sight.y, sight.height, this.el.height / ratio);
    pen.fillStyle = viewport.theme.accent;
    pen.globalAlpha = 0.12;
    pen.fillRect(x, y, width, height);
    pen.globalAlpha = 1;
    pen.strokeRect(x, y, width, height);
  }

  private get ratio(): number {
    return Math.min(globalThis.devicePixelRatio || 1, 2);
  }

  private draw(picture: Picture): void {
    const { extent } = picture;
    const { theme } = this.viewport;
    this.theme = theme;
    this.scale = Math.min(WIDEST / extent.width, HIGHEST / extent.height);
    const [width, height] = [
      Math.max(24, extent.width * this.scale),
      Math.max(24, extent.height * this.scale),
    ];
    this.map = document.createElement("canvas");
    for (const canvas of [this.map, this.el]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.el.style.width = `${width}px`;
    this.el.style.height = `${height}px`;
    const pen = this.map.getContext("2d");
    if (!pen) return;
    pen.scale(this.ratio * this.scale, this.ratio * this.scale);
    const least = 1 / this.scale;
    const step = Math.max(1, Math.ceil(picture.boxes.length / MOST));
    picture.boxes.forEach((box, at) => {
      if (box.open) {
        pen.fillStyle = theme.muted;
        pen.globalAlpha = 0.12;
        pen.fillRect(box.x, box.y, box.width, box.height);
        return;
      }
      if (at % step) return;
      const category = this.categories.of(picture.model, box.item);
      pen.fillStyle = (category && CATEGORIES[category].swatch?.color) ?? theme.muted;
      pen.globalAlpha = 0.85;
      pen.fillRect(box.x, box.y, Math.max(box.width, least), Math.max(box.height, least));
    });
  }

  private go(event: PointerEvent): void {
    const rect = this.el.getBoundingClientRect();
    const { viewport } = this;
    const sight = viewport.visible();
    const x = (event.clientX - rect.left) / this.scale - sight.width / 2;
    const y = (event.clientY - rect.top) / this.scale - sight.height / 2;
    viewport.pan(
      (sight.x - x) * viewport.transform.scale,
      (sight.y - y) * viewport.transform.scale,
    );
  }
}
