// Two graphs next to each other, coloured by what became of each node.
import type { CompareDocument, GraphDocument } from "../contract.ts";
import type { GraphHandle, GraphLayer, GraphOptions, SceneBox } from "../graph/scene.ts";
import type { Host } from "../common/host.ts";
import { h } from "../common/dom.ts";
import { errorBox } from "../common/errors.ts";
import { HandleIndex } from "../common/selection.ts";
import { makeSplit } from "../common/split.ts";
import type { Theme } from "../common/theme.ts";
import { sideHost } from "./sides.ts";

export type GraphMount = (
  host: Host,
  el: HTMLElement,
  options: GraphOptions,
) => GraphHandle | Promise<GraphHandle>;

export interface Graphs {
  readonly el: HTMLElement;
  show(doc: CompareDocument, other: number): void;
  setStacked(stacked: boolean): void;
  destroy(): void;
}

// Okabe and Ito's orange and bluish green, doubled by a triangle and a plus.
export const CHANGED = "#E69F00";
export const ONLY = "#009E73";

/**
 * Of each node of a side's graph: 0 matched, 1 changed, 2 missing elsewhere. What runs inside a delegate has no row
 * of its own: it is found by what it comes from.
 */
export function statusOf(doc: CompareDocument, side: number, graph: GraphDocument): Uint8Array {
  const cells = doc.cells[side]!;
  const named = new Map<string, number>();
  for (let at = 0; at < cells.node.length; at++)
    named.set(cells.node.get(at), cells.node_row[at] ?? -1);
  const rows = new HandleIndex(doc.handle_start, doc.handles);
  const first = new Map<number, number>();
  cells.handle.forEach((own, at) => first.set(own, cells.first_handle[at] ?? 0));
  const origins = new HandleIndex(graph.handle_start, graph.handles);
  return Uint8Array.from({ length: graph.name.length }, (_, node) => {
    const kind = graph.kind.get(node);
    if (kind !== "call" && kind !== "delegate" && kind !== "control") return 0;
    const row = named.get(graph.name.get(node));
    if (row !== undefined) return doc.status[row] ?? 0;
    const handles = origins
      .handles(node)
      .map((handle) => (first.size ? (first.get(handle) ?? 0) : handle));
    return Math.max(0, ...rows.find(handles).map((found) => doc.status[found] ?? 0));
  });
}

function layerOf(doc: CompareDocument, side: number): GraphLayer {
  let graph: GraphDocument | null = null;
  let status = new Uint8Array();
  return {
    under: false,
    draw(pen, scene, transform, theme) {
      if (scene.document !== graph) {
        graph = scene.document;
        status = statusOf(doc, side, graph) as Uint8Array<ArrayBuffer>;
      }
      for (const box of scene.boxes) {
        if (box.open) continue;
        let worst = 0;
        for (const node of box.members()) worst = Math.max(worst, status[node] ?? 0);
        if (worst) drawStatus(pen, box, worst, transform.scale, theme);
      }
    },
  };
}

function drawStatus(
  pen: CanvasRenderingContext2D,
  box: SceneBox,
  status: number,
  scale: number,
  theme: Theme,
): void {
  const color = status === 1 ? CHANGED : ONLY;
  const unit = 1 / scale;
  pen.strokeStyle = color;
  pen.lineWidth = 3 * unit;
  pen.strokeRect(box.x - unit, box.y - unit, box.width + 2 * unit, box.height + 2 * unit);
  if (box.height * scale < 10) return;
  const size = Math.min(14 * unit, box.height * 0.5);
  const [x, y] = [box.x + box.width - size / 2, box.y + size / 2];
  pen.fillStyle = color;
  pen.beginPath();
  pen.arc(x, y, size * 0.75, 0, 2 * Math.PI);
  pen.fill();
  pen.strokeStyle = theme.background;
  pen.lineWidth = size * 0.16;
  pen.beginPath();
  if (status === 1) {
    pen.moveTo(x - size * 0.35, y + size * 0.3);
    pen.lineTo(x, y - size * 0.4);
    pen.lineTo(x + size * 0.35, y + size * 0.3);
    pen.closePath();
  } else {
    pen.moveTo(x - size * 0.4, y);
    pen.lineTo(x + size * 0.4, y);
    pen.moveTo(x, y - size * 0.4);
    pen.lineTo(x, y + size * 0.4);
  }
  pen.stroke();
}

export function makeGraphs(host: Host, mount: GraphMount): Graphs {
  const split = makeSplit("Border between the two graphs");
  const legend = h(
    "div.wb-legend.wb-graphs-legend",
    {},
    entry(CHANGED, "△", "changed"),
    entry(ONLY, "+", "missing on another side"),
    h("span.wb-muted", {}, "unmarked: matched"),
  );
  const el = h("div.wb-graphs", {}, legend, split.el);
  let closed = false;
  let shown = "";
  let turn = 0;
  let handles: { handle: GraphHandle; remove: () => void }[] = [];

  const clear = () => {
    for (const { handle, remove } of handles) {
      remove();
      handle.destroy();
    }
    handles = [];
  };
  const fill = async (doc: CompareDocument, pane: HTMLElement, side: number, mine: number) => {
    const { name } = doc.sides[side]!;
    const slot = h("div.wb-slot");
    pane.replaceChildren(
      h(
        "div.wb-graph-side",
        {},
        h("div.wb-graph-name", { title: doc.sides[side]!.title }, name),
        slot,
      ),
    );
    try {
      const own = sideHost(host, side, doc);
      const handle = await mount(own, slot, {
        stage: doc.sides[side]!.stage,
        method: doc.method,
        chrome: false,
      });
      if (closed || mine !== turn) return handle.destroy();
      handles.push({ handle, remove: handle.addLayer(layerOf(doc, side)) });
      const end = handle.onReady(({ document }) => {
        const { handles: picked } = own.selection.get();
        if (picked.length)
          handle.reveal(new HandleIndex(document.handle_start, document.handles).find(picked));
        queueMicrotask(() => end()); // only at first: later the graph follows the selection itself
      });
    } catch (error) {
      slot.replaceChildren(errorBox(error));
    }
  };
  return {
    el,
    show(doc, other) {
      const name = `${doc.reference}/${other}/${doc.sides.length}`;
      if (name === shown) return;
      shown = name;
      const mine = ++turn;
      clear();
      void fill(doc, split.first, doc.reference, mine);
      void fill(doc, split.second, other, mine);
    },
    setStacked: (stacked) => split.setStacked(stacked),
    destroy() {
      closed = true;
      clear();
      split.destroy();
      el.remove();
    },
  };
}

function entry(color: string, sign: string, text: string): HTMLElement {
  return h(
    "span",
    {},
    h("span.wb-sign", { style: `background:${color}`, "aria-hidden": true }, sign),
    text,
  );
}
