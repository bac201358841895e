// The rows of a comparison as a table, with bars that point left (less) and right (more).
import type { CompareDocument } from "../contract.ts";
import { h } from "../common/dom.ts";
import { bytes, delta, ms, number } from "../common/format.ts";
import type { TableColumn } from "../common/table.ts";
import {
  deltaOf,
  errorOf,
  hasErrors,
  kindOf,
  kindTitle,
  nodesOf,
  operatorsOf,
  others,
  valueOf,
  type Metric,
} from "./model.ts";

const SIGNS: Readonly<Record<string, string>> = { matched: "=", changed: "△" };

/** Columns over rows of the document; `rows` says which row of the document stands where in the table. */
export function columns(
  doc: CompareDocument,
  metric: Metric,
  rows: readonly number[],
): TableColumn[] {
  const format = metric === "ms" ? ms : bytes;
  const title = metric === "ms" ? "time" : "bytes";
  const text = (value: number | null, how: (value: number) => string) =>
    value === null ? "–" : how(value);
  const at = (place: number) => rows[place] ?? 0;
  const made: TableColumn[] = [
    {
      name: "status",
      title: "Status",
      text: (place) => kindTitle(doc, kindOf(doc, at(place))),
      cell: (place) => {
        const kind = kindOf(doc, at(place));
        return h(
          "span",
          {},
          h("span.wb-sign-plain", { "aria-hidden": true }, SIGNS[kind] ?? "+"),
          kindTitle(doc, kind),
        );
      },
    },
    { name: "nodes", title: "Nodes", text: (place) => nodesOf(doc, at(place)) },
  ];
  for (const side of others(doc)) {
    const name = doc.sides[side]!.name;
    let most = 0;
    for (const row of rows) most = Math.max(most, Math.abs(deltaOf(doc, row, side, metric) ?? 0));
    made.push({
      name: `delta:${side}`,
      title: `${name}: Δ ${title}`,
      numeric: true,
      text: (place) => text(deltaOf(doc, at(place), side, metric), (value) => delta(value, format)),
      value: (place) => deltaOf(doc, at(place), side, metric),
      cell: (place) => deltaCell(deltaOf(doc, at(place), side, metric), most, format),
    });
  }
  doc.sides.forEach((side, index) => {
    made.push({
      name: `${metric}:${index}`,
      title: `${side.name}: ${title}`,
      numeric: true,
      text: (place) => text(valueOf(doc, at(place), index, metric), format),
      hint: (place) =>
        doc.cells[index]!.inside.get(at(place)) ||
        text(valueOf(doc, at(place), index, metric), format),
      value: (place) => valueOf(doc, at(place), index, metric),
    });
  });
  for (const side of hasErrors(doc) ? others(doc) : []) {
    const name = doc.sides[side]!.name;
    made.push(
      {
        name: `sqnr:${side}`,
        title: `${name}: SQNR`,
        numeric: true,
        text: (place) => text(errorOf(doc, at(place), side, "sqnr"), sqnr),
        value: (place) => errorOf(doc, at(place), side, "sqnr"),
      },
      {
        name: `error:${side}`,
        title: `${name}: max error`,
        numeric: true,
        text: (place) => text(errorOf(doc, at(place), side, "error"), number),
        value: (place) => errorOf(doc, at(place), side, "error"),
      },
    );
  }
  made.push(
    { name: "operators", title: "Operators", text: (place) => operatorsOf(doc, at(place)) },
    { name: "module", title: "Module", text: (place) => doc.module.get(at(place)) },
    { name: "source", title: "Source", text: (place) => doc.source.get(at(place)) },
  );
  return made;
}

function sqnr(value: number): string {
  if (value === Infinity) return "equal";
  return value === -Infinity ? "no signal" : `${value.toFixed(1)} dB`;
}

function deltaCell(
  value: number | null,
  most: number,
  format: (value: number) => string,
): HTMLElement {
  if (value === null) return h("span.wb-muted", {}, "–");
  const share = most ? Math.abs(value) / most : 0;
  const bar = h(value > 0 ? "span.wb-delta-bar.wb-more" : "span.wb-delta-bar.wb-less", {
    style: `width:${(50 * share).toFixed(1)}%`,
  });
  return h(
    "span.wb-delta",
    {},
    h("span.wb-delta-text", {}, delta(value, format)),
    h("span.wb-delta-track", { "aria-hidden": true }, value ? bar : null),
  );
}
