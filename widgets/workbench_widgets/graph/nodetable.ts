// The table behind the graph: one row a node.
import type { OverlayColumn } from "../contract.ts";
import { bytes, count } from "../common/format.ts";
import { Table, type TableColumn } from "../common/table.ts";
import type { StringColumn } from "../common/unpack.ts";
import type { GraphDocument } from "./scene.ts";
import { formatUnit } from "./overlay.ts";

export interface NodeTableEvents {
  onPick(row: number, extend: boolean): void;
  onOpen(row: number): void;
}

export function makeNodeTable(
  document: GraphDocument,
  overlays: readonly OverlayColumn[],
  events: NodeTableEvents,
): Table {
  return new Table({
    label: `Nodes of ${document.method}, ${document.stage}`,
    columns: nodeColumns(document, overlays),
    rows: document.name.length,
    onPick: events.onPick,
    onOpen: events.onOpen,
  });
}

export function nodeColumns(
  document: GraphDocument,
  overlays: readonly OverlayColumn[],
): TableColumn[] {
  const text = (name: string, title: string, column: StringColumn): TableColumn => ({
    name,
    title,
    text: (row) => column.get(row),
  });
  const columns: TableColumn[] = [
    { name: "row", title: "#", numeric: true, text: (row) => count(row), value: (row) => row },
    text("name", "Name", document.name),
    text("op", "Operator", document.op),
    text("kind", "Kind", document.kind),
    text("shape", "Shape", document.shape),
    text("dtype", "Type", document.dtype),
    {
      name: "bytes",
      title: "Bytes",
      numeric: true,
      text: (row) => bytes(document.bytes[row]!),
      value: (row) => document.bytes[row]!,
    },
    {
      name: "module",
      title: "Module",
      text: (row) => document.module_path.get(document.module[row]!),
    },
    text("attributes", "Attributes", document.attributes),
    text("source", "Source", document.source),
  ];
  if (document.tag.values.some((tag) => tag)) columns.push(text("tag", "Partition", document.tag));
  for (const column of overlays) {
    if (column.name === "output_bytes") continue; // the column "Bytes"
    const value = (row: number) => column.values[row]!;
    columns.push({
      name: `overlay.${column.name}`,
      title: column.title,
      numeric: true,
      value,
      text: (row) => (Number.isNaN(value(row)) ? "" : formatUnit(value(row), column.unit)),
    });
  }
  return columns;
}
