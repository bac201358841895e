// The totals of each side, with what they differ from the reference by.
import type { CompareDocument, CompareSide } from "../contract.ts";
import { h } from "../shared/dom.ts";
import { bytes, count, delta, ms, percent, shorten } from "../shared/format.ts";

const TOTALS: readonly {
  readonly title: string;
  readonly hint: string;
  readonly value: (side: CompareSide) => number | null;
  readonly text: (value: number) => string;
}[] = [
  { title: "Time", hint: "Median of one execution, summed over the rows", value: (side) => side.ms, text: ms },
  { title: "Program", hint: "Size of the file", value: (side) => side.program_bytes, text: bytes },
  { title: "Arenas", hint: "Planned memory", value: (side) => side.arena_bytes, text: bytes },
  { title: "Written", hint: "Bytes that all nodes write", value: (side) => side.bytes, text: bytes },
  { title: "Nodes", hint: "Calls in the lowered graph", value: (side) => side.nodes, text: count },
];

/** One card a side; the button of a card makes its side the reference. */
export function cards(doc: CompareDocument, onReference: (side: number) => void): HTMLElement[] {
  const wanted = doc.sides[doc.reference]!;
  return doc.sides.map((side, number) => {
    const own = number === doc.reference;
    const rows = TOTALS.filter(({ value }) => doc.sides.some((other) => value(other) !== null)).map((total) => {
      const value = total.value(side);
      const base = total.value(wanted);
      const change = value !== null && base !== null ? value - base : null;
      return h(
        "tr",
        { title: total.hint },
        h("th", { scope: "row" }, total.title),
        h("td.wb-number", {}, value === null ? "–" : total.text(value)),
        h("td.wb-number.wb-muted", {}, own || change === null ? "" : changeText(change, base, total.text)),
      );
    });
    return h(
      own ? "section.wb-card.wb-card-reference" : "section.wb-card",
      { "aria-label": side.name },
      h(
        "div.wb-card-head",
        {},
        h("strong", { title: side.title }, shorten(side.name, 28)),
        own
          ? h("span.wb-muted", {}, "reference")
          : h("button.wb-button", { type: "button", title: `Hold the others against ${side.name}`, onclick: () => onReference(number) }, "Make reference"),
      ),
      h("table.wb-card-totals", {}, h("tbody", {}, ...rows)),
      h("div.wb-muted.wb-card-rows", {}, `${count(side.matched)} matched, ${count(side.changed)} changed, ${count(side.only)} only here`),
    );
  });
}

function changeText(change: number, base: number | null, text: (value: number) => string): string {
  if (change === 0) return "same";
  const share = base ? ` (${change > 0 ? "+" : ""}${percent(change / base)})` : "";
  return delta(change, text) + share;
}
