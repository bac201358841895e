// The table behind the picture: one row for each operator.
import { bytes } from "../common/format.ts";
import { Table } from "../common/table.ts";
import { swatchOf } from "./lists.ts";
import { h } from "../common/dom.ts";
import type { PartitionEditor } from "./editor.ts";

export class NodeTable {
  readonly table: Table;
  private readonly editor: PartitionEditor;
  private rows: number[] = [];
  private places = new Map<number, number>();

  constructor(editor: PartitionEditor, reveal: (rows: readonly number[]) => void) {
    this.editor = editor;
    const row = (at: number) => this.rows[at]!;
    const document = () => editor.document!;
    const reason = (at: number) => editor.reasons.get(row(at))?.[0];
    const tag = (at: number) => editor.tagOf(row(at));
    this.table = new Table({
      label: "Operators with their partitions",
      rows: 0,
      columns: [
        { name: "node", title: "Node", text: (at) => document().name.get(row(at)) },
        {
          name: "tag", title: "Partition", text: (at) => tag(at)?.name ?? "–",
          cell: (at) => h("span", {}, tag(at) ? swatchOf(tag(at)!.color) : null, tag(at)?.name ?? "–"),
        },
        { name: "backend", title: "Backend", text: (at) => tag(at)?.backend ?? "runtime" },
        { name: "op", title: "Operator", text: (at) => document().op.get(row(at)) },
        { name: "module", title: "Module", text: (at) => document().module.get(row(at)) },
        { name: "bytes", title: "Bytes", numeric: true, text: (at) => bytes(document().bytes[row(at)] ?? 0), value: (at) => document().bytes[row(at)] ?? 0 },
        { name: "why", title: "Why not", text: (at) => reason(at)?.text ?? "" },
        { name: "form", title: "Eligible if", text: (at) => reason(at)?.eligibleIf ?? "" },
        { name: "proposed", title: "Partitioner", text: (at) => document().proposed.get(row(at)) || "runtime" },
        { name: "changed", title: "State", text: (at) => (editor.state?.pending[row(at)] ? "not lowered" : "lowered") },
        { name: "source", title: "Source", text: (at) => document().source.get(row(at)) },
      ],
      onPick: (at, extend) => editor.mark([row(at)], extend),
      onOpen: (at) => reveal([row(at)]),
    });
  }

  update(): void {
    const { document } = this.editor;
    const rows: number[] = [];
    document?.operator.forEach((operator, row) => {
      if (operator) rows.push(row);
    });
    this.rows = rows;
    this.places = new Map(rows.map((row, at) => [row, at]));
    this.table.update({ rows: rows.length });
  }

  mark(): void {
    const places = this.editor.marked.flatMap((row) => this.places.get(row) ?? []);
    this.table.select(places);
  }
}
