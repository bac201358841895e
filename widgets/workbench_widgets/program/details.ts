// What is known of one part of the file, and what colours mean.
import type { ProgramDocument, ProgramMethodDocument } from "../contract.ts";
import { h } from "../common/dom.ts";
import { bytes, count, percent } from "../common/format.ts";
import { hatchCss } from "../common/palette.ts";
import { facts } from "../common/tooltip.ts";
import { LOOKS } from "./map.ts";
import { leaves } from "./tree.ts";
import type { TreeNode } from "./treemap.ts";

type Fact = [string, string | Node | null];

/** The facts of a part or a group. */
export function aboutPart(document: ProgramDocument, node: TreeNode): Fact[] {
  const row = node.row;
  const inside = node.children.length ? `${count(leaves(node).length)} parts` : null;
  const share = percent(node.bytes / document.size);
  const size = `${bytes(node.bytes)} (${count(node.bytes)} B), ${share} of the file`;
  if (row < 0)
    return [
      ["bytes", size],
      ["inside", inside],
    ];
  const uses = document.part_uses[row]!;
  const users = document.part_operator.get(row);
  return [
    ["kind", document.part_kind.get(row)],
    ["bytes", size],
    ["at byte", count(document.part_start[row]!)],
    ["inside", inside],
    ["detail", document.part_detail.get(row)],
    ["module", document.part_module.get(row)],
    ["used by", users ? `${users}, ${uses === 1 ? "once" : `${count(uses)} times`}` : null],
  ];
}

/** The same with what uses the part and what is equal to it, as links. */
export function partDetails(
  document: ProgramDocument,
  code: ProgramMethodDocument,
  node: TreeNode,
  users: readonly number[],
  goPart: (row: number) => void,
  goInstruction: (row: number) => void,
): Node[] {
  const same = node.row >= 0 ? document.part_same[node.row]! : -1;
  const others = [...document.part_same.keys()].filter(
    (row) => same >= 0 && row !== node.row && document.part_same[row] === same,
  );
  const twins = others.map((row) => link(document.part_name.get(row), () => goPart(row)));
  const steps = users.map((row) =>
    link(`${code.index[row]} ${short(code.name.get(row))}`, () => goInstruction(row)),
  );
  return [
    h("h4", {}, node.name),
    facts([
      ...aboutPart(document, node),
      ["instructions", listed(steps, 8, "")],
      [
        "same content as",
        listed(twins, 6, `: ${bytes(node.bytes * others.length)} could be saved`),
      ],
    ]),
  ];
}

function listed(items: readonly Node[], most: number, end: string): Node | null {
  if (!items.length) return null;
  const shown = items.slice(0, most).flatMap((item, at) => (at ? [", ", item] : [item]));
  const rest = items.length > most ? ` and ${count(items.length - most)} more` : "";
  return h("span", {}, ...shown, rest + end);
}

function link(text: string, action: () => void): HTMLElement {
  return h("button.wb-link", { type: "button", onclick: action }, text);
}

function short(operator: string): string {
  return operator.split("::").at(-1)!.split(".")[0]!;
}

/** Size of the file, colours and hatches, repeated data, and what a search found. */
export function legend(document: ProgramDocument, found: string): (Node | string)[] {
  const kinds = new Set(document.part_kind.values);
  const looks = Object.entries(LOOKS).filter(([kind]) => kinds.has(kind) && kind !== "section");
  const swatch = (style: string) => h("span.wb-swatch", { style });
  const saved = `${count(document.duplicates)} repeated, ${bytes(document.saved)} could be saved`;
  return [
    h("strong", {}, `${bytes(document.size)} (${count(document.size)} B)`),
    ...looks.map(([, look]) => {
      const hatch = hatchCss(look.hatch, "rgb(255 255 255 / 60%)");
      const image = look.hatch === "none" ? "" : `background-image:${hatch};`;
      return h("span", {}, swatch(`background-color:${look.color};${image}`), look.name);
    }),
    document.saved
      ? h("strong", {}, swatch("background-color:#D55E00"), saved)
      : h("span.wb-muted", {}, "no data is stored twice"),
    found ? h("span", { role: "status" }, found) : "",
  ];
}
