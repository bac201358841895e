// The lists of the side pane: partitions, what was left behind, history, requested beside applied, the result.
import type { PartitionState } from "../contract.ts";
import { copyText } from "../common/clipboard.ts";
import { h } from "../common/dom.ts";
import { bytes, count } from "../common/format.ts";
import { hatchCss, swatch } from "../common/palette.ts";
import { put } from "../common/press.ts";
import { Table } from "../common/table.ts";
import { NONE, type PartitionEditor } from "./editor.ts";
import { difference, measured, withoutPath } from "./words.ts";

export interface List {
  readonly el: HTMLElement;
  /** What stands in the tab behind the title. */
  badge(): string;
  update(): void;
  destroy(): void;
}

export interface ListEvents {
  reveal(rows: readonly number[]): void;
  say(text: string): void;
}

/** The colour and hatch of a tag, as in the graph. */
export function swatchOf(color: number): HTMLElement {
  const look = swatch(color);
  return h("span.wb-swatch", {
    "aria-hidden": true,
    style: `background:${hatchCss(look.hatch, "rgb(255 255 255 / 75%)")}${look.hatch === "dots" ? `, ${look.color}` : ""};` +
      (look.hatch === "dots" ? "" : `background-color:${look.color};`) + `border-color:${look.color}`,
  });
}

export function tagList(editor: PartitionEditor, events: ListEvents): List {
  const tag = (row: number) => editor.state!.tags[row]!;
  const table = new Table({
    label: "Partitions",
    rows: 0,
    filter: false,
    columns: [
      {
        name: "name", title: "Partition", text: (row) => tag(row).name,
        cell: (row) => h("span", {}, swatchOf(tag(row).color), tag(row).name),
        hint: (row) => `${tag(row).name}\nbackend ${tag(row).backend}${tag(row).settings ? `, ${tag(row).settings}` : ""}`,
      },
      { name: "nodes", title: "Nodes", numeric: true, text: (row) => count(tag(row).nodes), value: (row) => tag(row).nodes },
      { name: "in", title: "In", numeric: true, text: (row) => bytes(tag(row).input_bytes), value: (row) => tag(row).input_bytes,
        hint: (row) => `${tag(row).inputs} values passed in` },
      { name: "out", title: "Out", numeric: true, text: (row) => bytes(tag(row).output_bytes), value: (row) => tag(row).output_bytes,
        hint: (row) => `${tag(row).outputs} values passed out` },
      { name: "constants", title: "Const", numeric: true, text: (row) => bytes(tag(row).constant_bytes), value: (row) => tag(row).constant_bytes },
      { name: "backend", title: "Backend", text: (row) => tag(row).backend },
    ],
    onPick: (row, extend) => {
      const rows = editor.rowsOf(tag(row).name);
      editor.mark(rows, extend);
      if (!extend) editor.setTarget({ tag: tag(row).name, backend: null });
    },
    onOpen: (row) => events.reveal(editor.rowsOf(tag(row).name)),
  });
  const none = h("p.wb-muted.wb-partition-none", {},
    "No partitions. Choose nodes and assign them to a new one, or give the recipe a partitioner.");
  return {
    el: h("div.wb-partition-list", {}, none, table.el),
    badge: () => String(editor.state?.tags.length ?? 0),
    update: () => {
      none.hidden = (editor.state?.tags.length ?? 0) > 0;
      table.el.hidden = !none.hidden;
      const chosen = new Set(editor.markedTags());
      table.update({ rows: editor.state?.tags.length ?? 0 });
      const rows = (editor.state?.tags ?? []).flatMap((known, row) => (chosen.has(known.name) ? [row] : []));
      table.select(rows, false);
    },
    destroy: () => table.destroy(),
  };
}

/** What was left behind, by reason; the most frequent first. */
export function leftGroups(editor: PartitionEditor): { by: string; reason: string; eligibleIf: string; rows: number[] }[] {
  const groups = new Map<string, { by: string; reason: string; eligibleIf: string; rows: number[] }>();
  for (const [row, reasons] of editor.reasons) {
    for (const { by, text, eligibleIf } of reasons) {
      const key = `${by}\n${text}`;
      const known = groups.get(key);
      if (known) known.rows.push(row);
      else groups.set(key, { by: by === "edit" ? "you" : by, reason: text, eligibleIf, rows: [row] });
    }
  }
  return [...groups.values()].sort((a, b) => b.rows.length - a.rows.length);
}

export function leftList(editor: PartitionEditor, events: ListEvents): List {
  let groups: ReturnType<typeof leftGroups> = [];
  const table = new Table({
    label: "Left to the runtime, by reason",
    rows: 0,
    columns: [
      { name: "count", title: "Nodes", numeric: true, text: (row) => count(groups[row]!.rows.length), value: (row) => groups[row]!.rows.length },
      { name: "reason", title: "Why", text: (row) => groups[row]!.reason },
      { name: "form", title: "Eligible if", text: (row) => groups[row]!.eligibleIf },
      { name: "by", title: "By", text: (row) => groups[row]!.by },
    ],
    onPick: (row, extend) => editor.mark(groups[row]!.rows, extend),
    onOpen: (row) => events.reveal(groups[row]!.rows),
  });
  return {
    el: table.el,
    badge: () => count(editor.reasons.size),
    update: () => {
      groups = leftGroups(editor);
      table.update({ rows: groups.length });
    },
    destroy: () => table.destroy(),
  };
}

const STATES: Readonly<Record<PartitionState["history"][number]["state"], readonly [string, string]>> = {
  lowered: ["✓", "in the recipe, lowered"],
  pending: ["●", "made, not lowered yet"],
  refused: ["✗", "refused"],
  undone: ["↶", "undone"],
};

export function historyList(editor: PartitionEditor, events: ListEvents): List {
  const el = h("div.wb-partition-history");
  const copy = (what: "python" | "json", name: string) => {
    void copyText(editor.state?.[what] ?? "").then((copied) =>
      events.say(copied ? `${name} copied` : "The browser refused to copy; select the text below"),
    );
  };
  const code = h("pre.wb-partition-code.wb-mono", { tabindex: 0, "aria-label": "The edits as Python" });
  return {
    el,
    badge: () => String(editor.state?.history.length ?? 0),
    update: () => {
      const { state } = editor;
      if (!state) return;
      const editable = editor.editable;
      const entries = state.history.map((step) => {
        const [sign, meaning] = STATES[step.state];
        return h("li", { "data-state": step.state },
          h("span.wb-partition-sign", { title: meaning, role: "img", "aria-label": meaning }, sign),
          h("button.wb-link", { type: "button", title: "Select its nodes", onclick: () => editor.mark(step.rows) }, step.text),
          step.reason ? h("div.wb-partition-why", {}, withoutPath(step.reason)) : null,
          step.changed ? h("span.wb-muted", {}, ` ${count(step.changed)} changed`) : null,
          editable && step.index !== NONE
            ? h("button.wb-button.wb-small", { type: "button", "aria-label": `Remove: ${step.text}`, title: "Remove this edit; those after it are made again",
                onclick: () => void editor.move("remove", step.index).then(events.say) }, "×")
            : null,
        );
      });
      const bar = h("div.wb-partition-bar", {},
        ...(editable
          ? [
              action("Discard", "Take back what is not lowered", state.waiting > 0, () => void editor.move("discard").then(events.say)),
              action("Clear", "Take back all edits by hand", state.history.some((step) => step.index !== NONE), () => void editor.move("clear").then(events.say)),
            ]
          : []),
        action("Copy as Python", "Statements that make these edits on `lowering`", true, () => copy("python", "Python")),
        action("Copy JSON", "The recipe with these edits", true, () => copy("json", "JSON")),
      );
      code.textContent = state.python;
      put(
        el,
        bar,
        entries.length ? h("ol", {}, ...entries) : h("p.wb-muted", {}, "No edits by hand yet."),
        ...(state.python ? [code] : []),
      );
    },
    destroy: () => el.remove(),
  };
}

function action(text: string, title: string, enabled: boolean, run: () => void): HTMLButtonElement {
  return h("button.wb-button", { type: "button", title, disabled: !enabled, onclick: run }, text);
}

export function askedList(editor: PartitionEditor, events: ListEvents): List {
  const row = (at: number) => editor.state!.asked_row[at]!;
  const applied = (at: number) => editor.tagOf(row(at))?.name ?? "runtime";
  const differs = (at: number) => editor.state!.asked_why.get(at) !== "";
  const table = new Table({
    label: "Requested beside applied",
    rows: 0,
    columns: [
      { name: "node", title: "Node", text: (at) => editor.document?.name.get(row(at)) ?? "" },
      { name: "proposed", title: "Partitioner", text: (at) => editor.document?.proposed.get(row(at)) || "runtime" },
      { name: "asked", title: "Requested", text: (at) => editor.state!.asked_given[at] ? editor.state!.asked_tag.get(at) || "runtime" : "–" },
      { name: "applied", title: "Applied", text: applied, cell: (at) => h("span", { class: differs(at) ? "wb-differs" : null }, `${differs(at) ? "≠ " : ""}${applied(at)}`) },
      { name: "why", title: "Why it differs", text: (at) => editor.state!.asked_why.get(at) },
    ],
    onPick: (at) => editor.mark([row(at)]),
    onOpen: (at) => events.reveal([row(at)]),
  });
  const differing = () => {
    let total = 0;
    const why = editor.state?.asked_why;
    for (let at = 0; at < (why?.length ?? 0); at++) if (why?.get(at)) total++;
    return total;
  };
  return {
    el: table.el,
    badge: () => (differing() ? `${differing()} differ` : String(editor.state?.asked_row.length ?? 0)),
    update: () => table.update({ rows: editor.state?.asked_row.length ?? 0 }),
    destroy: () => table.destroy(),
  };
}

export function resultList(editor: PartitionEditor): List {
  const el = h("div.wb-partition-result");
  return {
    el,
    badge: () => "",
    update: () => {
      const { outcome } = editor;
      if (editor.busy) {
        el.replaceChildren(h("p.wb-busy", { role: "status" }, editor.busy));
        return;
      }
      if (!outcome) {
        el.replaceChildren(h("p.wb-muted", {}, "“Re-lower and run” writes the edits to the recipe, lowers in place, and compares the program before and after with the example inputs."));
        return;
      }
      const rows = outcome.measures.map((measure) => {
        const { text, kind } = difference(measure);
        return h("tr", { title: measure.note || null },
          h("th", { scope: "row" }, measure.name),
          h("td.wb-number", {}, measured(measure, measure.before)),
          h("td.wb-number", {}, measured(measure, measure.after)),
          h("td", { class: `wb-number wb-${kind}` }, text, kind === "same" ? null : h("span.wb-partition-kind", {}, ` ${kind}`)),
        );
      });
      const ran = outcome.ran.length ? `ran: ${outcome.ran.join(", ")}` : "nothing had to run again";
      el.replaceChildren(
        h("table", { "aria-label": "Before and after" },
          h("thead", {}, h("tr", {}, ...["", "Before", "After", "Δ"].map((title) => h("th", { scope: "col" }, title)))),
          h("tbody", {}, ...rows)),
        h("p.wb-muted", {}, `Lowered in ${outcome.seconds.toFixed(2)} s; ${ran}.`),
        ...(outcome.problem ? [h("p.wb-partition-why", {}, outcome.problem)] : []),
        ...outcome.measures.filter((measure) => measure.name === "Time").map((measure) => h("p.wb-muted", {}, `Time: ${measure.note}.`)),
      );
    },
    destroy: () => el.remove(),
  };
}
