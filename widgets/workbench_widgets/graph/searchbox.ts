// The field that searches a graph, and the way from hit to hit.
import { h, unique } from "../common/dom.ts";
import { button, toggle } from "../common/toolbar.ts";

export interface SearchEvents {
  search(query: string, regex: boolean): void;
  step(direction: 1 | -1): void;
}

const FIELDS =
  "Words that all must match; op:, name:, shape:, dtype:, attributes:, source:, module:, type:, kind:, tag: search one field";

export class SearchBox {
  readonly el: HTMLElement;
  /** Why the query can't be read; has its own place, as it may be long. */
  readonly problem: HTMLElement;
  private readonly query: HTMLInputElement;
  private readonly found = h("span.wb-graph-found.wb-muted", { role: "status" });
  private regex = false;

  constructor(events: SearchEvents) {
    const id = unique("problem");
    this.problem = h("span.wb-graph-problem", { id, role: "alert", hidden: true });
    this.query = h("input.wb-input.wb-graph-query", {
      type: "search",
      placeholder: "Search  ( / )",
      "aria-label": "Search nodes and modules",
      "aria-describedby": id,
      title: FIELDS,
      oninput: () => events.search(this.query.value, this.regex),
      onkeydown: (event: KeyboardEvent) => {
        event.stopPropagation();
        if (event.key === "Enter") events.step(event.shiftKey ? -1 : 1);
        else if (event.key === "Escape") this.query.blur();
        else return;
        event.preventDefault();
      },
    });
    const expressions = toggle(".*", "Regular expression", false, (on) => {
      this.regex = on;
      events.search(this.query.value, on);
    });
    this.el = h(
      "span.wb-toolbar-group",
      { role: "search" },
      this.query,
      expressions,
      button("↑", "Previous hit (Shift+Enter)", () => events.step(-1)),
      button("↓", "Next hit (Enter)", () => events.step(1)),
      this.found,
    );
  }

  focus(): void {
    this.query.focus();
  }

  /** "3 / 12", or why the query can't be read. */
  setFound(text: string, problem: string): void {
    this.found.textContent = text;
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    this.query.setAttribute("aria-invalid", String(problem !== ""));
  }
}
