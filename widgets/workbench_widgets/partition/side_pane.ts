// The pane beside the graph: what edits, and below it lists behind tabs.
import { h, unique } from "../common/dom.ts";
import type { PartitionEditor } from "./editor.ts";
import { EditPane } from "./edit_pane.ts";
import { askedList, historyList, leftList, resultList, tagList, type List, type ListEvents } from "./lists.ts";

type TabName = "partitions" | "left" | "history" | "asked" | "result";
const TITLES: Readonly<Record<TabName, string>> = {
  partitions: "Partitions",
  left: "Left behind",
  history: "History",
  asked: "Requested",
  result: "Result",
};

export class SidePane {
  readonly el: HTMLElement;
  private readonly editor: PartitionEditor;
  private readonly edit: EditPane;
  private readonly lists: ReadonlyMap<TabName, List>;
  private readonly tabs = new Map<TabName, HTMLButtonElement>();
  private readonly panel = h("div.wb-partition-panel", { role: "tabpanel", id: unique("panel") });
  private chosen: TabName = "partitions";

  constructor(editor: PartitionEditor, events: ListEvents) {
    this.editor = editor;
    this.edit = new EditPane(editor, events.reveal);
    this.lists = new Map<TabName, List>([
      ["partitions", tagList(editor, events)],
      ["left", leftList(editor, events)],
      ["history", historyList(editor, events)],
      ["asked", askedList(editor, events)],
      ["result", resultList(editor)],
    ]);
    for (const name of this.lists.keys()) {
      const tab = h("button.wb-partition-tab", {
        type: "button", role: "tab", id: unique("tab"), "aria-controls": this.panel.id, "data-tab": name,
        onclick: () => this.open(name),
        onkeydown: (event: KeyboardEvent) => this.step(event, name),
      });
      this.tabs.set(name, tab);
    }
    const bar = h("div.wb-partition-tabs", { role: "tablist", "aria-label": "Lists" }, ...this.tabs.values());
    this.el = h("div.wb-partition-side", {}, this.edit.el, bar, this.panel);
    this.open("partitions");
  }

  open(name: TabName): void {
    this.chosen = name;
    this.panel.replaceChildren(this.lists.get(name)!.el);
    this.titles();
    this.lists.get(name)!.update();
  }

  private step(event: KeyboardEvent, name: TabName): void {
    const names = [...this.tabs.keys()];
    const at = names.indexOf(name);
    const next = event.key === "ArrowRight" ? at + 1 : event.key === "ArrowLeft" ? at - 1 : NaN;
    const target = names[(next + names.length) % names.length];
    if (target === undefined) return;
    this.open(target);
    this.tabs.get(target)!.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  private titles(): void {
    for (const [name, tab] of this.tabs) {
      const badge = this.lists.get(name)!.badge();
      tab.replaceChildren(TITLES[name], badge ? h("span.wb-partition-count", {}, badge) : "");
      tab.setAttribute("aria-selected", String(name === this.chosen));
      tab.tabIndex = name === this.chosen ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", this.tabs.get(this.chosen)!.id);
  }

  updateEdit(): void {
    this.edit.update();
  }

  updateLists(): void {
    // What can't be lowered here has no result to show.
    this.tabs.get("result")!.hidden = !this.editor.editable && !this.editor.outcome;
    this.titles();
    this.lists.get(this.chosen)!.update();
  }

  destroy(): void {
    for (const list of this.lists.values()) list.destroy();
    this.el.remove();
  }
}
