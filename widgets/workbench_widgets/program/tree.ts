// The parts of a file as trees: as they lie in the file, by module, by what uses them.
import type { ProgramDocument } from "../contract.ts";
import type { TreeNode } from "./treemap.ts";

export type Grouping = "file" | "module" | "operator";

/** The tree of a document; its bytes are the file's in every grouping. */
export function treeOf(document: ProgramDocument, grouping: Grouping): TreeNode {
  const byFile = fileTree(document);
  if (grouping === "file") return byFile;
  const root = group("file", null);
  for (const leaf of leaves(byFile)) {
    const path = grouping === "module" ? modulePath(document, leaf) : operatorPath(document, leaf);
    let at = root;
    for (const name of path) {
      let next = at.children.find((child) => child.row < 0 && child.name === name);
      if (!next) at.children.push((next = group(name, at)));
      at = next;
    }
    // Inside its module a weight needs its last name only.
    const module =
      grouping === "module" && leaf.row >= 0 ? `${document.part_module.get(leaf.row)}.` : "";
    const name =
      module && leaf.name.startsWith(module) ? leaf.name.slice(module.length) : leaf.name;
    at.children.push({ ...leaf, name, parent: at });
  }
  total(root);
  return collapsed(root);
}

function fileTree(document: ProgramDocument): TreeNode {
  const nodes: TreeNode[] = [];
  for (let row = 0; row < document.part_name.length; row++) {
    const parent = nodes[document.part_parent[row]!] ?? null;
    const node: TreeNode = {
      name: document.part_name.get(row),
      kind: document.part_kind.get(row),
      bytes: document.part_bytes[row]!,
      row,
      children: [],
      parent,
    };
    nodes.push(node);
    parent?.children.push(node);
  }
  return nodes[0] ?? group("file", null);
}

function group(name: string, parent: TreeNode | null): TreeNode {
  return { name, kind: "group", bytes: 0, row: -1, children: [], parent };
}

export function leaves(node: TreeNode): TreeNode[] {
  return node.children.length ? node.children.flatMap(leaves) : [node];
}

/** A part of a delegate's blob belongs where the blob does. */
function owner(node: TreeNode): TreeNode {
  return node.kind === "section" && node.parent?.kind === "delegate" ? node.parent : node;
}

function modulePath(document: ProgramDocument, node: TreeNode): string[] {
  const at = owner(node);
  const module = at.row < 0 ? "" : document.part_module.get(at.row);
  if (module) return module.split(".");
  return [at.kind === "section" || at.kind === "padding" ? "file format" : "no module"];
}

function operatorPath(document: ProgramDocument, node: TreeNode): string[] {
  const at = owner(node);
  const users = at.row < 0 ? "" : document.part_operator.get(at.row);
  if (users) return [users];
  return [at.kind === "section" || at.kind === "padding" ? "file format" : "nothing uses it"];
}

function total(node: TreeNode): number {
  if (node.children.length)
    node.bytes = node.children.reduce((sum, child) => sum + total(child), 0);
  return node.bytes;
}

/** Groups with a single group in them as one, `a.b.c`: they would only cost room. */
function collapsed(node: TreeNode): TreeNode {
  const children = node.children.map(collapsed);
  const only = children[0];
  const made: TreeNode =
    node.parent && node.row < 0 && children.length === 1 && only!.row < 0
      ? { ...only!, name: `${node.name}.${only!.name}`, parent: node.parent }
      : { ...node, children };
  for (const child of made.children) child.parent = made;
  return made;
}

/** From the root to a node. */
export function pathTo(node: TreeNode): TreeNode[] {
  const path: TreeNode[] = [];
  for (let at: TreeNode | null = node; at; at = at.parent) path.unshift(at);
  return path;
}

/** The node of a row, if the tree has it. */
export function nodeOf(root: TreeNode, row: number): TreeNode | null {
  if (root.row === row) return root;
  for (const child of root.children) {
    const found = nodeOf(child, row);
    if (found) return found;
  }
  return null;
}
