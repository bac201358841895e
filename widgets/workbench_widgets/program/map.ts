// The treemap of a file's bytes: hover, pick, go in and out, walk by keyboard.
import { h, on, throttled } from "../common/dom.ts";
import { bytes as showBytes } from "../common/format.ts";
import { hatchPattern, type Hatch } from "../common/palette.ts";
import { put } from "../common/press.ts";
import { readTheme, watchTheme, type Theme } from "../common/theme.ts";
import { nodeOf, pathTo } from "./tree.ts";
import { cellAt, layOut, neighbor, type Cell, type TreeNode } from "./treemap.ts";

export interface Look {
  readonly name: string;
  readonly color: string;
  readonly hatch: Hatch;
}

// Okabe and Ito's palette; the same as in the static picture.
export const LOOKS: Readonly<Record<string, Look>> = {
  flatbuffer: { name: "flatbuffer", color: "#56B4E9", hatch: "horizontal" },
  section: { name: "flatbuffer", color: "#56B4E9", hatch: "horizontal" },
  constant: { name: "constant", color: "#0072B2", hatch: "none" },
  state: { name: "initial state", color: "#CC79A7", hatch: "dots" },
  delegate: { name: "delegate", color: "#E69F00", hatch: "diagonal" },
  data: { name: "named data", color: "#009E73", hatch: "back" },
  padding: { name: "padding", color: "#999999", hatch: "vertical" },
};
const PLAIN: Look = { name: "group", color: "#999999", hatch: "none" };

export interface MapOptions {
  hover(node: TreeNode | null, event: PointerEvent | null): void;
  pick(node: TreeNode, extend: boolean): void;
}

export class TreeMap {
  readonly el: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly crumbs = h("nav.wb-program-crumbs", { "aria-label": "Where the map is" });
  private readonly box: HTMLElement;
  private readonly options: MapOptions;
  private readonly redraw = throttled(() => this.paint());
  private readonly ends: (() => void)[] = [];
  private theme: Theme | null = null;
  private root: TreeNode | null = null;
  private at: TreeNode | null = null;
  private cells: Cell[] = [];
  private hovered: TreeNode | null = null;
  private cursor: TreeNode | null = null;
  private selected: ReadonlySet<number> = new Set();
  private found: ReadonlySet<number> | null = null;
  private repeated: (row: number) => boolean = () => false;
  private size = { width: 0, height: 0 };

  constructor(parent: HTMLElement, options: MapOptions) {
    this.options = options;
    this.canvas = h("canvas.wb-canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": "Treemap of bytes: arrows walk, Enter goes in, Backspace out, Space picks",
    });
    this.box = h("div.wb-program-map", {}, this.canvas);
    this.el = h("div.wb-program-mapframe", {}, this.crumbs, this.box);
    parent.append(this.el);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.box);
    this.ends.push(
      () => observer.disconnect(),
      watchTheme(() => {
        this.theme = null;
        this.redraw();
      }),
      on(this.canvas, "pointermove", (event) => this.move(event)),
      on(this.canvas, "pointerleave", () => {
        this.hovered = null;
        this.options.hover(null, null);
        this.redraw();
      }),
      on(this.canvas, "click", (event) => this.click(event)),
      on(this.canvas, "dblclick", (event) => {
        const cell = this.cell(event);
        if (cell) this.enter(cell.node);
      }),
      on(this.canvas, "keydown", (event) => this.key(event)),
    );
  }

  /** Another tree; where it can, the map stays where it is. */
  show(root: TreeNode, repeated: (row: number) => boolean): void {
    const row = this.at?.row ?? -1;
    this.root = root;
    this.repeated = repeated;
    this.at = row > 0 ? (nodeOf(root, row) ?? root) : root;
    this.cursor = null;
    this.arrange();
  }

  select(rows: ReadonlySet<number>): void {
    this.selected = rows;
    this.redraw();
  }

  /** Dims all but what a search found; null ends it. */
  filter(found: ReadonlySet<number> | null): void {
    this.found = found;
    this.redraw();
  }

  destroy(): void {
    this.redraw.cancel();
    for (const end of this.ends) end();
    this.el.remove();
  }

  /** Paints now; measured by tests. */
  paint(): void {
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.size.width) return;
    const theme = (this.theme ??= readTheme(this.box));
    const ratio = this.canvas.width / this.size.width;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.size.width, this.size.height);
    const patterns = new Map<Hatch, CanvasPattern | null>();
    for (const cell of this.cells) this.paintCell(pen, theme, cell, patterns);
    for (const cell of this.cells) {
      if (this.selected.has(cell.node.row)) {
        ring(pen, cell, theme.background, 6);
        ring(pen, cell, theme.accent, 3.5);
      }
      if (cell.node === this.cursor) ring(pen, cell, theme.text, 2, [4, 2]);
      else if (cell.node === this.hovered) ring(pen, cell, theme.text, 1.5);
    }
  }

  private paintCell(
    pen: CanvasRenderingContext2D,
    theme: Theme,
    cell: Cell,
    patterns: Map<Hatch, CanvasPattern | null>,
  ): void {
    const { node, x, y, width, height } = cell;
    if (width < 0.4 || height < 0.4) return;
    const leaf = node.children.length === 0;
    const look = LOOKS[node.kind] ?? PLAIN;
    const dim = this.found !== null && leaf && !this.found.has(node.row);
    pen.globalAlpha = dim ? 0.18 : 1;
    if (leaf) {
      pen.fillStyle = look.color;
      pen.fillRect(x, y, Math.max(width - 1, 0.5), Math.max(height - 1, 0.5));
      if (look.hatch !== "none" && width > 8 && height > 8) {
        if (!patterns.has(look.hatch))
          patterns.set(look.hatch, hatchPattern(pen, look.hatch, "rgba(255,255,255,0.35)"));
        pen.fillStyle = patterns.get(look.hatch) ?? look.color;
        pen.fillRect(x, y, width - 1, height - 1);
      }
      if (this.repeated(node.row) && width > 6 && height > 6) {
        // A corner says that the same bytes stand elsewhere as well.
        pen.fillStyle = "#D55E00";
        pen.beginPath();
        pen.moveTo(x + width - 1, y);
        pen.lineTo(x + width - 1 - Math.min(14, width / 2), y);
        pen.lineTo(x + width - 1, y + Math.min(14, height / 2));
        pen.fill();
      }
    } else if (cell.depth > 0) {
      pen.fillStyle = cell.depth % 2 ? theme.surface : theme.raised;
      pen.fillRect(x, y, width - 1, height - 1);
      pen.strokeStyle = theme.border;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, Math.max(width - 2, 0), Math.max(height - 2, 0));
    }
    if (leaf || cell.head) this.paintLabel(pen, theme, cell, leaf ? inkOn(look.color) : theme.text);
    pen.globalAlpha = 1;
  }

  private paintLabel(pen: CanvasRenderingContext2D, theme: Theme, cell: Cell, ink: string): void {
    if (cell.width < 34 || cell.height < 15) return;
    pen.font = `11px ${theme.font || "sans-serif"}`;
    pen.textBaseline = "top";
    const leaf = cell.node.children.length === 0;
    const look = LOOKS[cell.node.kind] ?? PLAIN;
    const room = cell.width - 8;
    const size = showBytes(cell.node.bytes);
    const both = `${cell.node.name}  ${size}`;
    const lines = !leaf
      ? [pen.measureText(both).width <= room ? both : tail(pen, cell.node.name, room)]
      : cell.height > 30
        ? [tail(pen, cell.node.name, room), fits(pen, size, room)]
        : [tail(pen, cell.node.name, room)];
    lines.forEach((line, at) => {
      if (!line) return;
      if (leaf && look.hatch !== "none") {
        pen.fillStyle = look.color;
        pen.fillRect(cell.x + 2, cell.y + 1 + 13 * at, pen.measureText(line).width + 4, 13);
      }
      pen.fillStyle = ink;
      pen.fillText(line, cell.x + 4, cell.y + 3 + 13 * at);
    });
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!width || !height) return;
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.size = { width, height };
    this.arrange();
    this.paint();
  }

  private arrange(): void {
    const { width, height } = this.size;
    this.cells = this.at && width ? layOut(this.at, { x: 0, y: 0, width, height }) : [];
    this.path();
    this.redraw();
  }

  private path(): void {
    const steps = this.at ? pathTo(this.at) : [];
    put(
      this.crumbs,
      ...steps.flatMap((node, at) => {
        const last = at === steps.length - 1;
        const text = at ? node.name : "file";
        return [
          at ? h("span.wb-muted", { "aria-hidden": true }, " › ") : "",
          last
            ? h("strong", {}, text)
            : h("button.wb-link", { type: "button", onclick: () => this.go(node) }, text),
        ];
      }),
      h("span.wb-muted", {}, ` ${showBytes(this.at?.bytes ?? 0)}`),
    );
  }

  private go(node: TreeNode): void {
    this.at = node;
    this.arrange();
  }

  /** Into a group: of a part without children, the group around it that is below the present one. */
  private enter(node: TreeNode): void {
    const steps = pathTo(node);
    const here = this.at ? steps.indexOf(this.at) : -1;
    const next = steps[here + 1];
    if (next?.children.length) this.go(next);
  }

  private out(): void {
    if (this.at?.parent) this.go(this.at.parent);
  }

  private cell(event: MouseEvent): Cell | null {
    const rect = this.canvas.getBoundingClientRect();
    return cellAt(this.cells, event.clientX - rect.left, event.clientY - rect.top);
  }

  private move(event: PointerEvent): void {
    const node = this.cell(event)?.node ?? null;
    if (node !== this.hovered) {
      this.hovered = node;
      this.redraw();
    }
    this.options.hover(node, event);
  }

  private click(event: MouseEvent): void {
    this.canvas.focus({ preventScroll: true });
    const cell = this.cell(event);
    if (!cell) return;
    this.cursor = cell.node;
    this.options.pick(cell.node, event.shiftKey || event.ctrlKey || event.metaKey);
    this.redraw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (dx: number, dy: number) => () => {
      const from = this.cells.find((cell) => cell.node === this.cursor);
      const to = from
        ? neighbor(this.cells, from, dx, dy)
        : (this.cells.find((cell) => !cell.node.children.length) ?? null);
      if (!to) return;
      this.cursor = to.node;
      this.options.pick(to.node, event.shiftKey);
    };
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: step(-1, 0),
      ArrowRight: step(1, 0),
      ArrowUp: step(0, -1),
      ArrowDown: step(0, 1),
      Enter: () => this.cursor && this.enter(this.cursor),
      Backspace: () => this.out(),
      "-": () => this.out(),
      " ": () => this.cursor && this.options.pick(this.cursor, event.shiftKey),
      "0": () => this.root && this.go(this.root),
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    this.redraw();
    event.preventDefault();
    event.stopPropagation();
  }
}

function inkOn(color: string): string {
  return color === "#0072B2" || color === "#009E73" ? "#fff" : "#000";
}

function ring(
  pen: CanvasRenderingContext2D,
  cell: Cell,
  color: string,
  width: number,
  dash: number[] = [],
): void {
  pen.setLineDash(dash);
  pen.strokeStyle = color;
  pen.lineWidth = width;
  const inset = width / 2;
  pen.strokeRect(
    cell.x + inset,
    cell.y + inset,
    Math.max(cell.width - width - 1, 1),
    Math.max(cell.height - width - 1, 1),
  );
}

function fits(pen: CanvasRenderingContext2D, text: string, width: number): string {
  return pen.measureText(text).width <= width ? text : "";
}

/** As much of a name as fits: of a dotted one the end, which tells names apart, of others the beginning. */
function tail(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  if (!text.includes(".")) {
    let length = Math.floor((text.length * width) / pen.measureText(text).width);
    while (length > 2 && pen.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
    return length > 2 ? `${text.slice(0, length)}…` : "";
  }
  let length = Math.floor((text.length * width) / pen.measureText(text).width);
  while (length > 3 && pen.measureText(`…${text.slice(-length)}`).width > width) length -= 1;
  return length > 3 ? `…${text.slice(-length)}` : "";
}
