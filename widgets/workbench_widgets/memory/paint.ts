// Drawing of a memory plan: rectangles, the peak, holes, ghosts, labels. Coordinates come ready from chart.ts.
import type { MemoryDocument } from "../contract.ts";
import { bytes as showBytes } from "../common/format.ts";
import { hatchPattern, swatch, type Hatch } from "../common/palette.ts";
import type { Theme } from "../common/theme.ts";
import { KINDS, type Places } from "./scene.ts";

/** From moments and bytes to pixels. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  x(moment: number): number;
  y(offset: number): number;
  /** Pixels of a moment. */
  readonly perMoment: number;
  /** Pixels of a byte. */
  readonly perByte: number;
}

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function rectOf(frame: Frame, document: MemoryDocument, places: Places, row: number): Rect {
  const x = frame.x(document.first[row]!);
  const right = frame.x(document.last[row]! + 1);
  const top = frame.y(places.offset[row]! + document.bytes[row]!);
  const bottom = frame.y(places.offset[row]!);
  return { x, y: top, width: right - x, height: bottom - top };
}

const KIND_HATCH: readonly Hatch[] = ["none", "diagonal", "back", "dots"];
const KIND_SWATCH = [0, 1, 2, 3] as const;

/** Colour and hatch of a kind, as the legend shows them. */
export function kindLook(kind: number): { name: string; color: string; hatch: Hatch } {
  return {
    name: KINDS[kind] ?? "",
    color: swatch(KIND_SWATCH[kind] ?? 0).color,
    hatch: KIND_HATCH[kind] ?? "none",
  };
}

/** A colour laid over another, as `rgb()`. */
export function mix(color: string, over: string, share: number): string {
  const parts = (text: string) => {
    const hex = /^#(..)(..)(..)/.exec(text);
    if (hex) return hex.slice(1).map((part) => parseInt(part, 16));
    const short = /^#(.)(.)(.)$/.exec(text);
    if (short) return short.slice(1).map((part) => parseInt(part + part, 16));
    const rgb = /^rgba?\(([^)]+)\)/.exec(text);
    return rgb
      ? rgb[1]!
          .split(/[,\s/]+/)
          .slice(0, 3)
          .map(Number)
      : [255, 255, 255];
  };
  const [top, under] = [parts(color), parts(over)];
  return `rgb(${top.map((value, at) => Math.round(value * share + under[at]! * (1 - share))).join(",")})`;
}

/** The background as `#rrggbb`, whatever words the theme has for it. */
function ground(pen: CanvasRenderingContext2D, theme: Theme): string {
  pen.fillStyle = theme.background;
  return String(pen.fillStyle);
}

// Rectangles smaller than this are gathered once there are many: one mark stands for all on the same spot.
const MANY = 3000;
const CELL = 2;

/** Draws rows; returns how many were gathered into marks of others. */
export function paintRows(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  document: MemoryDocument,
  places: Places,
  rows: Int32Array,
  dim: boolean,
): number {
  const batches: number[][] = Array.from({ length: 2 * KINDS.length }, () => []);
  const boxes = new Float32Array(4 * rows.length);
  let shown = 0;
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!;
    const rect = rectOf(frame, document, places, row);
    if (rect.x > frame.width) break; // by first moment: all that follow begin later
    if (rect.x + rect.width < 0 || rect.y > frame.height || rect.y + rect.height < 0) continue;
    const left = Math.round(rect.x);
    const top = Math.round(rect.y);
    boxes[4 * at] = left;
    boxes[4 * at + 1] = top;
    boxes[4 * at + 2] = Math.max(1, Math.round(rect.x + rect.width) - left);
    boxes[4 * at + 3] = Math.max(1, Math.round(rect.y + rect.height) - top);
    batches[2 * document.kind[row]! + document.at_peak[row]!]!.push(at);
    shown += 1;
  }
  const background = ground(pen, theme);
  const grid = shown > MANY ? new Occupied(frame) : null;
  let gathered = 0;
  batches.forEach((batch, number) => {
    if (!batch.length) return;
    const look = kindLook(number >> 1);
    const strength = (number & 1 ? 1 : 0.5) * (dim ? 0.35 : 1);
    pen.fillStyle = mix(look.color, background, strength);
    const pattern = hatchPattern(pen, look.hatch, mix(background, look.color, 0.6));
    const large: number[] = [];
    for (const at of batch) {
      const [x, y, width, height] = [
        boxes[4 * at]!,
        boxes[4 * at + 1]!,
        boxes[4 * at + 2]!,
        boxes[4 * at + 3]!,
      ];
      if (grid && width * height <= CELL * CELL && !grid.take(x, y)) {
        gathered += 1;
        continue;
      }
      // A pixel of background tells neighbours apart, at no cost.
      pen.fillRect(x, y, width > 3 ? width - 1 : width, height > 3 ? height - 1 : height);
      if (pattern && width > 6 && height > 6) large.push(at);
    }
    if (!pattern || dim) return;
    pen.fillStyle = pattern;
    for (const at of large)
      pen.fillRect(
        boxes[4 * at]!,
        boxes[4 * at + 1]!,
        boxes[4 * at + 2]! - 1,
        boxes[4 * at + 3]! - 1,
      );
  });
  return gathered;
}

/** Which spots of a few pixels have a mark. */
class Occupied {
  private readonly columns: number;
  private readonly cells: Uint8Array;

  constructor(frame: Frame) {
    this.columns = Math.ceil(frame.width / CELL) + 1;
    this.cells = new Uint8Array(this.columns * (Math.ceil(frame.height / CELL) + 1));
  }

  take(x: number, y: number): boolean {
    const at = Math.max(0, (y / CELL) | 0) * this.columns + Math.max(0, (x / CELL) | 0);
    if (this.cells[at]) return false;
    this.cells[at] = 1;
    return true;
  }
}

/** Names inside rectangles that have the room. */
export function paintLabels(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  document: MemoryDocument,
  places: Places,
  rows: Int32Array,
): void {
  pen.font = `11px ${theme.font || "sans-serif"}`;
  pen.textBaseline = "top";
  const background = ground(pen, theme);
  let room = 400; // more labels than this, nobody reads
  for (let at = 0; at < rows.length && room; at++) {
    const row = rows[at]!;
    const rect = rectOf(frame, document, places, row);
    if (rect.x > frame.width) break;
    const left = Math.max(rect.x, 0);
    const width = Math.min(rect.x + rect.width, frame.width) - left;
    const top = Math.max(rect.y, 0);
    if (
      width < 44 ||
      Math.min(rect.y + rect.height, frame.height) - top < 15 ||
      rect.y > frame.height
    )
      continue;
    const label = fitted(pen, document.name.get(row), width - 8);
    if (!label) continue;
    room -= 1;
    const strong = document.at_peak[row] === 1;
    const look = kindLook(document.kind[row]!);
    const ink =
      strong && (look.color === "#0072B2" || look.color === "#009E73")
        ? "#fff"
        : strong
          ? "#000"
          : theme.text;
    if (look.hatch !== "none") {
      pen.fillStyle = mix(look.color, background, strong ? 1 : 0.5);
      pen.fillRect(left + 2, top + 1, pen.measureText(label).width + 4, 13);
    }
    pen.fillStyle = ink;
    pen.fillText(label, left + 4, top + 2);
    if (Math.min(rect.y + rect.height, frame.height) - top > 29 && width > 60) {
      const size = showBytes(document.bytes[row]!);
      if (look.hatch !== "none") {
        pen.fillStyle = mix(look.color, background, strong ? 1 : 0.5);
        pen.fillRect(left + 2, top + 14, pen.measureText(size).width + 4, 13);
      }
      pen.fillStyle = ink;
      pen.fillText(size, left + 4, top + 15);
    }
  }
}

function fitted(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  // Widths of letters differ little: one guess, then letter by letter.
  let length = Math.floor((text.length * width) / pen.measureText(text).width);
  while (length > 2 && pen.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return length > 2 ? `${text.slice(0, length)}…` : "";
}

/** A dashed or whole outline. */
export function outline(
  pen: CanvasRenderingContext2D,
  rect: Rect,
  color: string,
  width: number,
  dash: number[] = [],
): void {
  pen.save();
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.strokeRect(
    rect.x + width / 2 - 0.5,
    rect.y + width / 2 - 0.5,
    Math.max(rect.width - width, 1),
    Math.max(rect.height - width, 1),
  );
  pen.restore();
}

/** A horizontal line over the whole width with words at its end. */
export function ruler(
  pen: CanvasRenderingContext2D,
  frame: Frame,
  theme: Theme,
  offset: number,
  text: string,
  look: { color: string; dash: number[]; left?: boolean; below?: boolean },
): void {
  const y = Math.round(frame.y(offset)) + 0.5;
  if (y < -1 || y > frame.height + 1) return;
  pen.save();
  pen.strokeStyle = pen.fillStyle = look.color;
  pen.setLineDash(look.dash);
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, y);
  pen.lineTo(frame.width, y);
  pen.stroke();
  pen.font = `11px ${theme.font || "sans-serif"}`;
  const width = pen.measureText(text).width;
  const left = look.left ? 4 : frame.width - width - 6;
  const below = look.below || y < 14;
  pen.fillStyle = theme.background;
  pen.globalAlpha = 0.8;
  pen.fillRect(left - 2, below ? y + 1 : y - 14, width + 4, 13);
  pen.globalAlpha = 1;
  pen.fillStyle = look.color;
  pen.textBaseline = "top";
  pen.fillText(text, left, below ? y + 2 : y - 13);
  pen.restore();
}
