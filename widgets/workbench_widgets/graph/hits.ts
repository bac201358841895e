// The hits of a search, one of them the current.
import type { GraphCore } from "./core.ts";
import { search, type Hit } from "./search.ts";

export class Hits {
  private readonly core: GraphCore;
  private readonly report: (text: string, problem: string) => void;
  private readonly chosen: (hit: Hit) => void;
  private hits: readonly Hit[] = [];
  private at = -1;
  private query = "";
  private regex = false;

  constructor(
    core: GraphCore,
    report: (text: string, problem: string) => void,
    chosen: (hit: Hit) => void,
  ) {
    this.core = core;
    this.report = report;
    this.chosen = chosen;
  }

  find(query: string, regex: boolean): void {
    this.query = query;
    this.regex = regex;
    this.at = -1;
    this.again();
  }

  /** The same search in what is shown now. */
  again(): void {
    const { model } = this.core;
    if (!model) return;
    const found = search(model, this.query, this.regex);
    this.hits = found.hits;
    if (this.at >= this.hits.length) this.at = -1;
    this.mark();
    this.tell(found.problem);
  }

  step(direction: 1 | -1): void {
    const { length } = this.hits;
    const { model, core } = this;
    if (!length || !model) return;
    this.at =
      this.at < 0 ? (direction === 1 ? 0 : length - 1) : (this.at + direction + length) % length;
    const hit = this.hits[this.at]!;
    if (hit.kind === "node") core.reveal([hit.index]);
    else core.revealItem(model.itemOfModule(hit.index));
    this.mark();
    this.tell("");
    this.chosen(hit);
  }

  /** Marks the visible boxes that are hits or hold some. */
  mark(): void {
    const { model, core } = this;
    if (!model) return;
    const visible = (hit: Hit) => {
      if (hit.kind === "node") return core.state.visible(model, hit.index);
      const item = model.itemOfModule(hit.index);
      return model.ancestors(item).find((above) => !core.state.isOpen(model, above)) ?? item;
    };
    core.hits = new Set(this.hits.map(visible));
    const current = this.hits[this.at];
    core.hit = current ? visible(current) : -1;
    core.redraw();
  }

  private get model() {
    return this.core.model;
  }

  private tell(problem: string): void {
    const total = this.hits.length;
    const text =
      !this.query.trim() || problem
        ? ""
        : total
          ? `${this.at < 0 ? "–" : this.at + 1} / ${total}`
          : "no hits";
    this.report(text, problem);
  }
}
