// The part of the side pane that edits: target, what is selected, a button for each action with what it would do,
// and the answer in full.
import { h } from "../common/dom.ts";
import { count } from "../common/format.ts";
import { put } from "../common/press.ts";
import type { StringColumn } from "../common/unpack.ts";
import { setOptions } from "../common/toolbar.ts";
import { ACTIONS, type Action, type PartitionEditor } from "./editor.ts";
import { costChange, verdict, withoutPath } from "./words.ts";

const WORDS: Readonly<Record<Action, { text: string; key: string; title: string }>> = {
  assign: { text: "Assign", key: "a", title: "Assign the selected nodes to the target" },
  erase: { text: "Erase", key: "e", title: "Leave the selected nodes to the runtime" },
  split: { text: "Split", key: "s", title: "Split the selected nodes off into a partition of their own" },
  merge: { text: "Merge", key: "m", title: "Merge the selected partitions, or the selected one with the target" },
};
const NEW = "\u0000";

export class EditPane {
  readonly el: HTMLElement;
  private readonly editor: PartitionEditor;
  private readonly reveal: (rows: readonly number[]) => void;
  private readonly target: HTMLSelectElement;
  private readonly marked = h("div.wb-partition-marked", { role: "status" });
  private readonly controls: readonly HTMLElement[];
  private readonly buttons = new Map<Action, { button: HTMLButtonElement; verdict: HTMLElement }>();
  private readonly answer = h("div.wb-partition-answer", { "aria-live": "polite" });

  constructor(editor: PartitionEditor, reveal: (rows: readonly number[]) => void) {
    this.editor = editor;
    this.reveal = reveal;
    this.target = h("select.wb-select.wb-partition-target", {
      "aria-label": "Target of Assign and Paint",
      title: "Where Assign and Paint put nodes",
      onchange: () => this.choose(),
    });
    const rows = ACTIONS.map((action) => this.row(action));
    this.controls = [
      h("label.wb-partition-line", {}, h("span.wb-label", {}, "Target"), this.target),
      h("div.wb-partition-actions", {}, ...rows),
    ];
    const [line, actions] = this.controls;
    this.el = h("section.wb-partition-edit", { "aria-label": "Edit" }, line, this.marked, actions, this.answer);
  }

  private row(action: Action): HTMLElement {
    const { text, key, title } = WORDS[action];
    const button = h(
      "button.wb-button", {
        type: "button", title: `${title} (${key})`, "data-action": action,
        onclick: () => void this.editor.apply(this.editor.request(action)),
        onpointerenter: () => this.look(action),
        onpointerleave: () => this.unlook(),
        onfocus: () => this.look(action),
        onblur: () => this.unlook(),
      }, text, h("kbd", {}, key),
    );
    const told = h("span.wb-partition-verdict");
    this.buttons.set(action, { button, verdict: told });
    return h("div.wb-partition-action", {}, button, told);
  }

  /** Hovering a button shows in the graph what it would do. */
  private look(action: Action): void {
    const answer = this.editor.answers.get(action);
    if (answer) this.editor.show({ request: this.editor.request(action), answer, kind: "look" });
  }

  private unlook(): void {
    this.editor.unlook();
  }

  private choose(): void {
    const { value } = this.target;
    this.editor.setTarget(
      value.startsWith(NEW) ? { tag: null, backend: value.slice(1) } : { tag: value, backend: null },
    );
  }

  update(): void {
    const { editor } = this;
    const { state } = editor;
    if (!state) return;
    for (const part of this.controls) part.hidden = !editor.editable;
    const options = [
      ...state.tags.map((tag) => ({ value: tag.name, text: `${tag.name} (${count(tag.nodes)})` })),
      ...state.backends.map((backend) => ({
        value: NEW + backend.name,
        text: `New, on ${backend.name}${backend.checked ? "" : " (no partitioner)"}`,
      })),
    ];
    setOptions(this.target, options, editor.target.tag ?? NEW + (editor.target.backend ?? ""));
    this.updateMarked();
    this.updateVerdicts();
    this.updateAnswer();
  }

  private updateMarked(): void {
    const { marked } = this.editor;
    const { document } = this.editor;
    const tags = this.editor.markedTags();
    const without = marked.filter((row) => this.editor.tagOf(row) === null).length;
    const first = marked[0];
    const name = marked.length === 1 && first !== undefined ? document?.name.get(first) : `${count(marked.length)} operators`;
    const where = [
      tags.length > 2 ? `${tags.length} partitions` : tags.join(", "),
      without ? (without === marked.length ? "the runtime" : `${count(without)} with the runtime`) : "",
    ].filter(Boolean).join(", ");
    this.marked.replaceChildren(
      ...(marked.length
        ? [h("strong", {}, name ?? ""), h("span.wb-muted", {}, where ? ` in ${where}` : "")]
        : [h("span.wb-muted", {}, 
            this.editor.editable
              ? "Select nodes in the graph, then choose what to do with them."
              : "Select a node to see who runs it, or why it was left behind.")]),
    );
    const reasons = marked.length === 1 && first !== undefined ? (this.editor.reasons.get(first) ?? []) : [];
    if (reasons.length) this.marked.append(reasonList(reasons));
  }

  private updateVerdicts(): void {
    const { editor } = this;
    for (const [action, { button, verdict: told }] of this.buttons) {
      const answer = editor.answers.get(action);
      const few = action === "merge" && editor.request("merge").tags.length < 2;
      const usable = editor.editable && editor.marked.length > 0 && !editor.busy && !few;
      // A disabled button would lose the focus in the middle of work by keyboard.
      button.setAttribute("aria-disabled", String(!usable || answer?.legal === false));
      told.className = `wb-partition-verdict${answer ? (answer.legal ? " wb-legal" : " wb-illegal") : ""}`;
      told.replaceChildren(
        answer ? `${answer.legal ? "✓" : "✗"} ${verdict(answer)}` : few && editor.marked.length ? "takes two partitions" : "",
      );
      told.title = answer ? (answer.legal ? costChange(answer.cost_before, answer.cost_after) : answer.message) : "";
    }
  }

  private updateAnswer(): void {
    const { shown } = this.editor;
    const look = !shown ? "" : shown.answer.legal ? " wb-legal" : " wb-illegal";
    this.answer.className = `wb-partition-answer${look}`;
    put(this.answer, ...(shown ? this.answered(shown) : []));
  }

  private answered({ answer, kind, request }: NonNullable<PartitionEditor["shown"]>): HTMLElement[] {
    const head = answer.legal ? (kind === "made" ? "Done" : "Would") : (kind === "refused" ? "Refused" : "Not legal");
    const parts: HTMLElement[] = [h("div", {}, h("strong", {}, `${answer.legal ? "✓" : "✗"} ${head}: `), answer.text)];
    if (answer.legal) {
      parts.push(h("div", {}, costChange(answer.cost_before, answer.cost_after)));
      parts.push(...this.followers(answer.changed, answer.why));
      if (answer.unchecked) parts.push(h("div", {}, `⚠ ${answer.unchecked}`));
    } else {
      parts.push(h("div", {}, withoutPath(answer.message)));
      if (answer.path.length) parts.push(h("div.wb-partition-path", {}, ...this.chain(answer.path)));
      if (answer.hint) parts.push(h("div", {}, `What to do: ${answer.hint}`));
      const { suggestion } = answer;
      if (suggestion) {
        parts.push(
          h("button.wb-button", {
            type: "button", title: "Make the nearest legal form of this edit",
            onclick: () => void this.editor.apply({ ...request, rows: suggestion.rows, handles: [], module: null }),
          }, `${request.action[0]!.toUpperCase()}${request.action.slice(1)} ${suggestion.text}`),
        );
      }
    }
    if (answer.missing.length) parts.push(h("div", {}, `Not there: ${answer.missing.join(", ")}`));
    return parts;
  }

  /** What changes without being asked for. */
  private followers(rows: ArrayLike<number>, why: StringColumn): HTMLElement[] {
    const { document } = this.editor;
    const reasons = new Map<string, string[]>();
    for (let at = 0; at < why.length; at++) {
      const reason = why.get(at);
      const name = document?.name.get(rows[at] ?? -1) ?? "";
      if (!reason) continue;
      const known = reasons.get(reason);
      if (known) known.push(name);
      else reasons.set(reason, [name]);
    }
    return [...reasons].slice(0, 4).map(([reason, names]) =>
      h("div.wb-muted", {}, `${names.length > 2 ? `${count(names.length)} more nodes` : names.join(", ")}: ${reason}`),
    );
  }

  private chain(rows: readonly number[]): (Node | string)[] {
    return rows.flatMap((row, at) => {
      const link = h("button.wb-link", { type: "button", onclick: () => this.reveal([row]) },
        this.editor.document?.name.get(row) ?? "");
      return at ? [" → ", link] : [link];
    });
  }
}

export function reasonList(reasons: readonly { by: string; text: string; eligibleIf: string }[]): HTMLElement {
  return h("ul.wb-partition-reasons", {}, ...reasons.map((reason) =>
    h("li", {}, `${reason.by ? `${reason.by}: ` : ""}${reason.text}`,
      reason.eligibleIf ? h("div.wb-muted", {}, `eligible if ${reason.eligibleIf}`) : null),
  ));
}
