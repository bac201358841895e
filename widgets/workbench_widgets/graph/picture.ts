// The scene: visible boxes and edges in world coordinates, made from an arrangement.
import type { Box } from "../common/viewport.ts";
import type { PlacedContainer } from "./arrange.ts";
import { OUTSIDE, type Bundle } from "./edges.ts";
import { Grid, contains } from "./grid.ts";
import { HEADER, type Labels } from "./labels.ts";
import type { GraphModel } from "./model.ts";
import type { GraphDocument, GraphScene, SceneBox } from "./scene.ts";
import type { OpenState } from "./state.ts";

export class PictureBox implements SceneBox {
  x: number;
  y: number;
  width: number;
  height: number;
  readonly item: number;
  readonly open: boolean;
  readonly depth: number;
  readonly parent: PictureBox | null;
  readonly title: string;
  readonly detail: string;
  readonly model: GraphModel;

  constructor(
    model: GraphModel,
    labels: Labels,
    item: number,
    open: boolean,
    parent: PictureBox | null,
    box: Box,
  ) {
    this.model = model;
    this.item = item;
    this.open = open;
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
    const label = labels.of(item);
    this.title = label.title;
    this.detail = label.detail;
    this.x = box.x;
    this.y = box.y;
    this.width = box.width;
    this.height = box.height;
  }

  get kind(): "node" | "module" | "fold" {
    return this.model.kind(this.item);
  }

  get index(): number {
    return this.model.index(this.item);
  }

  members(): Int32Array {
    return this.model.members(this.item);
  }
}

/** What is drawn of one container: its edges, in coordinates that begin at its content's corner. */
export interface Wiring {
  readonly owner: PictureBox | null;
  /** That of the container around. */
  readonly around: Wiring | null;
  readonly placed: PlacedContainer;
  /** Corner of the content, relative to the owner's corner. */
  readonly dx: number;
  readonly dy: number;
}

export class Picture implements GraphScene {
  readonly model: GraphModel;
  readonly boxes: readonly PictureBox[];
  readonly wirings: readonly Wiring[];
  readonly extent: Box;
  private readonly byItem = new Map<number, PictureBox>();
  private readonly state: OpenState;
  private cells: Grid<PictureBox> | null = null;

  constructor(model: GraphModel, state: OpenState, labels: Labels, placed: PlacedContainer) {
    this.model = model;
    this.state = state;
    const boxes: PictureBox[] = [];
    const wirings: Wiring[] = [];
    const fill = (container: PlacedContainer, owner: PictureBox | null, around: Wiring | null) => {
      const dx = owner ? (container.width - container.layout.width) / 2 : 0;
      const dy = owner ? HEADER : 0;
      const wiring = { owner, around, placed: container, dx, dy };
      wirings.push(wiring);
      const { x, y } = container.layout;
      container.parts.forEach((part, at) => {
        const inner = container.open.get(part);
        const size = inner ?? labels.of(part);
        const box = new PictureBox(model, labels, part, inner !== undefined, owner, {
          x: (owner?.x ?? 0) + dx + x[at]!,
          y: (owner?.y ?? 0) + dy + y[at]!,
          width: size.width,
          height: size.height,
        });
        boxes.push(box);
        this.byItem.set(part, box);
        if (inner) fill(inner, box, wiring);
      });
    };
    fill(placed, null, null);
    this.boxes = boxes;
    this.wirings = wirings;
    this.extent = {
      x: 0,
      y: 0,
      width: Math.max(placed.width, 1),
      height: Math.max(placed.height, 1),
    };
  }

  get document(): GraphDocument {
    return this.model.document;
  }

  /** The box that shows an item, if it is visible. */
  box(item: number): PictureBox | null {
    return this.byItem.get(item) ?? null;
  }

  boxOf(node: number): PictureBox {
    return this.byItem.get(this.state.visible(this.model, node)) ?? this.boxes[0]!;
  }

  boxAt(x: number, y: number): PictureBox | null {
    let found: PictureBox | null = null;
    for (const box of this.grid.query({ x, y, width: 1e-6, height: 1e-6 })) {
      if (contains(box, x, y) && (!found || box.depth > found.depth)) found = box;
    }
    return found;
  }

  boxesIn(rect: Box): PictureBox[] {
    return this.grid.query(rect).filter((box) => !box.open);
  }

  /** All boxes that meet a rectangle, those that hold others before them. */
  inSight(rect: Box): PictureBox[] {
    return this.grid.query(rect).sort((a, b) => a.depth - b.depth);
  }

  /** To be called after boxes moved. */
  moved(): void {
    this.cells = null;
  }

  private get grid(): Grid<PictureBox> {
    return (this.cells ??= new Grid(this.boxes, this.extent));
  }
}

/** The bundles of a wiring that have an end at one of these items. */
export function bundlesAt(wiring: Wiring, wanted: (item: number) => boolean): number[] {
  const found: number[] = [];
  wiring.placed.bundles.forEach((bundle: Bundle, at) => {
    if (
      (bundle.from !== OUTSIDE && wanted(bundle.from)) ||
      (bundle.to !== OUTSIDE && wanted(bundle.to))
    )
      found.push(at);
  });
  return found;
}
