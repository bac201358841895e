// What the comparison view shows, worked out from the document.
import type { CompareDocument } from "../contract.ts";

export type Metric = "ms" | "bytes";

export interface Kind {
  readonly name: string;
  readonly title: string;
  readonly rows: number;
}

/** Whether a side has nodes in a row. */
export function present(doc: CompareDocument, row: number, side: number): boolean {
  return ((doc.present[row] ?? 0) & (1 << side)) !== 0;
}

/** The kind of a row: `matched`, `changed`, `only:2`, or `some` where several sides but not all have it. */
export function kindOf(doc: CompareDocument, row: number): string {
  const status = doc.status[row];
  if (status === 0) return "matched";
  if (status === 1) return "changed";
  const bits = doc.present[row] ?? 0;
  return (bits & (bits - 1)) === 0 ? `only:${31 - Math.clz32(bits)}` : "some";
}

export function kindTitle(doc: CompareDocument, kind: string): string {
  if (kind === "matched") return "Matched";
  if (kind === "changed") return "Changed";
  if (kind === "some") return "On some sides";
  return `Only in ${doc.sides[Number(kind.slice(5))]?.name ?? "?"}`;
}

/** The kinds that occur, with how many rows each has. */
export function kinds(doc: CompareDocument): Kind[] {
  const counts = new Map<string, number>();
  for (let row = 0; row < doc.status.length; row++) {
    const kind = kindOf(doc, row);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const order = ["matched", "changed", "some", ...doc.sides.map((_, side) => `only:${side}`)];
  return order
    .filter((kind) => counts.has(kind))
    .map((name) => ({ name, title: kindTitle(doc, name), rows: counts.get(name)! }));
}

/** Which metrics any side has: time needs runs. */
export function metrics(doc: CompareDocument): Metric[] {
  return doc.sides.some((side) => side.ms !== null) ? ["ms", "bytes"] : ["bytes"];
}

/** The metric of a side in a row; null where the side has no such row or did not measure it. */
export function valueOf(
  doc: CompareDocument,
  row: number,
  side: number,
  metric: Metric,
): number | null {
  if (!present(doc, row, side)) return null;
  const value = doc.cells[side]?.[metric][row];
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** The side's metric less the reference's; null where either is missing. */
export function deltaOf(
  doc: CompareDocument,
  row: number,
  side: number,
  metric: Metric,
): number | null {
  const own = valueOf(doc, row, side, metric);
  const wanted = valueOf(doc, row, doc.reference, metric);
  return own === null || wanted === null ? null : own - wanted;
}

/** SQNR and largest error against the reference; null where not known. */
export function errorOf(
  doc: CompareDocument,
  row: number,
  side: number,
  what: "sqnr" | "error",
): number | null {
  const value = doc.cells[side]?.[what][row];
  return value === undefined || Number.isNaN(value) ? null : value;
}

export function hasErrors(doc: CompareDocument): boolean {
  return doc.cells.some((cells) => cells.error.some((value) => !Number.isNaN(value)));
}

/** The sides but the reference. */
export function others(doc: CompareDocument): number[] {
  return doc.sides.map((_, side) => side).filter((side) => side !== doc.reference);
}

/** The nodes that a row stands for: the reference's, or those of the first side that has any. */
export function nodesOf(doc: CompareDocument, row: number): string {
  const sides = [doc.reference, ...others(doc)];
  return sides.map((side) => doc.cells[side]!.nodes.get(row)).find(Boolean) ?? "";
}

/** The operators; where they differ, the reference's and behind an arrow the others'. */
export function operatorsOf(doc: CompareDocument, row: number): string {
  const wanted = doc.cells[doc.reference]!.operators.get(row);
  const found = [...new Set(others(doc).map((side) => doc.cells[side]!.operators.get(row)))];
  const different = found.filter((text) => text !== wanted);
  if (!different.length) return short(wanted);
  return `${short(wanted) || "–"} → ${different.map((text) => short(text) || "–").join(" | ")}`;
}

function short(operators: string): string {
  return operators.replaceAll("aten.", "").replaceAll(".default", "");
}

/** The rows with a delta, the largest first. */
export function ranked(doc: CompareDocument, side: number, metric: Metric): number[] {
  const deltas = new Map<number, number>();
  for (let row = 0; row < doc.status.length; row++) {
    const delta = deltaOf(doc, row, side, metric);
    if (delta !== null) deltas.set(row, Math.abs(delta));
  }
  return [...deltas.keys()].sort((a, b) => deltas.get(b)! - deltas.get(a)! || a - b);
}

/** All that is known of the given rows, as CSV; empty where nothing is. */
export function csv(doc: CompareDocument, rows: readonly number[]): string {
  const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const columns: [string, (row: number) => string | number | null][] = [
    ["status", (row) => kindTitle(doc, kindOf(doc, row)).toLowerCase()],
    ["source", (row) => doc.source.get(row)],
    ["module", (row) => doc.module.get(row)],
  ];
  doc.sides.forEach(({ name }, side) => {
    columns.push(
      [`${name}: nodes`, (row) => doc.cells[side]!.nodes.get(row)],
      [`${name}: operators`, (row) => doc.cells[side]!.operators.get(row)],
      [`${name}: bytes`, (row) => valueOf(doc, row, side, "bytes")],
      [`${name}: ms`, (row) => valueOf(doc, row, side, "ms")],
    );
  });
  for (const side of others(doc)) {
    const name = doc.sides[side]!.name;
    columns.push(
      [`${name}: Δ bytes`, (row) => deltaOf(doc, row, side, "bytes")],
      [`${name}: Δ ms`, (row) => deltaOf(doc, row, side, "ms")],
      [`${name}: SQNR dB`, (row) => errorOf(doc, row, side, "sqnr")],
      [`${name}: max error`, (row) => errorOf(doc, row, side, "error")],
    );
  }
  const line = (row: number) =>
    columns.map(([, value]) => quote(String(value(row) ?? ""))).join(",");
  return [columns.map(([title]) => quote(title)).join(","), ...rows.map(line)].join("\n") + "\n";
}

/** The call that gives the same comparison, with the side in front that is the reference. */
export function python(doc: CompareDocument): string {
  const order = [doc.reference, ...others(doc)];
  const name = (side: number) => {
    const text = doc.sides[side]!.name;
    return /^[A-Za-z_]\w*$/.test(text) ? text : `side_${side}`;
  };
  const peers = order
    .filter((side) => doc.sides[side]!.kind === "peer")
    .map(
      (side) =>
        `${name(side)} = lowering.run(*lowering.example_inputs(), profile=True, runtime="executorch")\n`,
    );
  const names = order.map((side) => JSON.stringify(doc.sides[side]!.name)).join(", ");
  const method = doc.method === "forward" ? "" : `, method=${JSON.stringify(doc.method)}`;
  return `${peers.join("")}wb.compare(${order.map(name).join(", ")}, names=[${names}]${method}).table\n`;
}
