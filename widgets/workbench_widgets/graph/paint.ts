// Draws a picture: frames, edges, boxes, titles; only what is in sight, and no more than the scale
// can show.
import { hatchPattern, type Hatch } from "../common/palette.ts";
import type { Theme } from "../common/theme.ts";
import type { Box, Transform } from "../common/viewport.ts";
import { CATEGORIES, type Categories } from "./category.ts";
import { IN, OUT, paintEdges } from "./edgepaint.ts";
import type { Highlight } from "./highlight.ts";
import { DETAIL_SIZE, HEADER, TITLE_SIZE, fitText, type Measure } from "./labels.ts";
import type { Picture, PictureBox } from "./picture.ts";

export interface Fill {
  readonly color: string;
  readonly ink: string | null;
  readonly hatch: Hatch;
  /** Stands in place of the box's detail. */
  readonly text?: string;
  /** 0 to 1: a bar along the bottom says the same as the colour. */
  readonly share: number | null;
}

export interface Style {
  /** How a closed box is filled; null for the plain look. */
  fill(box: PictureBox): Fill | null;
  /** 2: selected, 1: holds what is selected, 0: neither. */
  selected(box: PictureBox): 0 | 1 | 2;
  readonly hits: ReadonlySet<number>;
  readonly hit: number;
  readonly cursor: number;
  readonly hover: PictureBox | null;
  readonly highlight: Highlight | null;
  readonly categories: Categories;
  readonly measure: Measure;
  /** Layers below the boxes; the pen is in world coordinates. */
  beneath(pen: CanvasRenderingContext2D): void;
  /** 0 while boxes move: edges come when they rest. */
  readonly edges: number;
}

/** Below these scales labels, details and strips say nothing to anybody. */
const TITLES = 0.3;
const DETAILS = 0.62;
const STRIPS = 0.12;

export function paintPicture(
  pen: CanvasRenderingContext2D,
  picture: Picture,
  transform: Readonly<Transform>,
  sight: Box,
  theme: Theme,
  style: Style,
): number {
  const { scale } = transform;
  const seen = picture.inSight(sight);
  pen.save();
  pen.translate(transform.x, transform.y);
  pen.scale(scale, scale);
  pen.lineJoin = "round";
  pen.textRendering = "geometricPrecision";
  for (const box of seen) if (box.open) paintFrame(pen, box, theme, style, scale);
  // Frames are opaque: what lies below the boxes lies above the frames that hold them.
  style.beneath(pen);
  if (style.edges > 0) paintEdges(pen, picture, sight, scale, theme, style);
  const plain: PictureBox[] = [];
  for (const box of seen) {
    if (box.open) continue;
    if (scale < STRIPS) plain.push(box);
    else paintBox(pen, box, theme, style, scale);
  }
  if (plain.length) paintSmall(pen, plain, theme, style, scale);
  for (const box of seen) if (box.open) paintHeader(pen, box, theme, style, scale);
  for (const box of seen) paintMarks(pen, box, theme, style, scale);
  pen.restore();
  return seen.length;
}

function paintFrame(
  pen: CanvasRenderingContext2D,
  box: PictureBox,
  theme: Theme,
  style: Style,
  scale: number,
): void {
  const category = style.categories.of(box.model, box.item);
  rounded(pen, box, 6);
  pen.fillStyle = box.depth % 2 ? theme.background : theme.surface;
  pen.fill();
  pen.lineWidth = Math.max(1, 0.7 / scale);
  pen.strokeStyle = category ? (CATEGORIES[category].swatch?.color ?? theme.border) : theme.border;
  if (category === "control") pen.setLineDash([6, 3]);
  pen.stroke();
  pen.setLineDash([]);
}

function paintHeader(
  pen: CanvasRenderingContext2D,
  box: PictureBox,
  theme: Theme,
  style: Style,
  scale: number,
): void {
  // Titles of large frames stay readable while what they hold is small: they grow against the
  // scale.
  const grow = Math.min(Math.max(0.8 / scale, 1), 3);
  if (scale * grow < TITLES || box.width * scale < 46) return;
  const size = TITLE_SIZE * Math.min(grow, Math.max(1, (HEADER - 4) / TITLE_SIZE) * 1.4);
  const room = box.width - 26;
  const title = fitText(box.title, size, room, style.measure, true);
  pen.font = `600 ${size}px ${theme.font || "sans-serif"}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  const width = Math.min(style.measure(title, size, true), room);
  const y = box.y + HEADER / 2;
  pen.fillStyle = box.depth % 2 ? theme.background : theme.surface;
  pen.fillRect(box.x + 3, y - size * 0.62, width + 22, size * 1.24);
  pen.fillStyle = theme.text;
  pen.fillText(title, box.x + 20, y, width);
  sign(pen, box.x + 11, y, "−", theme);
  const left = room - width - 12;
  if (scale >= DETAILS && left > 60) {
    pen.font = `${DETAIL_SIZE}px ${theme.font || "sans-serif"}`;
    const detail = fitText(box.detail, DETAIL_SIZE, left, style.measure);
    pen.fillStyle = box.depth % 2 ? theme.background : theme.surface;
    pen.fillRect(box.x + 26 + width, y - 7, style.measure(detail, DETAIL_SIZE) + 8, 14);
    pen.fillStyle = theme.muted;
    pen.fillText(detail, box.x + 28 + width, y, left);
  }
}

function paintBox(
  pen: CanvasRenderingContext2D,
  box: PictureBox,
  theme: Theme,
  style: Style,
  scale: number,
): void {
  const category = style.categories.of(box.model, box.item);
  const fill = style.fill(box);
  const round = category === "boundary" ? box.height / 2 : box.kind === "node" ? 4 : 6;
  if (box.kind === "fold") stack(pen, box, theme, round);
  rounded(pen, box, round);
  pen.fillStyle = fill?.color ?? (box.kind === "node" ? theme.background : theme.raised);
  pen.fill();
  if (fill && fill.hatch !== "none") {
    const pattern = patternOf(pen, fill.hatch, theme.dark ? "#ffffff66" : "#00000055");
    if (pattern) {
      pen.fillStyle = pattern;
      pen.fill();
    }
  }
  pen.lineWidth = Math.max(1, 0.7 / scale);
  pen.strokeStyle = box.kind === "node" ? theme.border : theme.muted;
  if (category === "control") pen.setLineDash([5, 3]);
  pen.stroke();
  pen.setLineDash([]);
  if (category === "delegate") {
    pen.lineWidth = 1;
    rounded(pen, inset(box, 2.5), Math.max(round - 2, 2));
    pen.stroke();
  }
  if (fill?.share != null) {
    pen.fillStyle = fill.ink ?? theme.text;
    pen.fillRect(box.x + 4, box.y + box.height - 4, (box.width - 8) * fill.share, 2);
  } else if (!fill && category && CATEGORIES[category].swatch) {
    strip(pen, box, category, theme, scale, round);
  }
  if (scale >= TITLES) paintText(pen, box, theme, style, scale, fill);
}

function paintText(
  pen: CanvasRenderingContext2D,
  box: PictureBox,
  theme: Theme,
  style: Style,
  scale: number,
  fill: Fill | null,
): void {
  const ink = fill?.ink ?? null;
  const details = scale >= DETAILS && box.height > 30;
  const module = box.kind !== "node";
  // Without the details there is room for a larger title, which stays readable from farther away.
  const size = details ? TITLE_SIZE : Math.min(Math.max(10 / scale, TITLE_SIZE), box.height * 0.6);
  const left = box.x + (module ? 20 : 10);
  const room = box.width - (module ? 26 : 16);
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.font = `${module ? "600 " : ""}${size}px ${theme.font || "sans-serif"}`;
  pen.fillStyle = ink ?? theme.text;
  const y = details ? box.y + box.height * 0.34 : box.y + box.height / 2;
  // Hinting makes small text wider than its measure: the limit keeps it inside.
  pen.fillText(fitText(box.title, size, room, style.measure, module), left, y, room);
  if (module) sign(pen, box.x + 11, y, "+", theme, ink);
  if (!details) return;
  pen.font = `${DETAIL_SIZE}px ${theme.font || "sans-serif"}`;
  pen.fillStyle = ink ?? theme.muted;
  const detail = fitText(fill?.text ?? box.detail, DETAIL_SIZE, box.width - 16, style.measure);
  pen.fillText(detail, box.x + 10, box.y + box.height * 0.71, box.width - 16);
}

/** Far away boxes are plain rectangles, drawn colour by colour. */
function paintSmall(
  pen: CanvasRenderingContext2D,
  boxes: readonly PictureBox[],
  theme: Theme,
  style: Style,
  scale: number,
): void {
  const byColor = new Map<string, PictureBox[]>();
  for (const box of boxes) {
    const category = style.categories.of(box.model, box.item);
    const color =
      style.fill(box)?.color ?? (category && CATEGORIES[category].swatch?.color) ?? theme.muted;
    const known = byColor.get(color);
    if (known) known.push(box);
    else byColor.set(color, [box]);
  }
  const least = 1 / scale;
  for (const [color, group] of byColor) {
    pen.fillStyle = color;
    pen.globalAlpha = 0.8;
    for (const box of group)
      pen.fillRect(box.x, box.y, Math.max(box.width, least), Math.max(box.height, least));
  }
  pen.globalAlpha = 1;
}

function paintMarks(
  pen: CanvasRenderingContext2D,
  box: PictureBox,
  theme: Theme,
  style: Style,
  scale: number,
): void {
  const line = (color: string, width: number, gap: number, dash: readonly number[] = []) => {
    pen.strokeStyle = color;
    pen.lineWidth = width / scale;
    pen.setLineDash(dash.map((part) => part / scale));
    const round = style.categories.of(box.model, box.item) === "boundary" ? box.height / 2 : 6;
    rounded(pen, inset(box, -gap / scale), round);
    pen.stroke();
    pen.setLineDash([]);
  };
  const selected = style.selected(box);
  if (selected === 2 && !box.open) {
    pen.fillStyle = theme.accent;
    pen.globalAlpha = 0.16;
    rounded(pen, box, 6);
    pen.fill();
    pen.globalAlpha = 1;
    line(theme.accent, 2.5, 1);
  } else if (selected === 2) {
    // Frames within a selected frame need no border of their own.
    if (!box.parent || style.selected(box.parent) < 2) line(theme.accent, 2.5, 1);
  } else if (selected === 1) {
    if (box.open) dot(pen, box, theme);
    else line(theme.accent, 2, 1, [6, 3]);
  }
  if (style.hits.has(box.item)) line(theme.warn, style.hit === box.item ? 3 : 1.5, 3.5);
  if (style.hover === box) line(theme.text, 1.5, 1.5);
  else if (style.highlight?.producers.has(box.item)) line(IN, 2, 1.5);
  else if (style.highlight?.consumers.has(box.item)) line(OUT, 2, 1.5, [5, 3]);
  if (style.cursor === box.item) line(theme.text, 1.5, 4.5, [1.5, 2.5]);
}

/** In the title of an open frame: something inside is selected. */
function dot(pen: CanvasRenderingContext2D, box: PictureBox, theme: Theme): void {
  pen.beginPath();
  pen.arc(box.x + box.width - 10, box.y + HEADER / 2, 4, 0, 2 * Math.PI);
  pen.fillStyle = theme.accent;
  pen.fill();
}

function stack(pen: CanvasRenderingContext2D, box: PictureBox, theme: Theme, round: number): void {
  pen.fillStyle = theme.raised;
  pen.strokeStyle = theme.muted;
  pen.lineWidth = 1;
  for (const shift of [6, 3]) {
    rounded(
      pen,
      { x: box.x + shift, y: box.y + shift, width: box.width, height: box.height },
      round,
    );
    pen.fill();
    pen.stroke();
  }
}

function strip(
  pen: CanvasRenderingContext2D,
  box: PictureBox,
  category: keyof typeof CATEGORIES,
  theme: Theme,
  scale: number,
  round: number,
): void {
  const look = CATEGORIES[category].swatch;
  if (!look) return;
  pen.beginPath();
  pen.roundRect(box.x, box.y, 5, box.height, [round, 0, 0, round]);
  pen.fillStyle = look.color;
  pen.fill();
  if (scale < DETAILS || look.hatch === "none") return;
  const pattern = patternOf(pen, look.hatch, theme.background);
  if (!pattern) return;
  pen.fillStyle = pattern;
  pen.fill();
}

function sign(
  pen: CanvasRenderingContext2D,
  x: number,
  y: number,
  text: "+" | "−",
  theme: Theme,
  ink: string | null = null,
): void {
  pen.strokeStyle = ink ?? theme.muted;
  pen.lineWidth = 1.2;
  pen.beginPath();
  pen.roundRect(x - 4.5, y - 4.5, 9, 9, 2);
  pen.moveTo(x - 2.5, y);
  pen.lineTo(x + 2.5, y);
  if (text === "+") {
    pen.moveTo(x, y - 2.5);
    pen.lineTo(x, y + 2.5);
  }
  pen.stroke();
}

const patterns = new WeakMap<CanvasRenderingContext2D, Map<string, CanvasPattern | null>>();
function patternOf(
  pen: CanvasRenderingContext2D,
  hatch: Hatch,
  color: string,
): CanvasPattern | null {
  let known = patterns.get(pen);
  if (!known) patterns.set(pen, (known = new Map()));
  const key = `${hatch} ${color}`;
  let pattern = known.get(key);
  if (pattern === undefined) known.set(key, (pattern = hatchPattern(pen, hatch, color)));
  return pattern;
}

function rounded(pen: CanvasRenderingContext2D, box: Box, radius: number): void {
  pen.beginPath();
  pen.roundRect(
    box.x,
    box.y,
    box.width,
    box.height,
    Math.min(radius, box.height / 2, box.width / 2),
  );
}

function inset(box: Box, by: number): Box {
  return { x: box.x + by, y: box.y + by, width: box.width - 2 * by, height: box.height - 2 * by };
}
