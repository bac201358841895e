// Two graphs next to each other, coloured by what became of each node.
import type { CompareDocument } from "../contract.ts";
import type { GraphHandle, GraphLayer, GraphOptions, SceneBox } from "../graph/scene.ts";
import type { Host } from "../shared/host.ts";
import { h } from "../shared/dom.ts";
import { errorBox } from "../shared/errors.ts";
import { makeSplit } from "../shared/split.ts";
import type { Theme } from "../shared/theme.ts";
import { sideHost } from "./sides.ts";

export type GraphMount = (host: Host, el: HTMLElement, options: GraphOptions) => GraphHandle | Promise<GraphHandle>;

export interface Graphs {
  readonly el: HTMLElement;
  show(doc: CompareDocument, other: number): void;
  setStacked(stacked: boolean): void;
  destroy(): void;
}

// Okabe and Ito's orange and bluish green, doubled by a triangle and a plus.
export const CHANGED = "#E69F00";
export const ONLY = "#009E73";

/** 0 matched, 1 changed, 2 missing elsewhere: the worst of what a box holds. */
export function statusOf(doc: CompareDocument, side: number): Map<string, number> {
  const cells = doc.cells[side]!;
  const found = new Map<string, number>();
  for (let at = 0; at < cells.node.length; at++) {
    found.set(cells.node.get(at), doc.status[cells.node_row[at] ?? -1] ?? 0);
  }
  return found;
}

function layerOf(doc: CompareDocument, side: number): GraphLayer {
  const status = statusOf(doc, side);
  return {
    under: false,
    draw(pen, scene, transform, theme) {
      const { name } = scene.document;
      for (const box of scene.boxes) {
        if (box.open) continue;
        let worst = 0;
        for (const node of box.members()) worst = Math.max(worst, status.get(name.get(node)) ?? 0);
        if (worst) drawStatus(pen, box, worst, transform.scale, theme);
      }
    },
  };
}

function drawStatus(pen: CanvasRenderingContext2D, box: SceneBox, status: number, scale: number, theme: Theme): void {
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
    pane.replaceChildren(h("div.wb-graph-side", {}, h("div.wb-graph-name", { title: doc.sides[side]!.title }, name), slot));
    try {
      const own = sideHost(host, side, name, doc.method, doc.cells[side]!);
      const handle = await mount(own, slot, { stage: "lowered", method: doc.method, chrome: false });
      if (closed || mine !== turn) return handle.destroy();
      handles.push({ handle, remove: handle.addLayer(layerOf(doc, side)) });
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
  return h("span", {}, h("span.wb-sign", { style: `background:${color}`, "aria-hidden": true }, sign), text);
}
