// Draws the partition on the graph: outlines below the boxes; names, badges, marks and answers above them.
import type { GraphLayer, GraphScene, SceneBox } from "../graph/scene.ts";
import { shorten } from "../common/format.ts";
import { hatchPattern, swatch, type Swatch } from "../common/palette.ts";
import type { Theme } from "../common/theme.ts";
import type { Box, Transform } from "../common/viewport.ts";
import { crossingOf, drawCrossing, type Crossing } from "./border.ts";
import { Covers, type Cover } from "./boxes.ts";
import { NONE, type PartitionEditor } from "./editor.ts";
import { meets, roundLoop, type Hull } from "./hulls.ts";

const RADIUS = 9;
/** Below this scale a badge is a dot. */
const BADGES = 0.35;
const LABELS = 0.28;
/** Of more partitions at once what crosses could not be told apart. */
const MOST_BORDERS = 4;
/** So many boxes are outlined in each frame of a motion. */
const MOST_MOVING = 800;

export class PartitionLayers {
  readonly under: GraphLayer;
  readonly over: GraphLayer;
  /** Rows under the stroke of a tool. */
  stroke: ReadonlySet<number> = new Set();
  /** The transform of the last drawing: from the world to the canvas. */
  transform: Readonly<Transform> = { scale: 1, x: 0, y: 0 };
  private readonly editor: PartitionEditor;
  private borders: { key: string; state: unknown; document: unknown; found: Crossing } | null = null;
  private known: { scene: GraphScene; state: unknown; covers: Covers } | null = null;
  private outlines: { place: number; hulls: readonly Hull[] } | null = null;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private readonly redraw: () => void;

  constructor(editor: PartitionEditor, redraw: () => void) {
    this.editor = editor;
    this.redraw = redraw;
    this.under = { under: true, draw: (pen, scene, transform, theme) => this.below(pen, scene, transform, theme) };
    this.over = { under: false, draw: (pen, scene, transform, theme) => this.above(pen, scene, transform, theme) };
  }

  /** The visible boxes with their tags. */
  covers(scene: GraphScene): Covers {
    if (this.known?.scene !== scene || this.known.state !== this.editor.state) {
      this.known = { scene, state: this.editor.state, covers: new Covers(scene, this.editor) };
      this.outlines = null;
    }
    return this.known.covers;
  }

  /** Outlines around boxes. Those of very many boxes wait until the boxes rest. */
  private hulls(scene: GraphScene): readonly Hull[] {
    const covers = this.covers(scene);
    const place = placeOf(scene);
    const known = this.outlines;
    if (known && known.place === place) return known.hulls;
    if (known && covers.all.length > MOST_MOVING) {
      clearTimeout(this.rest);
      this.rest = setTimeout(() => {
        this.outlines = null;
        this.redraw();
      }, 120);
      return [];
    }
    const hulls = covers.hulls();
    this.outlines = { place, hulls };
    return hulls;
  }

  destroy(): void {
    clearTimeout(this.rest);
  }

  private look(tag: number): Swatch {
    return swatch(this.editor.state?.tags[tag]?.color ?? 0);
  }

  private below(pen: CanvasRenderingContext2D, scene: GraphScene, transform: Readonly<Transform>, theme: Theme): void {
    this.transform = { ...transform };
    if (!this.editor.state) return;
    const sight = sightOf(pen, transform);
    for (const hull of this.hulls(scene)) {
      if (meets(grow(hull.bounds, 4), sight)) this.hull(pen, hull, transform.scale, theme);
    }
  }

  private hull(pen: CanvasRenderingContext2D, hull: Hull, scale: number, theme: Theme): void {
    const look = this.look(hull.tag);
    pen.beginPath();
    for (const loop of hull.loops) roundLoop(pen, loop, RADIUS);
    pen.globalAlpha = theme.dark ? 0.3 : 0.2;
    pen.fillStyle = look.color;
    pen.fill("evenodd");
    pen.globalAlpha = theme.dark ? 0.7 : 0.55;
    const pattern = scale > 0.2 ? patternOf(pen, look) : null;
    if (pattern) {
      pen.fillStyle = pattern;
      pen.fill("evenodd");
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = look.color;
    pen.lineWidth = Math.max(1.5, 1.5 / scale);
    pen.stroke();
  }

  private above(pen: CanvasRenderingContext2D, scene: GraphScene, transform: Readonly<Transform>, theme: Theme): void {
    const { state } = this.editor;
    if (!state) return;
    const covers = this.covers(scene);
    const sight = sightOf(pen, transform);
    const { scale } = transform;
    if (scale >= LABELS) {
      const named = new Set<number>();
      for (const hull of this.hulls(scene)) {
        const whole = !named.has(hull.tag);
        named.add(hull.tag);
        if (meets(grow(hull.bounds, 20), sight)) this.label(pen, hull, whole, scale, theme);
      }
    }
    for (const cover of covers.all) {
      if (!meets(grow(cover.box, 8), sight)) continue;
      if (cover.counts.size > 1) this.shares(pen, cover, scale);
      else if (cover.tag !== NONE && scale < BADGES) this.tint(pen, cover);
      if (cover.left) badge(pen, cover, scale, theme);
      if (scale >= BADGES && cover.rows.some((row) => state.pending[row])) pendingDot(pen, cover.box, theme);
    }
    const crossing = this.crossing(scene);
    if (crossing && scale >= LABELS) drawCrossing(pen, scene, crossing, scale, theme);
    this.marks(pen, covers, scale, theme);
    this.answer(pen, scene, scale, theme);
  }

  /** What crosses the borders of the marked partitions; null where none is marked. */
  private crossing(scene: GraphScene): Crossing | null {
    const { editor } = this;
    const tags = editor.markedTags();
    if (!tags.length || tags.length > MOST_BORDERS) return null;
    const key = tags.join("\n");
    if (this.borders?.key !== key || this.borders.state !== editor.state || this.borders.document !== scene.document) {
      const found = crossingOf(scene.document, editor, new Set(tags));
      this.borders = { key, state: editor.state, document: scene.document, found };
    }
    return this.borders.found;
  }

  /** Name, backend and number of operators, at the upper left corner; the further parts of a tag only the name. */
  private label(pen: CanvasRenderingContext2D, hull: Hull, whole: boolean, scale: number, theme: Theme): void {
    const tag = this.editor.state?.tags[hull.tag];
    if (!tag) return;
    const size = Math.min(Math.max(10, 9.5 / scale), 22);
    const corner = topLeft(hull);
    const room = Math.max(hull.bounds.x + hull.bounds.width - corner.x, 15 * size);
    const count = `${tag.nodes} node${tag.nodes === 1 ? "" : "s"}`;
    const backend = tag.name.startsWith(tag.backend) ? "" : ` · ${tag.backend}`;
    pen.font = `600 ${size}px ${theme.font || "sans-serif"}`;
    const fits = (text: string) => pen.measureText(text).width <= room - 8;
    let text = whole ? `${tag.name}${backend} · ${count}` : tag.name;
    if (!fits(text) && whole) text = `${tag.name} · ${tag.nodes}`;
    for (let length = tag.name.length - 1; length > 4 && !fits(text); length--) {
      text = shorten(tag.name, length) + (whole ? ` · ${tag.nodes}` : "");
    }
    const width = pen.measureText(text).width + 10;
    const height = size * 1.35;
    const look = this.look(hull.tag);
    const [x, y] = [corner.x + 3, corner.y - height + 4];
    pen.beginPath();
    pen.roundRect(x, y, width, height, 3);
    pen.fillStyle = theme.background;
    pen.fill();
    pen.lineWidth = 1;
    pen.strokeStyle = look.color;
    pen.stroke();
    pen.fillStyle = look.color;
    pen.fillRect(x, y, 4, height);
    pen.fillStyle = theme.text;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(text, x + 7, y + height / 2 + 0.5);
  }

  /** On a closed module with several tags: a bar with the share of each. */
  private shares(pen: CanvasRenderingContext2D, { box, counts, rows }: Cover, scale: number): void {
    let x = box.x + 4;
    const whole = box.width - 8;
    const height = Math.min(Math.max(4, 3 / scale), box.height / 2);
    const y = box.y + box.height - height - 3;
    for (const [tag, count] of [...counts].sort((a, b) => a[0] - b[0])) {
      const width = (whole * count) / rows.length;
      if (tag !== NONE) {
        const look = this.look(tag);
        pen.fillStyle = look.color;
        pen.fillRect(x, y, width, height);
      }
      x += width;
    }
    pen.strokeStyle = "#808080";
    pen.lineWidth = 0.5;
    pen.strokeRect(box.x + 4, y, whole, height);
  }

  /** Far away an outline alone can't be told from the others. */
  private tint(pen: CanvasRenderingContext2D, { box, tag }: Cover): void {
    pen.globalAlpha = 0.6;
    pen.fillStyle = this.look(tag).color;
    pen.fillRect(box.x, box.y, box.width, box.height);
    pen.globalAlpha = 1;
  }

  private marks(pen: CanvasRenderingContext2D, covers: Covers, scale: number, theme: Theme): void {
    if (!this.stroke.size) return;
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 3 / scale;
    for (const { box, rows } of covers.all) {
      if (!rows.some((row) => this.stroke.has(row))) continue;
      pen.beginPath();
      pen.roundRect(box.x - 3, box.y - 3, box.width + 6, box.height + 6, 6);
      pen.stroke();
    }
  }

  /** What an edit would change, or what stands in its way. */
  private answer(pen: CanvasRenderingContext2D, scene: GraphScene, scale: number, theme: Theme): void {
    const { shown } = this.editor;
    if (!shown || shown.kind === "made") return;
    const { answer } = shown;
    if (answer.legal) {
      outline(pen, scene, answer.changed, theme.good, [], scale, 3);
      return;
    }
    outline(pen, scene, answer.nodes, theme.error, [6, 4], scale, 3);
    path(pen, scene, answer.path, theme, scale);
  }
}

const patterns = new WeakMap<CanvasRenderingContext2D, Map<string, CanvasPattern | null>>();
function patternOf(pen: CanvasRenderingContext2D, { hatch, color }: Swatch): CanvasPattern | null {
  let known = patterns.get(pen);
  if (!known) patterns.set(pen, (known = new Map()));
  const key = `${hatch} ${color}`;
  let pattern = known.get(key);
  if (pattern === undefined) known.set(key, (pattern = hatchPattern(pen, hatch, color)));
  return pattern;
}

/** A number that changes when boxes move. */
function placeOf(scene: GraphScene): number {
  let sum = 0;
  for (const box of scene.boxes) sum = (sum * 31 + box.x * 7 + box.y * 13 + box.width + box.height) % 1e12;
  return sum;
}

function sightOf(pen: CanvasRenderingContext2D, { scale, x, y }: Readonly<Transform>): Box {
  const ratio = globalThis.devicePixelRatio || 1;
  const { width, height } = pen.canvas;
  return { x: -x / scale, y: -y / scale, width: width / ratio / scale, height: height / ratio / scale };
}

function grow(box: Box, by: number): Box {
  return { x: box.x - by, y: box.y - by, width: box.width + 2 * by, height: box.height + 2 * by };
}

function topLeft(hull: Hull): { x: number; y: number } {
  let best = { x: hull.bounds.x, y: hull.bounds.y };
  let found = false;
  for (const loop of hull.loops) {
    for (const point of loop) {
      if (point.y !== hull.bounds.y || (found && point.x >= best.x)) continue;
      best = point;
      found = true;
    }
  }
  return best;
}

/** A triangle with an exclamation mark, and how many nodes it speaks for. */
function badge(pen: CanvasRenderingContext2D, cover: Cover, scale: number, theme: Theme): void {
  const { box, left } = cover;
  const size = scale < BADGES ? Math.min(5 / scale, 18) : 13;
  const [x, y] = [box.x + box.width - size * 0.45, box.y - size * 0.3];
  pen.beginPath();
  pen.moveTo(x, y - size * 0.55);
  pen.lineTo(x + size * 0.6, y + size * 0.45);
  pen.lineTo(x - size * 0.6, y + size * 0.45);
  pen.closePath();
  pen.fillStyle = theme.background;
  pen.fill();
  pen.lineWidth = scale < BADGES ? 1 / scale : 1.4;
  pen.lineJoin = "round";
  pen.strokeStyle = theme.warn;
  pen.stroke();
  if (scale < BADGES) return;
  pen.strokeStyle = theme.text;
  pen.lineWidth = 1.4;
  pen.beginPath();
  pen.moveTo(x, y - 2.2);
  pen.lineTo(x, y + 1.2);
  pen.moveTo(x, y + 3.2);
  pen.lineTo(x, y + 4.2);
  pen.stroke();
  if (left > 1) {
    pen.font = `600 9px ${theme.font || "sans-serif"}`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const text = String(left);
    const width = pen.measureText(text).width + 4;
    pen.fillStyle = theme.background;
    pen.fillRect(x - 10 - width + 2, y - 5, width, 10);
    pen.fillStyle = theme.text;
    pen.fillText(text, x - 10, y + 0.5);
  }
}

/** Its tag is another one than what is lowered. */
function pendingDot(pen: CanvasRenderingContext2D, box: SceneBox, theme: Theme): void {
  pen.beginPath();
  pen.arc(box.x + 1, box.y + 1, 4, 0, 2 * Math.PI);
  pen.fillStyle = theme.accent;
  pen.fill();
  pen.lineWidth = 1.5;
  pen.strokeStyle = theme.background;
  pen.stroke();
}

function outline(
  pen: CanvasRenderingContext2D, scene: GraphScene, rows: Iterable<number>, color: string, dash: readonly number[],
  scale: number, width: number,
): void {
  const boxes = new Set<SceneBox>();
  for (const row of rows) boxes.add(scene.boxOf(row));
  pen.strokeStyle = color;
  pen.lineWidth = width / scale;
  pen.setLineDash(dash.map((part) => part / scale));
  for (const box of boxes) {
    pen.beginPath();
    pen.roundRect(box.x - 4, box.y - 4, box.width + 8, box.height + 8, 7);
    pen.stroke();
  }
  pen.setLineDash([]);
}

/** Data's way out of a tag and back into it. */
function path(pen: CanvasRenderingContext2D, scene: GraphScene, rows: readonly number[], theme: Theme, scale: number): void {
  const boxes: SceneBox[] = [];
  for (const row of rows) {
    const box = scene.boxOf(row);
    if (boxes[boxes.length - 1] !== box) boxes.push(box);
  }
  if (boxes.length < 2) return;
  pen.strokeStyle = pen.fillStyle = theme.error;
  pen.lineWidth = 3 / scale;
  pen.setLineDash([8 / scale, 5 / scale]);
  for (let at = 0; at + 1 < boxes.length; at++) {
    const [from, to] = [middle(boxes[at]!), middle(boxes[at + 1]!)];
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
    arrow(pen, from, edgeOf(boxes[at + 1]!, from, to), 11 / scale);
  }
  pen.setLineDash([]);
}

function middle(box: Box): { x: number; y: number } {
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** Where the line between two points enters a box around the second. */
function edgeOf(box: Box, from: { x: number; y: number }, to: { x: number; y: number }): { x: number; y: number } {
  const [dx, dy] = [from.x - to.x, from.y - to.y];
  const share = Math.min(
    dx ? (box.width / 2 + 5) / Math.abs(dx) : Infinity,
    dy ? (box.height / 2 + 5) / Math.abs(dy) : Infinity,
    1,
  );
  return { x: to.x + dx * share, y: to.y + dy * share };
}

function arrow(pen: CanvasRenderingContext2D, from: { x: number; y: number }, tip: { x: number; y: number }, size: number): void {
  const angle = Math.atan2(tip.y - from.y, tip.x - from.x);
  pen.beginPath();
  pen.moveTo(tip.x, tip.y);
  for (const side of [0.42, -0.42]) {
    pen.lineTo(tip.x - size * Math.cos(angle + side), tip.y - size * Math.sin(angle + side));
  }
  pen.closePath();
  pen.fill();
}
