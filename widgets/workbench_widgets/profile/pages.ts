// The three pages of the view (table, timeline, roofline), their tools, and what can be saved.
import type { ExportRequest } from "../contract.ts";
import { h } from "../common/dom.ts";
import { ms } from "../common/format.ts";
import type { Host } from "../common/host.ts";
import { Table } from "../common/table.ts";
import { button, select, setOptions, toggle } from "../common/toolbar.ts";
import type { Tooltip } from "../common/tooltip.ts";
import type { ColumnSet } from "./columns.ts";
import { download } from "./download.ts";
import type { Grouping } from "./groups.ts";
import type { ProfileModel } from "./model.ts";
import { Roofline } from "./roofline.ts";
import { RowsTable } from "./rows.ts";
import { Timeline } from "./timeline.ts";

type Page = "table" | "timeline" | "roofline";

const TITLES: Readonly<Record<Page, string>> = {
  table: "Table",
  timeline: "Timeline",
  roofline: "Roofline",
};
const CHOSEN = ["median", "slowest", "fastest"];

export interface PagesOptions {
  readonly tooltip: Tooltip;
  onPick(rows: readonly number[], extend: boolean): void;
  /** The timeline shows this execution. */
  onExecution(execution: number): void;
  onError(error: unknown): void;
}

export class Pages {
  readonly el = h("div.wb-profile-page");
  readonly tabs = h("span.wb-toolbar-group", { role: "tablist", "aria-label": "Pages" });
  readonly exports: HTMLElement;
  private readonly host: Host;
  private readonly options: PagesOptions;
  private readonly rows: RowsTable;
  private readonly timeline: Timeline;
  private readonly roofline: Roofline;
  private readonly parts: Readonly<Record<Page, HTMLElement>>;
  private readonly execution: HTMLSelectElement;
  private readonly info = h("span.wb-muted");
  private readonly columns: HTMLSelectElement;
  private readonly spans = h("div.wb-profile-page", { hidden: true });
  private readonly canvas = h("div.wb-profile-page");
  private spansTable: Table | null = null;
  private which = "median";
  private page: Page = "table";
  private model: ProfileModel;
  private method: string;
  private shown = ""; // which timeline is drawn
  private turn = 0;
  private picked: readonly number[] = [];

  constructor(host: Host, model: ProfileModel, method: string, options: PagesOptions) {
    this.host = host;
    this.model = model;
    this.method = method;
    this.options = options;
    this.rows = new RowsTable(model, options);
    this.timeline = new Timeline(options);
    this.roofline = new Roofline(model, options);
    const groups = select(
      "Group rows by",
      [
        { value: "none", text: "no groups" },
        { value: "module", text: "by module" },
        { value: "operator", text: "by operator" },
        { value: "backend", text: "by backend" },
      ],
      "none",
      (value) => {
        this.rows.setGrouping(value as Grouping);
        folds.hidden = value === "none";
      },
    );
    const folds = h(
      "span.wb-toolbar-group",
      { hidden: true },
      button("⊞", "Open all groups", () => this.rows.openAll(true)),
      button("⊟", "Close all groups", () => this.rows.openAll(false)),
    );
    this.columns = select(
      "Columns",
      [
        { value: "times", text: "times" },
        { value: "work", text: "work and limits" },
        { value: "values", text: "values against eager" },
        { value: "all", text: "all columns" },
      ],
      "times",
      (value) => {
        this.rows.setColumns(value as ColumnSet);
        if (value === "work" || value === "all") void this.measurePeaks();
      },
    );
    this.rows.addTools(groups, folds, this.columns);
    this.execution = select(
      "Execution",
      CHOSEN.map((value) => ({ value, text: value })),
      "median",
      (value) => {
        this.which = value;
        void this.loadTimeline();
      },
    );
    const asTable = toggle("Table", "Show the spans as a table", false, (on) => {
      this.spans.hidden = !on;
      this.canvas.hidden = on;
      if (on) this.listSpans();
    });
    this.canvas.append(this.timeline.el);
    this.parts = {
      table: h("div.wb-profile-page", {}, this.rows.el),
      timeline: h(
        "div.wb-profile-page",
        { hidden: true },
        h(
          "div.wb-profile-tools",
          {},
          this.execution,
          button("Fit", "Show the whole execution (0)", () => this.timeline.viewport.fit()),
          asTable,
          this.info,
        ),
        this.canvas,
        this.spans,
      ),
      roofline: h(
        "div.wb-profile-page",
        { hidden: true },
        h(
          "div.wb-profile-tools",
          {},
          button("Table", "Show the same numbers as a table", () => this.workTable()),
          host.live
            ? button(
                "Measure again",
                "Measure the machine's limits again",
                () => void this.measurePeaks(true),
              )
            : null,
        ),
        this.roofline.el,
      ),
    };
    this.el.append(...Object.values(this.parts));
    for (const page of Object.keys(TITLES) as Page[]) {
      this.tabs.append(
        h(
          "button.wb-button",
          {
            type: "button",
            role: "tab",
            "aria-selected": String(page === this.page),
            tabindex: page === this.page ? 0 : -1,
            onclick: () => this.open(page),
            onkeydown: (event: KeyboardEvent) => this.tabKey(event),
          },
          TITLES[page],
        ),
      );
    }
    this.exports = this.exportMenu();
  }

  setModel(model: ProfileModel, method: string): void {
    const other = method !== this.method || model.document.run !== this.model.document.run;
    this.model = model;
    this.method = method;
    if (other) {
      this.shown = "";
      this.which = "median";
    }
    this.rows.setModel(model);
    this.roofline.update(model);
    this.chooseExecution();
    if (this.page === "timeline") void this.loadTimeline();
    if (this.page === "roofline") void this.measurePeaks();
  }

  /** The run went on. */
  refresh(sort: boolean): void {
    this.rows.refresh(sort);
    if (this.page === "roofline") this.roofline.update(this.model);
  }

  /** Executions that can be shown have changed. */
  stale(): void {
    this.shown = "";
    if (this.page === "timeline") void this.loadTimeline();
  }

  select(rows: readonly number[], reveal: boolean): void {
    this.picked = rows;
    this.rows.select(rows, reveal);
    this.timeline.select(rows, reveal);
    this.roofline.select(rows);
    this.spansTable?.select(this.spanRows(rows), reveal);
  }

  showExecution(execution: number): void {
    this.which = String(execution);
    this.chooseExecution();
    this.open("timeline");
  }

  destroy(): void {
    this.turn = -1;
    this.rows.destroy();
    this.timeline.destroy();
    this.roofline.destroy();
    this.spansTable?.destroy();
    this.el.remove();
  }

  private open(page: Page): void {
    this.page = page;
    for (const [name, part] of Object.entries(this.parts)) part.hidden = name !== page;
    [...this.tabs.children].forEach((tab, at) => {
      const chosen = Object.keys(TITLES)[at] === page;
      tab.setAttribute("aria-selected", String(chosen));
      (tab as HTMLElement).tabIndex = chosen ? 0 : -1;
    });
    this.options.tooltip.hide();
    if (page === "timeline") void this.loadTimeline();
    if (page === "roofline") {
      this.roofline.update(this.model);
      void this.measurePeaks();
    }
  }

  private tabKey(event: KeyboardEvent): void {
    const tabs = [...this.tabs.children] as HTMLElement[];
    const at = tabs.indexOf(event.target as HTMLElement);
    const move = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!move) return;
    const next = tabs[(at + move + tabs.length) % tabs.length]!;
    next.focus();
    next.click();
    event.preventDefault();
    event.stopPropagation();
  }

  private workTable(): void {
    this.columns.value = "work";
    this.rows.setColumns("work");
    this.open("table");
  }

  private async measurePeaks(again = false): Promise<void> {
    if (!this.host.live || (this.model.peaks && !again)) return;
    const { model } = this;
    try {
      model.peaks = await this.host.call("profile.peaks", { again });
    } catch (error) {
      this.options.onError(error);
      return;
    }
    this.model.peaks ??= model.peaks;
    this.roofline.update(this.model);
    this.rows.refresh(true);
  }

  // ---- timeline --------------------------------------------------------------------------------------------

  private chooseExecution(): void {
    const options = CHOSEN.map((value) => ({ value, text: `${value} execution` }));
    if (!CHOSEN.includes(this.which))
      options.push({ value: this.which, text: `execution ${this.which}` });
    setOptions(this.execution, options, this.which);
  }

  private async loadTimeline(): Promise<void> {
    const key = `${this.method}/${this.which}`;
    if (!this.model.measured || this.model.document.state === "running") {
      this.info.textContent = this.model.measured
        ? "Executions can be looked at when the run is over."
        : "Nothing was measured yet.";
      return;
    }
    if (this.shown === key) return;
    const turn = ++this.turn;
    if (!this.host.live && !this.host.has("timeline", key)) {
      this.info.textContent =
        "A report holds the median, the slowest and the fastest execution only.";
      return;
    }
    try {
      const timeline = await this.host.document("timeline", key);
      if (turn !== this.turn) return;
      this.shown = key;
      this.timeline.show(timeline, this.model.document);
      this.timeline.select(this.picked, false);
      this.info.textContent = `execution ${timeline.execution.toLocaleString("en-US")}, ${ms(timeline.duration)}`;
      this.options.onExecution(timeline.execution);
      if (!this.spans.hidden) this.listSpans();
    } catch (error) {
      if (turn === this.turn) this.options.onError(error);
    }
  }

  private listSpans(): void {
    const spans = this.timeline.spans();
    const options = {
      label: "Spans of the execution",
      rows: spans.length,
      columns: [
        { name: "kind", title: "Kind", text: (at: number) => spans[at]!.kind },
        { name: "name", title: "Name", text: (at: number) => spans[at]!.label },
        {
          name: "start",
          title: "Start",
          numeric: true,
          text: (at: number) => ms(spans[at]!.start),
          value: (at: number) => spans[at]!.start,
        },
        {
          name: "length",
          title: "Time",
          numeric: true,
          text: (at: number) => ms(spans[at]!.end - spans[at]!.start),
          value: (at: number) => spans[at]!.end - spans[at]!.start,
        },
      ],
      onPick: (at: number, extend: boolean) => this.options.onPick(spans[at]!.rows, extend),
    };
    if (this.spansTable) {
      this.spansTable.update(options);
    } else {
      this.spansTable = new Table(options);
      this.spans.append(this.spansTable.el);
    }
    this.spansTable.select(this.spanRows(this.picked), false);
  }

  private spanRows(rows: readonly number[]): number[] {
    const wanted = new Set(rows);
    const found: number[] = [];
    this.timeline.spans().forEach((span, at) => {
      if (span.rows.length === 1 && wanted.has(span.rows[0]!)) found.push(at);
    });
    return found;
  }

  // ---- files -----------------------------------------------------------------------------------------------

  private exportMenu(): HTMLElement {
    const menu = h("select.wb-select.wb-profile-save", {
      "aria-label": "Save",
      title: "Save what was measured",
    });
    const options = [
      { value: "", text: "Save…" },
      { value: "csv", text: "CSV of the rows shown" },
    ];
    if (this.host.live) {
      options.push(
        { value: "perfetto", text: "Timeline for Perfetto (JSON)" },
        { value: "etdump", text: "ETDump" },
      );
    }
    setOptions(menu, options, "");
    menu.addEventListener("change", () => {
      const { value } = menu;
      menu.value = "";
      if (value === "csv") {
        download({
          name: `${this.method}.csv`,
          mime: "text/csv",
          text: this.rows.csv(),
          base64: "",
        });
      } else if (value) {
        void this.save(value as ExportRequest["format"]);
      }
    });
    return menu;
  }

  private async save(format: ExportRequest["format"]): Promise<void> {
    try {
      download(await this.host.call("profile.export", { method: this.method, format }));
    } catch (error) {
      this.options.onError(error);
    }
  }
}
