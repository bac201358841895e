// What the pointer does on the graph: paint, erase, lasso, pick modules, merge, split. Each stroke is looked at
// while it is drawn, and made when the button is let go, if it is legal then.
import type { GraphScene, GraphTool, Point, SceneBox } from "../graph/scene.ts";
import { operators } from "./boxes.ts";
import type { PartitionEditor } from "./editor.ts";
import { insidePolygon } from "./hulls.ts";
import type { PartitionLayers } from "./layer.ts";

export type ToolName = "select" | "paint" | "erase" | "lasso" | "module" | "merge" | "split";

export interface ToolInfo {
  readonly name: ToolName;
  readonly text: string;
  readonly key: string;
  readonly title: string;
}

export const TOOLS: readonly ToolInfo[] = [
  { name: "select", text: "Select", key: "v", title: "Select nodes; Shift adds" },
  { name: "lasso", text: "Lasso", key: "l", title: "Draw around nodes to select them; Shift adds" },
  { name: "module", text: "Module", key: "o", title: "Select all operators of a module" },
  { name: "paint", text: "Paint", key: "p", title: "Drag over nodes: they go to the target" },
  { name: "erase", text: "Eraser", key: "x", title: "Drag over nodes: they are left to the runtime" },
  { name: "merge", text: "Join", key: "j", title: "Click two partitions to merge them" },
  { name: "split", text: "Cut", key: "c", title: "Drag over nodes of a partition: they get one of their own" },
];

export interface ToolEvents {
  redraw(): void;
  /** Something to read for the one who drags. */
  say(text: string): void;
}

export class Tools {
  name: ToolName = "select";
  private readonly editor: PartitionEditor;
  private readonly layers: PartitionLayers;
  private readonly events: ToolEvents;
  private rows = new Set<number>();
  private polygon: Point[] = [];
  private first: string | null = null;
  private hovered: SceneBox | null = null;

  constructor(editor: PartitionEditor, layers: PartitionLayers, events: ToolEvents) {
    this.editor = editor;
    this.layers = layers;
    this.events = events;
  }

  /** The tool for the graph; null where the graph's own selecting will do. */
  use(name: ToolName): GraphTool | null {
    this.name = name;
    this.cancel();
    if (name === "select") return null;
    if (name === "lasso") return this.lasso();
    if (name === "module") return this.module();
    if (name === "merge") return this.merge();
    return this.brush(name === "paint" ? "assign" : name === "erase" ? "erase" : "split");
  }

  /** Ends what was begun, without an edit. */
  cancel(): void {
    this.rows = new Set();
    this.polygon = [];
    this.first = null;
    this.hovered = null;
    this.layers.stroke = new Set();
    this.editor.look(null);
    this.events.redraw();
  }

  /** The pointer is over a box without a button down: what a click would do is shown. */
  hover(box: SceneBox | null): void {
    if (box === this.hovered) return;
    this.hovered = box;
    const { editor } = this;
    if (this.name === "select" || this.name === "lasso") return;
    if (this.name === "merge") {
      const tag = box && this.tagAt(box);
      editor.look(this.first && tag && tag !== this.first ? editor.request("merge", [], [this.first, tag]) : null);
      return;
    }
    if (this.name === "module") {
      const rows = box ? operators(moduleOf(box) ?? box, editor) : [];
      this.layers.stroke = new Set(rows);
      editor.look(rows.length ? editor.request("assign", rows) : null);
      this.events.redraw();
      return;
    }
    const rows = box ? operators(box, editor) : [];
    const action = this.name === "paint" ? "assign" : this.name;
    editor.look(rows.length && this.concerns(action, rows) ? editor.request(action, rows) : null);
  }

  /** Whether an action would change anything of these rows: what needs no answer is not asked. */
  private concerns(action: "assign" | "erase" | "split", rows: readonly number[]): boolean {
    if (action !== "assign") return rows.some((row) => this.editor.tagOf(row) !== null);
    return rows.some((row) => this.editor.tagOf(row)?.name !== (this.editor.target.tag ?? ""));
  }

  private tagAt(box: SceneBox): string | null {
    for (const row of operators(box, this.editor)) {
      const tag = this.editor.tagOf(row);
      if (tag) return tag.name;
    }
    return null;
  }

  private brush(action: "assign" | "erase" | "split"): GraphTool {
    const add = (scene: GraphScene, world: Point) => {
      const box = scene.boxAt(world.x, world.y);
      if (!box || box.open) return;
      const before = this.rows.size;
      for (const row of operators(box, this.editor)) this.rows.add(row);
      if (this.rows.size === before) return;
      this.layers.stroke = new Set(this.rows);
      this.editor.look(this.editor.request(action, [...this.rows]));
      this.events.redraw();
    };
    return {
      cursor: "crosshair",
      down: (world, _, scene) => {
        const box = scene.boxAt(world.x, world.y);
        // Beside the boxes the graph pans.
        if (!box || box.open) return false;
        this.rows = new Set();
        add(scene, world);
        return true;
      },
      move: (world, _, scene) => add(scene, world),
      up: () => {
        const rows = [...this.rows];
        this.rows = new Set();
        this.layers.stroke = new Set();
        if (rows.length) void this.editor.apply(this.editor.request(action, rows));
        this.events.redraw();
      },
    };
  }

  private lasso(): GraphTool {
    return {
      cursor: "crosshair",
      down: (world) => {
        this.polygon = [world];
        return true;
      },
      move: (world) => {
        const last = this.polygon[this.polygon.length - 1];
        const step = 3 / this.layers.transform.scale;
        if (last && Math.hypot(world.x - last.x, world.y - last.y) < step) return;
        this.polygon.push(world);
      },
      up: (_, event, scene) => {
        const polygon = this.polygon;
        this.polygon = [];
        const rows = polygon.length < 3 ? [] : this.enclosed(scene, polygon);
        this.editor.mark(rows, event.shiftKey);
        this.events.say(`${this.editor.marked.length} nodes selected`);
      },
      draw: (pen, _, transform, theme) => {
        if (this.polygon.length < 2) return;
        pen.beginPath();
        for (const { x, y } of this.polygon) pen.lineTo(x, y);
        pen.closePath();
        pen.fillStyle = theme.accent;
        pen.globalAlpha = 0.12;
        pen.fill();
        pen.globalAlpha = 1;
        pen.strokeStyle = theme.accent;
        pen.lineWidth = 1.5 / transform.scale;
        pen.setLineDash([5 / transform.scale, 4 / transform.scale]);
        pen.stroke();
        pen.setLineDash([]);
      },
    };
  }

  private enclosed(scene: GraphScene, polygon: readonly Point[]): number[] {
    const xs = polygon.map((point) => point.x);
    const ys = polygon.map((point) => point.y);
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    const around = { x: left, y: top, width: Math.max(...xs) - left, height: Math.max(...ys) - top };
    return scene
      .boxesIn(around)
      .filter((box) => insidePolygon(box.x + box.width / 2, box.y + box.height / 2, polygon))
      .flatMap((box) => operators(box, this.editor));
  }

  private module(): GraphTool {
    return {
      cursor: "pointer",
      down: (world, _, scene) => scene.boxAt(world.x, world.y) !== null,
      up: (world, event, scene) => {
        const box = scene.boxAt(world.x, world.y);
        if (!box) return;
        const module = moduleOf(box) ?? box;
        this.layers.stroke = new Set();
        this.editor.mark(operators(module, this.editor), event.shiftKey);
        this.events.say(`${module.title}: ${this.editor.marked.length} operators selected`);
      },
    };
  }

  private merge(): GraphTool {
    return {
      cursor: "pointer",
      down: (world, _, scene) => {
        const box = scene.boxAt(world.x, world.y);
        return box !== null && this.tagAt(box) !== null;
      },
      up: (world, _, scene) => {
        const box = scene.boxAt(world.x, world.y);
        const tag = box && this.tagAt(box);
        if (!tag) return;
        if (!this.first || this.first === tag) {
          this.first = tag;
          this.layers.stroke = new Set(this.editor.rowsOf(tag));
          this.events.say(`${tag}: now click the partition to merge it with`);
          this.events.redraw();
          return;
        }
        const request = this.editor.request("merge", [], [this.first, tag]);
        this.first = null;
        this.layers.stroke = new Set();
        void this.editor.apply(request);
      },
    };
  }
}

/** The innermost module that a box is, or stands in. */
export function moduleOf(box: SceneBox): SceneBox | null {
  let found: SceneBox | null = box;
  while (found && found.kind === "node") found = found.parent;
  return found;
}

