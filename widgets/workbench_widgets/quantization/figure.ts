// What both pictures share: drawn anew at the width that there is, a cursor by mouse and keyboard that says what is there.
import { h, on, svg, throttled } from "../common/dom.ts";

export interface Place {
  readonly x: number;
  readonly width: number;
  readonly text: string;
}

/** What a picture draws at a width, and where its parts stand, from left to right. */
export interface Drawn {
  readonly parts: readonly SVGElement[];
  readonly places: readonly Place[];
  /** Where the cursor's line begins and ends. */
  readonly top: number;
  readonly bottom: number;
}

const LEAST = 160;

export class Figure {
  readonly el: HTMLElement;
  private readonly picture: SVGSVGElement;
  private readonly said = h("div.wb-quant-said", { role: "status" });
  private readonly line = svg("line", { class: "wb-quant-cursor", visibility: "hidden" });
  private readonly redraw = throttled(() => this.paint());
  private readonly observer: ResizeObserver;
  private readonly ends: (() => void)[];
  private readonly make: (width: number) => Drawn;
  private readonly rest: string;
  private drawn: Drawn | null = null;
  private at = -1;

  /** `rest` is said while the cursor is nowhere. */
  constructor(label: string, height: number, rest: string, make: (width: number) => Drawn) {
    this.make = make;
    this.rest = rest;
    this.picture = svg("svg", {
      tabindex: 0,
      role: "application",
      height,
      "aria-label": `${label} Arrow keys, Home and End go from part to part; the table below says the same.`,
      class: "wb-quant-picture",
    });
    this.el = h("div.wb-quant-figure", {}, this.picture, this.said);
    this.observer = new ResizeObserver(() => this.redraw());
    this.observer.observe(this.el);
    this.ends = [
      on(this.picture, "pointermove", (event) => this.point(event)),
      on(this.picture, "pointerleave", () => this.go(-1)),
      on(this.picture, "keydown", (event) => this.key(event)),
    ];
    this.paint();
  }

  destroy(): void {
    this.redraw.cancel();
    this.observer.disconnect();
    for (const end of this.ends) end();
    this.el.remove();
  }

  private paint(): void {
    const width = Math.max(LEAST, this.el.clientWidth || 360);
    this.picture.setAttribute("width", String(width));
    this.drawn = this.make(width);
    this.picture.replaceChildren(...this.drawn.parts, this.line);
    this.go(Math.min(this.at, this.drawn.places.length - 1));
  }

  private point(event: PointerEvent): void {
    const x = event.clientX - this.picture.getBoundingClientRect().left;
    const places = this.drawn?.places ?? [];
    this.go(places.findIndex((place) => x >= place.x && x < place.x + place.width));
  }

  private go(at: number): void {
    this.at = at;
    const place = this.drawn?.places[at];
    this.said.textContent = place?.text ?? this.rest;
    this.line.setAttribute("visibility", place ? "visible" : "hidden");
    if (!place || !this.drawn) return;
    const x = place.x + place.width / 2;
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: this.drawn.top, y2: this.drawn.bottom })) {
      this.line.setAttribute(name, String(value));
    }
  }

  private key(event: KeyboardEvent): void {
    const last = (this.drawn?.places.length ?? 0) - 1;
    if (event.altKey || event.ctrlKey || event.metaKey || last < 0) return;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: Math.max(0, this.at - 1),
      ArrowRight: Math.min(last, this.at + 1),
      PageUp: Math.max(0, this.at - 10),
      PageDown: Math.min(last, this.at + 10),
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    this.go(target);
    event.preventDefault();
    event.stopPropagation();
  }
}
