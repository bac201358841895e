// The pointer without a button: tools say what a click would do, nodes left behind say why.
import type { GraphHandle, GraphScene, SceneBox } from "../graph/scene.ts";
import { h, on } from "../common/dom.ts";
import { facts, type Tooltip } from "../common/tooltip.ts";
import { reasonList } from "./edit_pane.ts";
import { NONE, type PartitionEditor } from "./editor.ts";
import type { PartitionLayers } from "./layer.ts";
import type { Tools } from "./tools.ts";

/** Listens on the graph's element; returns what ends it. */
export function hovering(
  canvas: HTMLElement, graph: GraphHandle, editor: PartitionEditor, layers: PartitionLayers, tools: Tools, tooltip: Tooltip,
): (() => void)[] {
  const boxAt = (event: PointerEvent): SceneBox | null => {
    const drawn = canvas.querySelector("canvas");
    if (!drawn || !graph.scene) return null;
    const rect = drawn.getBoundingClientRect();
    const { scale, x, y } = layers.transform;
    return graph.scene.boxAt((event.clientX - rect.left - x) / scale, (event.clientY - rect.top - y) / scale);
  };
  return [
    on(canvas, "pointermove", (event) => {
      if (event.buttons) {
        tooltip.hide();
        return;
      }
      const box = boxAt(event);
      tools.hover(box);
      const content = box && !box.open && graph.scene ? explain(box, graph.scene, editor, layers) : null;
      if (content) tooltip.show(event.clientX, event.clientY, content);
      else tooltip.hide();
    }),
    on(canvas, "pointerleave", () => {
      tools.hover(null);
      tooltip.hide();
    }),
  ];
}

/** Who runs what a box stands for, and why not somebody else. */
function explain(box: SceneBox, scene: GraphScene, editor: PartitionEditor, layers: PartitionLayers): HTMLElement | null {
  const cover = layers.covers(scene).byBox.get(box);
  const first = cover?.rows[0];
  const { document, shown } = editor;
  if (!cover || first === undefined || !document) return null;
  const only = cover.rows.length === 1;
  const tags = [...cover.counts].map(([tag, count]) => {
    const name = tag === NONE ? "the runtime" : (editor.state?.tags[tag]?.name ?? "");
    return only ? name : `${name}: ${count}`;
  });
  const drawn = scene.document;
  const list = facts([
    ["Operator", only ? document.op.get(first) : `${cover.rows.length} operators`],
    ["Output", only ? `${drawn.dtype.get(first)} ${drawn.shape.get(first)}`.trim() : null],
    ["Module", document.module.get(first) || null],
    ["Source", only ? document.source.get(first) : null],
    ["Runs on", tags.slice(0, 6).join(", ") + (tags.length > 6 ? ", …" : "")],
  ]);
  const reasons = only ? (editor.reasons.get(first) ?? []) : [];
  if (reasons.length) list.append(h("dt", {}, "Why not"), h("dd", {}, reasonList(reasons)));
  else if (cover.left) list.append(h("dt", {}, "Left behind"), h("dd", {}, String(cover.left)));
  if (shown?.kind === "look") {
    const { legal, text, message } = shown.answer;
    list.append(h("dt", {}, legal ? "✓ Legal" : "✗ Not legal"), h("dd", {}, legal ? text : message));
  }
  return h("div", {}, h("strong", {}, only ? document.name.get(first) : box.title), list);
}
