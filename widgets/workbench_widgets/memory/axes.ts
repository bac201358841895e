// The axes of a plan: bytes beside it, the bytes alive above it, on canvases of their own.
import { bytes as showBytes } from "../common/format.ts";
import type { Theme } from "../common/theme.ts";
import type { ChartState } from "./layers.ts";
import { kindLook, type Frame } from "./paint.ts";
import { liveAt, outlineOf } from "./scene.ts";

const GUTTER = 64;
const STRIP = 58;

export interface StepLine {
  readonly moment: Int32Array;
  readonly bytes: Float64Array;
  /** The most of `bytes`. */
  readonly most: number;
}

/** Bytes, beside the picture. */
export function paintAxis(
  canvas: HTMLCanvasElement,
  frame: Frame,
  theme: Theme,
  state: ChartState,
): void {
  const pen = prepared(canvas, GUTTER, frame.height);
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
    if (
      y < 6 ||
      y > frame.height - 5 + (offset === 0 ? 6 : 0) ||
      offset > Math.max(state.size, state.limit ?? 0) * 1.5
    )
      continue;
    pen.fillText(showBytes(offset), GUTTER - 7, Math.min(y, frame.height - 7));
    pen.beginPath();
    pen.moveTo(GUTTER - 4, Math.round(y) + 0.5);
    pen.lineTo(GUTTER, Math.round(y) + 0.5);
    pen.stroke();
  }
}

/** Bytes alive, above the picture; with the moment that is pointed at, or the peak. */
export function paintStrip(
  canvas: HTMLCanvasElement,
  frame: Frame,
  theme: Theme,
  state: ChartState,
  line: StepLine,
  pointed: number,
): void {
  const pen = prepared(canvas, frame.width, STRIP);
  if (!pen) return;
  const most = line.most;
  const y = (bytes: number) => STRIP - 4 - (bytes / most) * (STRIP - 18);
  const points = outlineOf(line, (moment) => frame.x(moment), frame.width);
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
    pen.arc(x, y(liveAt(line, moment)), 3, 0, 7);
    pen.fill();
    const width = pen.measureText(text).width;
    pen.fillText(text, Math.min(Math.max(x + 6, 2), frame.width - width - 4), 1);
  };
  const peak = liveAt(line, state.peak);
  if (pointed >= 0 && pointed < state.document.moments) {
    const name = state.document.moment_name.get(pointed);
    mark(pointed, theme.text, `${showBytes(liveAt(line, pointed))} at ${name}`);
  } else {
    mark(
      state.peak,
      theme.error,
      `peak ${showBytes(peak)} at ${state.document.moment_name.get(state.peak)}`,
    );
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
function prepared(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
  const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== hgt) canvas.height = hgt;
  const pen = canvas.getContext("2d");
  pen?.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen?.clearRect(0, 0, width, height);
  return pen;
}
