// What the boxes are coloured by, with its legend.
import type { OverlayColumn } from "../contract.ts";
import type { Option } from "../common/toolbar.ts";
import type { GraphCore } from "./core.ts";
import { Legend } from "./legend.ts";
import { Overlay, TagFill } from "./overlay.ts";

export class Colors {
  /** The numbers that boxes are coloured by, or null. */
  overlay: Overlay | null = null;
  readonly legend: Legend;
  private readonly core: GraphCore;
  private columns: readonly OverlayColumn[] = [];
  private by: string;
  private log = false;
  private tags: TagFill | null = null;

  constructor(core: GraphCore, by: string) {
    this.core = core;
    this.by = by;
    this.legend = new Legend((log) => {
      this.log = log;
      this.apply();
    });
  }

  /** What there is to choose from. */
  options(): Option[] {
    const tagged = this.core.model?.document.tag.values.some((tag) => tag) ?? false;
    return [
      { value: "kind", text: "Kind of work" },
      ...(tagged ? [{ value: "tag", text: "Partition" }] : []),
      ...this.columns.map(({ name, title }) => ({ value: name, text: title })),
    ];
  }

  get chosen(): string {
    return this.options().some(({ value }) => value === this.by) ? this.by : "kind";
  }

  setColumns(columns: readonly OverlayColumn[]): void {
    this.columns = columns;
    this.refresh();
  }

  choose(by: string): void {
    this.by = by;
    this.refresh();
  }

  /** After another graph, other columns, or another choice. */
  refresh(): void {
    const { model } = this.core;
    if (!model) return;
    const by = this.chosen;
    const column = this.columns.find(({ name }) => name === by);
    // Columns of the graph before this one say nothing of it.
    const fits = column && column.values.length === model.nodes;
    this.overlay = fits ? new Overlay(model, column) : null;
    this.tags = by === "tag" ? new TagFill(model) : null;
    this.apply();
  }

  /** After modules were opened or closed: the scale is that of what is visible. */
  apply(): void {
    const { core, overlay, tags } = this;
    const { picture } = core;
    if (!picture) return;
    if (overlay) {
      overlay.fit(picture, this.log);
      core.fill = (box) => overlay.fill(box);
      this.legend.showOverlay(overlay);
    } else if (tags) {
      core.fill = (box) => tags.fill(box);
      this.legend.showTags(tags);
    } else {
      core.fill = null;
      this.legend.showKinds(picture, core.categories);
    }
    core.redraw();
  }
}
