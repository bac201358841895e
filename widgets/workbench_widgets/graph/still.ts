// A drawing that is too large to be made sixty times a second: while it is panned or zoomed, the
// last one is
// shown moved or scaled; when it rests, it is made anew.
import type { Transform } from "../common/viewport.ts";

const MOST = 3000;
const REST = 110;

type Draw = (pen: CanvasRenderingContext2D) => number;

export class Still {
  private readonly again: () => void;
  private canvas: HTMLCanvasElement | null = null;
  private taken: Transform | null = null;
  private count = 0;
  private timer = 0;

  constructor(again: () => void) {
    this.again = again;
  }

  /** What was drawn is out of date. */
  forget(): void {
    this.taken = null;
  }

  /**
   * Draws, or shows the last drawing while the transform changes; `draw` returns how many boxes it
   * drew.
   */
  draw(
    pen: CanvasRenderingContext2D,
    transform: Readonly<Transform>,
    size: { width: number; height: number },
    draw: Draw,
  ): void {
    const { taken, canvas } = this;
    const moves =
      taken &&
      (taken.x !== transform.x || taken.y !== transform.y || taken.scale !== transform.scale);
    const fits = canvas && canvas.width === pen.canvas.width && canvas.height === pen.canvas.height;
    if (taken && canvas && fits && moves && this.count > MOST) {
      const ratio = transform.scale / taken.scale;
      pen.drawImage(
        canvas,
        transform.x - taken.x * ratio,
        transform.y - taken.y * ratio,
        size.width * ratio,
        size.height * ratio,
      );
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.forget();
        this.again();
      }, REST) as unknown as number;
      return;
    }
    this.count = draw(pen);
    if (this.count > MOST) this.keep(pen, transform);
    else this.taken = null;
  }

  destroy(): void {
    clearTimeout(this.timer);
  }

  private keep(pen: CanvasRenderingContext2D, transform: Readonly<Transform>): void {
    this.canvas ??= document.createElement("canvas");
    this.canvas.width = pen.canvas.width;
    this.canvas.height = pen.canvas.height;
    this.canvas.getContext("2d")?.drawImage(pen.canvas, 0, 0);
    this.taken = { ...transform };
  }
}
