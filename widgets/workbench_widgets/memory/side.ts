// What stands beside the picture: the arena in figures, a preview, the tensor that is chosen, what lives at the peak.
import type { MemoryArena, MemoryDocument, MemoryPreview } from "../contract.ts";
import { h } from "../common/dom.ts";
import { bytes, count, delta, ms, percent } from "../common/format.ts";
import { facts } from "../common/tooltip.ts";
import { parseBytes } from "./draft.ts";
import { kindLook } from "./paint.ts";
import { aliveAt, reuse, type Places } from "./scene.ts";

/** The figures of an arena. */
export function summary(arena: MemoryArena, document: MemoryDocument): HTMLElement {
  return h(
    "section.wb-memory-section",
    { "aria-label": "Arena" },
    h("h4", {}, `Arena ${arena.arena}`),
    facts([
      ["takes", `${bytes(arena.size)} (${count(arena.size)} B)`],
      ["at least", bytes(arena.lower_bound)],
      [
        "empty at the peak",
        `${bytes(arena.size - arena.lower_bound)}, ${percent(arena.fragmentation)}`,
      ],
      [
        "without sharing",
        `${bytes(arena.total)}, ${(arena.total / Math.max(arena.size, 1)).toFixed(1)}×`,
      ],
      ["peak", `${document.moment_name.get(arena.peak_moment)} (moment ${arena.peak_moment})`],
      ["limit", arena.limit === null ? null : bytes(arena.limit)],
      ["tensors", count(arena.tensors)],
    ]),
  );
}

/** Before, after and the difference, by arena. */
export function change(preview: MemoryPreview, applied: boolean, stale: string): HTMLElement {
  const moved = preview.moved.reduce((sum, item) => sum + item, 0);
  const row = (name: string, before: number, after: number) => {
    const percentage = before
      ? ` (${delta((100 * (after - before)) / before, (value) => value.toFixed(1).replace("-", "−"))} %)`
      : "";
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}, bytes(before)),
      h("td", {}, bytes(after)),
      h(
        after < before ? "td.wb-memory-less" : after > before ? "td.wb-memory-more" : "td",
        {},
        after === before
          ? "same"
          : `${after < before ? "▼" : "▲"} ${delta(after - before, bytes)}${percentage}`,
      ),
    );
  };
  const rows = preview.arenas.map((arena) =>
    row(`arena ${arena.arena}`, arena.before, arena.after),
  );
  if (preview.arenas.length > 1) rows.push(row("all", preview.before, preview.after));
  return h(
    "section.wb-memory-section.wb-memory-change",
    { "aria-label": applied ? "What changed" : "Preview" },
    h("h4", {}, applied ? "Planned again" : "Preview: this plan is not made yet"),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...["", "before", "after", "difference"].map((text) => h("th", { scope: "col" }, text)),
        ),
      ),
      h("tbody", {}, ...rows),
    ),
    h(
      "p.wb-muted",
      {},
      `${count(moved)} of ${count(preview.moved.length)} tensors move; ${applied ? "lowered again" : "planned"} in ${ms(preview.milliseconds)}.${stale}`,
    ),
  );
}

export interface PinControls {
  readonly enabled: boolean;
  readonly why: string;
  readonly pinned: { arena: number; offset: number } | null;
  readonly alignment: number;
  readonly arenas: number;
  pin(arena: number, offset: number): void;
  unpin(): void;
  move(arena: number): void;
  pick(row: number): void;
}

/** Facts of a tensor, who had its bytes before and after, and where it shall lie. */
export function chosen(
  document: MemoryDocument,
  places: Places,
  rows: ArrayLike<number>,
  row: number,
  conflicts: readonly number[],
  controls: PinControls,
): HTMLElement {
  const near = reuse(document, places, rows, row);
  const link = (other: number) =>
    h(
      "button.wb-link",
      { type: "button", onclick: () => controls.pick(other) },
      document.name.get(other),
    );
  const some = (found: readonly number[]) => {
    const shown = found.slice(0, 4).flatMap((other, at) => [...(at ? [", "] : []), link(other)]);
    return found.length
      ? h("span", {}, ...shown, found.length > 4 ? ` and ${count(found.length - 4)} more` : null)
      : "nobody";
  };
  return h(
    "section.wb-memory-section",
    { "aria-label": "Chosen tensor" },
    h("h4", {}, document.name.get(row)),
    facts([
      ...about(document, places, row),
      ["bytes had before by", some(near.before)],
      ["had next by", some(near.after)],
      ["had at other times by", near.others ? `${count(near.others)} more` : null],
    ]),
    conflicts.length
      ? h(
          "p.wb-memory-warning",
          { role: "status" },
          "In use at once and in the way: ",
          ...conflicts.slice(0, 5).flatMap((other, at) => [at ? ", " : "", link(other)]),
        )
      : null,
    pinForm(places, row, controls),
  );
}

/** What a tensor is, for the tooltip as well. */
export function about(
  document: MemoryDocument,
  places: Places,
  row: number,
): [string, string | Node | null][] {
  const moment = (at: number) => `${at} (${document.moment_name.get(at)})`;
  const shape = document.shape.get(row);
  return [
    ["tensor", shape ? `${document.dtype.get(row)} ${shape}` : null],
    ["bytes", `${bytes(document.bytes[row]!)} (${count(document.bytes[row]!)} B)`],
    ["place", `arena ${places.arena[row]}, byte ${count(places.offset[row]!)}`],
    ["in use", `${moment(document.first[row]!)} to ${moment(document.last[row]!)}`],
    [
      "kind",
      kindLook(document.kind[row]!).name +
        (document.views[row]
          ? `, shared with ${document.views[row] === 1 ? "a view" : `${count(document.views[row]!)} views`}`
          : ""),
    ],
    ["at the peak", document.at_peak[row] ? "yes" : null],
    ["source", sourceLine(document.source.get(row))],
  ];
}

/** The end of a path, which tells it apart. */
export function shortPath(source: string): string {
  const parts = source.split("/");
  return parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : source;
}

function sourceLine(source: string): HTMLElement | null {
  return source ? h("span", { title: source }, shortPath(source)) : null;
}

function pinForm(places: Places, row: number, controls: PinControls): HTMLElement {
  const title = controls.enabled ? null : controls.why;
  const off = !controls.enabled;
  const offset = h("input.wb-input.wb-memory-offset", {
    type: "text",
    value: String(controls.pinned?.offset ?? places.offset[row]!),
    "aria-label": `Offset in bytes, a multiple of ${controls.alignment}`,
    title:
      title ?? `Bytes, a multiple of ${controls.alignment}; 512 KiB and 0x400 are fine as well`,
    disabled: off,
    onkeydown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key === "Enter") pin();
    },
  });
  const now = places.arena[row]!;
  const arena = h("select.wb-select", {
    "aria-label": "Arena",
    title: title ?? "The arena that the tensor goes to",
    disabled: off,
    onchange: () => controls.move(Number(arena.value)),
  });
  for (let number = 1; number <= Math.max(controls.arenas, now) + 1; number++) {
    arena.append(h("option", { value: number, selected: number === now }, `arena ${number}`));
  }
  const pin = () => {
    const wanted = parseBytes(offset.value);
    if (wanted === null || Number.isNaN(wanted)) {
      offset.setAttribute("aria-invalid", "true");
      offset.focus();
      return;
    }
    controls.pin(Number(arena.value), wanted);
  };
  return h(
    "div.wb-memory-pin",
    {},
    h("label", {}, "at byte ", offset),
    arena,
    h(
      "button.wb-button",
      {
        type: "button",
        disabled: off,
        title: title ?? "Keep the tensor at this place (P)",
        onclick: pin,
      },
      controls.pinned ? "Pin here" : "Pin",
    ),
    controls.pinned
      ? h(
          "button.wb-button",
          {
            type: "button",
            disabled: off,
            title: title ?? "Leave the place to the planner",
            onclick: () => controls.unpin(),
          },
          "Unpin",
        )
      : null,
  );
}

const MOST = 60;

/** What is alive at the worst moment, as bars. */
export function peakList(
  document: MemoryDocument,
  rows: ArrayLike<number>,
  moment: number,
  selected: ReadonlySet<number>,
  pick: (row: number, extend: boolean) => void,
): HTMLElement {
  const alive = aliveAt(document, rows, moment);
  const most = alive.length ? document.bytes[alive[0]!]! : 1;
  const items = alive.slice(0, MOST).map((row) =>
    h(
      "li",
      {},
      h(
        "button.wb-memory-bar",
        {
          type: "button",
          "aria-pressed": String(selected.has(row)),
          title: document.name.get(row),
          onclick: (event: MouseEvent) =>
            pick(row, event.shiftKey || event.ctrlKey || event.metaKey),
        },
        h("span.wb-memory-bar-fill", {
          style: `width:${Math.max(1, (100 * document.bytes[row]!) / most)}%;background:${kindLook(document.kind[row]!).color}`,
        }),
        h("span.wb-memory-bar-name", {}, document.name.get(row)),
        h("span.wb-memory-bar-size", {}, bytes(document.bytes[row]!)),
      ),
    ),
  );
  const rest = alive.slice(MOST);
  const more = rest.reduce((sum, row) => sum + document.bytes[row]!, 0);
  return h(
    "section.wb-memory-section",
    { "aria-label": "Alive at the peak" },
    h("h4", {}, `Alive at the peak: ${count(alive.length)}`),
    h("ol.wb-memory-bars", {}, ...items),
    rest.length
      ? h("p.wb-muted", {}, `and ${count(rest.length)} smaller ones, ${bytes(more)}`)
      : null,
  );
}
