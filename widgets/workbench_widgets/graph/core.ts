// The graph on its canvas: what is open, where it is, what the pointer does; without any controls
// around it.
import { on } from "../common/dom.ts";
import { Viewport, type Box, type Transform } from "../common/viewport.ts";
import { Arranger, type Anchor, type Engine } from "./arrange.ts";
import { Bundles } from "./edges.ts";
import { Categories } from "./category.ts";
import { Adjacency, highlightOf, type Highlight } from "./highlight.ts";
import { Labels, makeMeasure, type Measure } from "./labels.ts";
import { GraphModel } from "./model.ts";
import { glide, identities, remember, type Motion, type Places } from "./motion.ts";
import { paintPicture, type Fill, type Style } from "./paint.ts";
import { Picture, type PictureBox } from "./picture.ts";
import { Still } from "./still.ts";
import type { GraphDocument, GraphLayer, GraphTool } from "./scene.ts";
import { OpenState } from "./state.ts";

export interface CoreEvents {
  /** A new picture was laid out. */
  arranged(picture: Picture): void;
  hovered(box: PictureBox | null, event: PointerEvent | null): void;
  picked(box: PictureBox | null, extend: boolean): void;
  /** After each drawing. */
  painted?(transform: Readonly<Transform>): void;
}

const CLICK = 4;

export class GraphCore {
  readonly viewport: Viewport;
  readonly state = new OpenState();
  readonly measure: Measure;
  model: GraphModel | null = null;
  picture: Picture | null = null;
  adjacency: Adjacency | null = null;
  constants = false;
  cursor = -1;
  hits: ReadonlySet<number> = new Set();
  hit = -1;
  fill: ((box: PictureBox) => Fill | null) | null = null;
  selected: (box: PictureBox) => 0 | 1 | 2 = () => 0;
  private readonly arranger: Arranger;
  private readonly events: CoreEvents;
  readonly categories = new Categories();
  private readonly layers = new Set<GraphLayer>();
  private readonly ends: (() => void)[] = [];
  private readonly still = new Still(() => this.viewport.redraw());
  private tool: GraphTool | null = null;
  private using = false;
  private hover: PictureBox | null = null;
  private highlight: Highlight | null = null;
  private bundles: Bundles | null = null;
  private labels: Labels | null = null;
  private motion: Motion | null = null;
  private edges = 1;

  constructor(parent: HTMLElement, engine: Engine, events: CoreEvents) {
    this.arranger = new Arranger(engine);
    this.events = events;
    this.viewport = new Viewport(parent, {
      label:
        "Graph. Arrow keys walk along edges, Enter opens and closes, Backspace goes to what holds it.",
      draw: (pen, transform, _, size) => this.draw(pen, transform, size),
      extent: () => this.picture?.extent ?? { x: 0, y: 0, width: 1, height: 1 },
      home: () => this.overview(),
      pans: (event) => !this.begins(event),
      maxScale: 3,
    });
    Object.assign(this.viewport.canvas, { wbGraph: this });
    this.measure = makeMeasure(this.viewport.theme.font);
    this.listen();
  }

  destroy(): void {
    this.motion?.finish();
    this.still.destroy();
    for (const end of this.ends) end();
    this.viewport.destroy();
  }

  // ---- what is shown
  // ---------------------------------------------------------------------------------------

  /** Shows a graph. With `keep`, things that were there before keep their places and stay open. */
  show(document: GraphDocument, keep: boolean): void {
    const before = keep && this.picture ? remember(this.picture) : null;
    this.model = new GraphModel(document, { constants: this.constants });
    this.bundles = new Bundles(this.model);
    this.labels = new Labels(this.model, this.measure);
    this.adjacency = new Adjacency(this.model);
    this.cursor = -1;
    this.hits = new Set();
    if (!before) this.state.openFirst(this.model);
    this.arrange(before, before);
    if (!before) this.overview();
  }

  /** Lays out again after modules were opened or closed; `fixed` keeps its place on the screen. */
  update(fixed: number | null = null, glides = true): void {
    if (!this.picture) return;
    const before = glides ? remember(this.picture) : null;
    const held = fixed === null ? null : this.picture.box(fixed);
    const at = held && { x: held.x, y: held.y };
    this.arrange(before, null, fixed, at);
  }

  private arrange(
    before: Places | null,
    anchors: Places | null,
    fixed: number | null = null,
    at: { x: number; y: number } | null = null,
  ): void {
    const { model, bundles, labels } = this;
    if (!model || !bundles || !labels) return;
    this.motion?.finish();
    this.motion = null;
    this.hover = this.highlight = null;
    const placed = this.arranger.arrange(
      model,
      bundles,
      this.state,
      labels,
      this.measure,
      anchors && anchorsOf(model, anchors),
    );
    this.picture = new Picture(model, this.state, labels, placed);
    const box = fixed === null ? null : this.picture.box(fixed);
    if (box && at) {
      const { scale } = this.viewport.transform;
      this.viewport.pan((at.x - box.x) * scale, (at.y - box.y) * scale);
      if (before) before = moved(before, box.x - at.x, box.y - at.y);
    }
    this.edges = 1;
    this.still.forget();
    if (before) {
      this.motion = glide(this.picture, before, (progress) => {
        this.edges = progress < 1 ? 0.15 : 1;
        this.viewport.redraw();
      });
    }
    this.events.arranged(this.picture);
    this.viewport.redraw();
  }

  /** All of it, as long as titles can be read; else its beginning at a scale at which they can. */
  overview(): void {
    const { picture, viewport } = this;
    if (!picture) return;
    viewport.fit();
    if (viewport.transform.scale >= 0.42) return;
    const sight = viewport.visible();
    const pixels = {
      width: sight.width * viewport.transform.scale,
      height: sight.height * viewport.transform.scale,
    };
    const scale = Math.min(0.75, Math.max(0.5, (pixels.width - 32) / picture.extent.width));
    const width = pixels.width / scale - 32;
    const first = picture.boxes[0];
    const middle = first ? first.x + first.width / 2 : picture.extent.width / 2;
    const wide = Math.min(width, Math.max(picture.extent.width, 1));
    const left = Math.max(0, Math.min(middle - wide / 2, picture.extent.width - wide));
    viewport.fit({ x: left, y: 0, width: wide, height: pixels.height / scale - 32 }, 16, 0.75);
  }

  toggle(item: number): void {
    const { model } = this;
    if (!model || item < model.nodes) return;
    this.state.toggle(model, item);
    this.update(item);
  }

  openAll(): void {
    if (!this.model) return;
    this.state.openAll(this.model);
    this.update(null, false);
    this.viewport.fit();
  }

  closeAll(): void {
    this.state.closeAll();
    this.update(null, false);
    this.overview();
  }

  /** Opens what holds these nodes and brings them into sight. */
  reveal(nodes: readonly number[]): void {
    const { model } = this;
    if (!model || !nodes.length) return;
    const shown = nodes.slice(0, 64);
    if (this.state.reveal(model, shown)) this.update();
    this.motion?.finish();
    this.center(shown.map((node) => this.picture!.boxOf(node)));
  }

  /** Opens what holds a module, and brings it into sight. */
  revealItem(item: number): void {
    const { model } = this;
    if (!model) return;
    const closed = model.ancestors(item).filter((above) => !this.state.isOpen(model, above));
    for (const above of closed) this.state.set(model, above, true);
    if (closed.length) this.update();
    this.motion?.finish();
    const box = this.picture?.box(item);
    if (box) this.center([box]);
  }

  /** Brings boxes into sight, at a scale at which they can be read. */
  center(boxes: readonly Box[]): void {
    const first = boxes[0];
    if (!first) return;
    let [left, top] = [first.x, first.y];
    let [right, bottom] = [first.x + first.width, first.y + first.height];
    for (const box of boxes) {
      left = Math.min(left, box.x);
      top = Math.min(top, box.y);
      right = Math.max(right, box.x + box.width);
      bottom = Math.max(bottom, box.y + box.height);
    }
    const around = { x: left, y: top, width: right - left, height: bottom - top };
    const { viewport } = this;
    const sight = viewport.visible();
    if (around.width > sight.width || around.height > sight.height)
      viewport.fit(around, 40, viewport.transform.scale);
    if (viewport.transform.scale < 0.5 && boxes.length === 1)
      viewport.zoom(0.8 / viewport.transform.scale);
    viewport.reveal(
      boxes.length === 1 || around.width < viewport.visible().width ? around : first,
      48,
    );
  }

  // ---- layers and tools
  // ------------------------------------------------------------------------------------

  addLayer(layer: GraphLayer): () => void {
    this.layers.add(layer);
    this.redraw();
    return () => {
      this.layers.delete(layer);
      this.redraw();
    };
  }

  setTool(tool: GraphTool | null): void {
    this.tool = tool;
    this.using = false;
    this.viewport.canvas.style.cursor = tool?.cursor ?? "";
    this.redraw();
  }

  /** Draws again, what was kept of the last drawing included. */
  redraw(): void {
    this.still.forget();
    this.viewport.redraw();
  }

  setHover(box: PictureBox | null, event: PointerEvent | null): void {
    if (this.hover !== box) {
      this.hover = box;
      this.highlight =
        box && this.picture && this.adjacency && !box.open && box.members().length < 5000
          ? highlightOf(this.picture, this.adjacency, box.item)
          : null;
      this.redraw();
    }
    this.events.hovered(box, event);
  }

  private begins(event: PointerEvent): boolean {
    if (!this.tool || !this.picture || event.button !== 0) return false;
    this.using = this.tool.down(this.viewport.world(event), event, this.picture);
    return this.using;
  }

  private listen(): void {
    const { canvas } = this.viewport;
    let down: { x: number; y: number } | null = null;
    const add = <K extends keyof HTMLElementEventMap>(
      name: K,
      action: (event: HTMLElementEventMap[K]) => void,
    ) => this.ends.push(on(canvas, name, action));
    add("pointerdown", (event) => {
      down = { x: event.clientX, y: event.clientY };
      canvas.focus({ preventScroll: true });
      if (this.using) canvas.setPointerCapture(event.pointerId);
    });
    add("pointermove", (event) => {
      if (this.using && this.picture) {
        this.tool?.move?.(this.viewport.world(event), event, this.picture);
        this.redraw();
        return;
      }
      if (down && Math.hypot(event.clientX - down.x, event.clientY - down.y) > CLICK) return;
      const { x, y } = this.viewport.world(event);
      this.setHover(this.picture?.boxAt(x, y) ?? null, event);
    });
    add("pointerup", (event) => {
      const still = down && Math.hypot(event.clientX - down.x, event.clientY - down.y) <= CLICK;
      down = null;
      if (this.using) {
        this.using = false;
        if (this.picture) this.tool?.up?.(this.viewport.world(event), event, this.picture);
        this.redraw();
      } else if (still && event.button === 0) {
        const { x, y } = this.viewport.world(event);
        const box = this.picture?.boxAt(x, y) ?? null;
        this.cursor = box?.item ?? -1;
        this.events.picked(box, event.shiftKey || event.ctrlKey || event.metaKey);
        this.redraw();
      }
    });
    add("pointerleave", () => this.setHover(null, null));
    add("dblclick", (event) => {
      const { x, y } = this.viewport.world(event);
      const box = this.picture?.boxAt(x, y);
      if (box && this.model?.isContainer(box.item)) this.toggle(box.item);
    });
  }

  // ---- drawing
  // ---------------------------------------------------------------------------------------------

  private draw(
    pen: CanvasRenderingContext2D,
    transform: Transform,
    size: { width: number; height: number },
  ): void {
    const { picture } = this;
    if (!picture) return;
    const { theme } = this.viewport;
    this.still.draw(pen, transform, size, (ink) => {
      const beneath = (pen: CanvasRenderingContext2D) =>
        this.drawLayers(pen, picture, transform, true);
      const count = paintPicture(ink, picture, transform, this.viewport.visible(), theme, {
        ...this.style(),
        beneath,
      });
      ink.save();
      ink.translate(transform.x, transform.y);
      ink.scale(transform.scale, transform.scale);
      this.drawLayers(ink, picture, transform, false);
      ink.restore();
      return count;
    });
    this.events.painted?.(transform);
  }

  private drawLayers(
    pen: CanvasRenderingContext2D,
    picture: Picture,
    transform: Transform,
    under: boolean,
  ): void {
    const drawers = [...this.layers]
      .filter((layer) => layer.under === under)
      .map((layer) => layer.draw.bind(layer));
    if (!under && this.tool?.draw) drawers.push(this.tool.draw.bind(this.tool));
    for (const draw of drawers) {
      pen.save();
      draw(pen, picture, transform, this.viewport.theme);
      pen.restore();
    }
  }

  private style(): Omit<Style, "beneath"> {
    return {
      fill: (box) => this.fill?.(box) ?? null,
      selected: this.selected,
      hits: this.hits,
      hit: this.hit,
      cursor: this.cursor,
      hover: this.hover,
      highlight: this.highlight,
      categories: this.categories,
      measure: this.measure,
      edges: this.edges,
    };
  }
}

/** Places before as anchors: within the same container, or the same module inside another. */
function anchorsOf(model: GraphModel, places: Places): Anchor {
  const identity = identities(model);
  return (container, part) => {
    const holder = container === model.root ? "" : identity(container);
    return places.within.get(`${holder}>${identity(part)}`) ?? null;
  };
}

function moved(places: Places, dx: number, dy: number): Places {
  const world = new Map(
    [...places.world].map(([key, box]) => [key, { ...box, x: box.x + dx, y: box.y + dy }]),
  );
  return { ...places, world };
}
