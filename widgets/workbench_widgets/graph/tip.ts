// What stands beside the pointer.
import { h } from "../common/dom.ts";
import { bytes, count } from "../common/format.ts";
import { facts } from "../common/tooltip.ts";
import { formatUnit, type Overlay } from "./overlay.ts";
import type { PictureBox } from "./picture.ts";

export function tip(box: PictureBox, overlay: Overlay | null): Node {
  const { model } = box;
  const { document } = model;
  const value = overlay ? overlay.value(box.item) : NaN;
  const measured: [string, string | null] = [
    overlay?.column.title.toLowerCase() ?? "",
    overlay && !Number.isNaN(value) ? formatUnit(value, overlay.column.unit) : null,
  ];
  if (box.kind === "node") {
    const node = box.index;
    const constants = [...box.members()].filter((member) => member !== node);
    const module = document.module[node]!;
    return h(
      "div",
      {},
      h("strong", {}, document.name.get(node)),
      facts([
        ["operator", document.op.get(node)],
        ["output", `${document.dtype.get(node)} ${document.shape.get(node)}`.trim()],
        ["bytes", document.bytes[node] ? bytes(document.bytes[node]!) : null],
        measured,
        ["attributes", document.attributes.get(node)],
        [
          "constants",
          constants
            .slice(0, 4)
            .map((member) => `${document.name.get(member)} ${document.shape.get(member)}`)
            .join(", ") || null,
        ],
        ["partition", document.tag.get(node)],
        ["module", document.module_path.get(module)],
        ["class", document.module_type.get(module).split(".").pop() ?? null],
        ["source", document.source.get(node)],
      ]),
    );
  }
  return h(
    "div",
    {},
    h("strong", {}, box.title),
    facts([
      ["path", document.module_path.get(box.index)],
      ["class", document.module_type.get(box.index)],
      ["stack", box.kind === "fold" ? `${model.folded(box.item).length} equal blocks` : null],
      ["nodes", count(model.count(box.item))],
      measured,
      ["", box.open ? "double-click closes" : "double-click opens"],
    ]),
  );
}
