// Small pieces of drawing.

/** A border inside of a span. */
export function outline(
  pen: CanvasRenderingContext2D,
  colour: string,
  left: number,
  top: number,
  width: number,
  height: number,
  line: number,
): void {
  pen.strokeStyle = colour;
  pen.lineWidth = line;
  pen.strokeRect(left + line / 2, top + 1 + line / 2, Math.max(width - line, 1), height - line);
  pen.lineWidth = 1;
}

/** Black or white, whichever stands out on a colour. */
export function inkOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  return 0.299 * red! + 0.587 * green! + 0.114 * blue! > 0.5 ? "#000000" : "#ffffff";
}
