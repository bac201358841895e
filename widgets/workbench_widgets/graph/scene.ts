// What the graph view shows at a moment, for those who draw on it: layers, tools, other views.
import type { GraphDocument } from "../contract.ts";
import type { Theme } from "../common/theme.ts";
import type { Box, Transform } from "../common/viewport.ts";

export type { GraphDocument } from "../contract.ts";

/** One visible rectangle. Its place changes while the view animates: read it when drawing. */
export interface SceneBox extends Box {
  /** A fold is a stack of consecutive equal modules. */
  readonly kind: "node" | "module" | "fold";
  /** Row of the node, or of the module; of a fold the first of its modules. */
  readonly index: number;
  /** Shows what it holds. */
  readonly open: boolean;
  readonly depth: number;
  readonly parent: SceneBox | null;
  readonly title: string;
  readonly detail: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Rows of the nodes that it stands for, ascending; those of hidden constants included. */
  members(): Int32Array;
}

export interface GraphScene {
  readonly document: GraphDocument;
  /** All visible boxes, each behind the one that holds it. */
  readonly boxes: readonly SceneBox[];
  readonly extent: Box;
  /** The innermost box at a point of the world. */
  boxAt(x: number, y: number): SceneBox | null;
  /** Boxes that show nothing inside and that meet a rectangle. */
  boxesIn(rect: Box): SceneBox[];
  /**
   * The innermost visible box that a node is in; a hidden constant is in that of its first user.
   */
  boxOf(node: number): SceneBox;
}

/**
 * Draws below or above the boxes. The pen is in world coordinates: divide line widths by
 * `transform.scale`.
 */
export interface GraphLayer {
  readonly under: boolean;
  draw(
    pen: CanvasRenderingContext2D,
    scene: GraphScene,
    transform: Readonly<Transform>,
    theme: Theme,
  ): void;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/**
 * Takes the pointer from the view. `down` tells whether it wants the gesture; without, the view
 * pans and selects.
 */
export interface GraphTool {
  readonly cursor: string;
  down(world: Point, event: PointerEvent, scene: GraphScene): boolean;
  move?(world: Point, event: PointerEvent, scene: GraphScene): void;
  up?(world: Point, event: PointerEvent, scene: GraphScene): void;
  /** Above everything, in world coordinates. */
  draw?(
    pen: CanvasRenderingContext2D,
    scene: GraphScene,
    transform: Readonly<Transform>,
    theme: Theme,
  ): void;
}

export interface GraphOptions {
  /** By default the stage and method that the widget is about. */
  readonly stage?: string;
  readonly method?: string;
  /** Toolbar, side pane and minimap; true by default. */
  readonly chrome?: boolean;
  /** Name of the overlay column to begin with. */
  readonly overlay?: string;
}

export interface GraphHandle {
  destroy(): void;
  /** Shows another stage or method; nodes keep their places where they can. */
  setStage(stage: string, method?: string): Promise<void>;
  addLayer(layer: GraphLayer): () => void;
  /** Hands the pointer to a tool; null gives it back. */
  setTool(tool: GraphTool | null): void;
  /** Null until the first document is there. */
  readonly scene: GraphScene | null;
  redraw(): void;
  /** Colours by a column of the overlays, as soon as there is one of this name. */
  showOverlay(name: string): void;
  fit(): void;
  /** The field that searches the graph, for the bar of a view around it; in one with a bar it stands there. */
  readonly search: { readonly el: HTMLElement; readonly problem: HTMLElement };
  /** Opens what holds these nodes and brings them into sight. */
  reveal(nodes: Iterable<number>): void;
  /** Calls back whenever a new scene is laid out, at once if there is one; returns what ends it. */
  onReady(listener: (scene: GraphScene) => void): () => void;
}
