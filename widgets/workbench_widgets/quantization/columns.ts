// The columns of the table of operators.
import type { QuantizationAccuracy, QuantizationDocument } from "../contract.ts";
import { h } from "../common/dom.ts";
import { number } from "../common/format.ts";
import type { TableColumn, TableSort } from "../common/table.ts";
import { decibels, measured, reasonOf, scaleText, share, sign, zeroText } from "./model.ts";

/** Decibels at which a bar is full: what 8 bits give at best. */
const BEST = 50;

export function operatorColumns(
  doc: QuantizationDocument,
  accuracy: QuantizationAccuracy | null,
): TableColumn[] {
  const seen = doc.observers;
  const at = (row: number) => doc.observer[row]!;
  const known = (row: number, text: (observer: number) => string) =>
    at(row) < 0 ? "" : text(at(row));
  const seenNumber = (name: string, title: string, column: Float64Array): TableColumn => ({
    name,
    title,
    numeric: true,
    text: (row) => known(row, (observer) => number(column[observer]!)),
    value: (row) => (at(row) < 0 ? NaN : column[at(row)]!),
  });
  const columns: TableColumn[] = [
    { name: "node", title: "Operator", text: (row) => doc.node.get(row), hint: (row) => doc.op.get(row) },
    {
      name: "state",
      title: "State",
      text: (row) => doc.state.get(row) + (doc.edited[row] ? ", by hand" : ""),
      cell: (row) => stateCell(doc, row),
      hint: (row) => reasonOf(doc, row),
    },
    {
      name: "clipped",
      title: "Clipped",
      numeric: true,
      text: (row) => known(row, (observer) => share(seen.clipped[observer]!)),
      value: (row) => (at(row) < 0 ? NaN : seen.clipped[at(row)]!),
      hint: (row) => known(row, (observer) => `of the calibration values of ${seen.values.get(observer)}`),
    },
  ];
  if (accuracy?.measured) columns.push(...errors(accuracy));
  columns.push(
    {
      name: "observer",
      title: "Observer",
      text: (row) => known(row, (observer) => seen.kind.get(observer).replace("_", " ")),
      hint: (row) => known(row, (observer) => seen.spec.get(observer)),
    },
    {
      name: "scale",
      title: "Scale",
      numeric: true,
      text: (row) => known(row, (observer) => scaleText(seen, observer)),
      value: (row) => (at(row) < 0 ? NaN : seen.scale[at(row)]!),
    },
    {
      name: "zero",
      title: "Zero",
      numeric: true,
      text: (row) => known(row, (observer) => zeroText(seen, observer)),
      value: (row) => (at(row) < 0 ? NaN : seen.zero_point[at(row)]!),
      hint: () => "zero point",
    },
    seenNumber("min", "Min", seen.min),
    seenNumber("max", "Max", seen.max),
    { name: "reason", title: "How, or why not", text: (row) => reasonOf(doc, row) },
  );
  return columns;
}

function stateCell(doc: QuantizationDocument, row: number): HTMLElement {
  const state = doc.state.get(row);
  return h(
    "span.wb-quant-state",
    { "data-state": state },
    h("span", { "aria-hidden": true }, `${sign(state)} `),
    state,
    doc.edited[row] ? h("span.wb-quant-hand", { title: "decided by hand" }, " ✎") : null,
  );
}

function errors(accuracy: QuantizationAccuracy): TableColumn[] {
  const column = (
    name: "own" | "inherited" | "total",
    title: string,
    hint: string,
  ): TableColumn => ({
    name,
    title,
    numeric: true,
    text: (row) => decibels(measured(accuracy, name, row)),
    value: (row) => measured(accuracy, name, row),
    hint: (row) => `${decibels(measured(accuracy, name, row))}: ${hint}`,
    cell: (row) => amount(measured(accuracy, name, row)),
  });
  return [
    column("own", "Own", "signal to noise where only this layer is quantized, and reads floats"),
    column("inherited", "Inherited", "what the errors of its inputs add"),
    column("total", "SQNR", "the result as its readers get it, against floats"),
    {
      name: "saturation",
      title: "Saturated",
      numeric: true,
      text: (row) => share(measured(accuracy, "saturation", row)),
      value: (row) => measured(accuracy, "saturation", row),
      hint: () => "share of the measured values that are clipped when the result is rounded",
    },
  ];
}

/** Decibels with a bar of noise: the longer, the worse. */
function amount(value: number): HTMLElement {
  const bad = Number.isFinite(value) ? Math.min(Math.max((BEST - value) / BEST, 0), 1) : 0;
  return h(
    "span.wb-quant-amount",
    {},
    bad > 0 ? h("span.wb-bar", { style: `width:${Math.round(40 * bad) + 1}px` }) : null,
    h("span", {}, decibels(value)),
  );
}

/** The worst first: by their own error where it was measured, else by what is clipped. */
export function worstFirst(accuracy: QuantizationAccuracy | null): TableSort {
  return accuracy?.measured
    ? { column: "own", descending: false }
    : { column: "clipped", descending: true };
}

/** Rows in the order of a column, as far as they hold a text; what has no number stands last. */
export function ordered(
  columns: readonly TableColumn[],
  rows: readonly number[],
  sort: TableSort | null,
  needle: string,
): number[] {
  const found = rows.filter(
    (row) => !needle || columns.some((column) => column.text(row).toLowerCase().includes(needle)),
  );
  const column = sort && columns.find(({ name }) => name === sort.column);
  if (!sort || !column) return found;
  const key = (row: number) => column.value?.(row) ?? column.text(row);
  return found.sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    const [none, no] = [Number.isNaN(left), Number.isNaN(right)];
    if (none || no) return Number(none) - Number(no) || a - b;
    const less = left < right ? -1 : left > right ? 1 : 0;
    return (sort.descending ? -less : less) || a - b;
  });
}
