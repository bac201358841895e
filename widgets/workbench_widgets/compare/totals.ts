// The totals of each side in a line, with what they differ from the reference by, and which side that is.
import type { CompareDocument, CompareSide } from "../contract.ts";
import { h, unique } from "../common/dom.ts";
import { bytes, count, delta, ms, percent, shorten } from "../common/format.ts";

interface Total {
  readonly title: string;
  readonly hint: string;
  readonly value: (side: CompareSide) => number | null;
  readonly text: (value: number) => string;
}

const TOTALS: readonly Total[] = [
  {
    title: "Time",
    hint: "Median of one execution, summed over the rows",
    value: (side) => side.ms,
    text: ms,
  },
  { title: "Program", hint: "Size of the file", value: (side) => side.program_bytes, text: bytes },
  { title: "Arenas", hint: "Planned memory", value: (side) => side.arena_bytes, text: bytes },
  {
    title: "Written",
    hint: "Bytes that all nodes write",
    value: (side) => side.bytes,
    text: bytes,
  },
  { title: "Nodes", hint: "Calls in the lowered graph", value: (side) => side.nodes, text: count },
];
const ROWS: readonly Total[] = [
  {
    title: "Matched",
    hint: "Rows that are the same on all sides",
    value: (side) => side.matched,
    text: count,
  },
  {
    title: "Changed",
    hint: "Rows that all sides have, but differently",
    value: (side) => side.changed,
    text: count,
  },
  {
    title: "Only here",
    hint: "Rows that no other side has",
    value: (side) => side.only,
    text: count,
  },
];

/** One line a side; its button makes it the reference. */
export function totals(doc: CompareDocument, onReference: (side: number) => void): HTMLElement {
  const known = TOTALS.filter(({ value }) => doc.sides.some((side) => value(side) !== null));
  const group = unique("reference");
  const wanted = doc.sides[doc.reference]!;
  const heads = [...known, ...ROWS].map(({ title, hint }) =>
    h("th.wb-number", { scope: "col", title: hint }, title),
  );
  const lines = doc.sides.map((side, number) => {
    const chosen = number === doc.reference;
    const radio = h("input", {
      type: "radio",
      name: group,
      checked: chosen,
      "aria-label": `Hold the others against ${side.name}`,
      onchange: () => onReference(number),
      onkeydown: (event: KeyboardEvent) => event.stopPropagation(),
    });
    const title = chosen ? "The reference" : "Hold the others against this side";
    return h(
      "tr",
      { title: side.title },
      h(
        "th",
        { scope: "row" },
        h(
          "label",
          { title },
          radio,
          h("strong", {}, shorten(side.name, 28)),
          chosen ? h("span.wb-muted", {}, "reference") : null,
        ),
      ),
      ...known.map((total) => cell(total, side, chosen ? null : wanted)),
      ...ROWS.map((total) => cell(total, side, null)),
    );
  });
  return h(
    "table.wb-totals",
    { "aria-label": "Totals" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Side"), ...heads)),
    h("tbody", {}, ...lines),
  );
}

function cell(total: Total, side: CompareSide, wanted: CompareSide | null): HTMLElement {
  const value = total.value(side);
  const base = wanted ? total.value(wanted) : null;
  const change = value !== null && base !== null ? value - base : 0;
  return h(
    "td.wb-number",
    {},
    value === null ? "–" : total.text(value),
    change ? h("span.wb-total-change", {}, changeText(change, base, total.text)) : null,
  );
}

function changeText(change: number, base: number | null, text: (value: number) => string): string {
  // Below a tenth of a percent there is nothing to read.
  const share =
    base && Math.abs(change / base) >= 0.0005
      ? ` (${change > 0 ? "+" : ""}${percent(change / base)})`
      : "";
  return delta(change, text) + share;
}
