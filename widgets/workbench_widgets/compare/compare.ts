// Lowerings or runs side by side: totals, a table of rows, a scatter of times, the graphs.
import type { CompareDocument, Picked } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { copyText, saveFile } from "../common/clipboard.ts";
import { h } from "../common/dom.ts";
import { clearError, showError } from "../common/errors.ts";
import { matches } from "../common/host.ts";
import { put } from "../common/press.ts";
import { HandleIndex } from "../common/selection.ts";
import { makeSplit, type Mode, type Split } from "../common/split.ts";
import { Table } from "../common/table.ts";
import { button, group, select, setOptions, spacer, toggle } from "../common/toolbar.ts";
import { makeGraphs, type GraphMount, type Graphs } from "./graphs.ts";
import { csv, kindOf, kinds, metrics, nodesOf, others, python, type Metric } from "./model.ts";
import { columns } from "./rows.ts";
import { makeScatter, type Scatter } from "./scatter.ts";
import { totals } from "./totals.ts";

const NARROW = 900;
const REPEAT = 10;
type Picture = "none" | "scatter" | "graphs";

export class Compare {
  private readonly host: Host;
  private readonly el: HTMLElement;
  private readonly split: Split;
  private readonly totals: HTMLElement;
  private readonly chips: HTMLElement;
  private readonly picture: HTMLElement;
  private readonly metricSelect: HTMLSelectElement;
  private readonly otherSelect: HTMLSelectElement;
  private readonly otherGroup: HTMLElement;
  private readonly peer: HTMLButtonElement;
  private readonly pictures: Map<Picture, HTMLButtonElement>;
  private readonly scatter: Scatter;
  private readonly graphs: Graphs;
  private readonly ends: (() => void)[] = [];
  private doc: CompareDocument;
  private index: HandleIndex;
  private metric: Metric;
  private other: number;
  private shown: Picture;
  private readonly off = new Set<string>();
  private rows: number[] = [];
  private places = new Map<number, number>();
  private readonly table: Table;
  private local: number[] = [];
  private closed = false;
  private turn = 0;

  constructor(host: Host, parent: HTMLElement, doc: CompareDocument, graph: GraphMount) {
    this.host = host;
    this.doc = doc;
    this.index = new HandleIndex(doc.handle_start, doc.handles);
    this.metric = metrics(doc)[0]!;
    this.other = others(doc)[0]!;
    this.shown = this.metric === "ms" ? "scatter" : "graphs";
    this.split = makeSplit("Border between the table and the picture", 0.58);
    this.totals = h("div.wb-totals-box");
    this.chips = h("span.wb-toolbar-group", { role: "group", "aria-label": "Rows that are shown" });
    this.picture = h("div.wb-compare-picture");
    this.metricSelect = select("What is compared", [], "", (value) => {
      this.metric = value as Metric;
      this.fill();
    });
    this.otherSelect = select("The side in the picture", [], "", (value) => {
      this.other = Number(value);
      this.draw();
    });
    this.otherGroup = group("Against", this.otherSelect);
    this.peer = button(
      "+ ExecuTorch",
      "Run the first side's program in ExecuTorch's own runtime, too",
      () => void this.addPeer(),
    );
    this.pictures = new Map(
      (
        [
          ["scatter", "Scatter", "Each row as a point"],
          ["graphs", "Graphs", "The graphs next to each other"],
          ["none", "Table only", "No picture"],
        ] as const
      ).map(([name, text, title]) => [name, button(text, title, () => this.setPicture(name))]),
    );
    this.scatter = makeScatter((row, extend) => this.pick(row, extend));
    this.graphs = makeGraphs(host, graph);
    this.table = new Table({
      label: "Rows of the comparison",
      columns: [],
      rows: 0,
      onPick: (place, extend) => this.pick(this.rows[place]!, extend),
    });
    this.el = this.build();
    parent.append(this.el);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.el);
    this.ends.push(
      () => observer.disconnect(),
      host.selection.subscribe((picked) => this.mark(picked)),
      host.onChange((kinds) => {
        if (matches(kinds, "compare")) void this.load(this.doc.reference);
      }),
    );
    this.resize();
    this.fill();
  }

  destroy(): void {
    this.closed = true;
    for (const end of this.ends) end();
    this.table.destroy();
    this.scatter.destroy();
    this.graphs.destroy();
    this.split.destroy();
    this.el.remove();
  }

  private build(): HTMLElement {
    this.split.first.append(this.table.el);
    this.split.second.append(this.picture);
    const copy = button("Copy Python", "Copy the call that makes this comparison", () => {
      void copyText(python(this.doc)).then((done) => {
        copy.textContent = done ? "Copied" : "Not copied";
        setTimeout(() => (copy.textContent = "Copy Python"), 1500);
      });
    });
    return h(
      "div.wb-frame.wb-compare",
      {},
      h(
        "div.wb-toolbar",
        { role: "toolbar", "aria-label": "Comparison" },
        group("Compare", this.metricSelect),
        this.chips,
        spacer(),
        h("span.wb-modes", { role: "group", "aria-label": "Picture" }, ...this.pictures.values()),
        this.otherGroup,
        this.peer,
        copy,
        button("CSV", "Save the shown rows as CSV", () => {
          const rows = this.table.shown().map((place) => this.rows[place]!);
          saveFile("comparison.csv", csv(this.doc, rows), "text/csv");
        }),
      ),
      this.totals,
      h("div.wb-body", {}, this.split.el),
    );
  }

  private async load(reference: number): Promise<void> {
    const mine = ++this.turn;
    try {
      const doc = await this.host.document("compare", String(reference));
      if (this.closed || mine !== this.turn) return;
      clearError(this.el);
      this.doc = doc;
      this.index = new HandleIndex(doc.handle_start, doc.handles);
      if (this.other === doc.reference || this.other >= doc.sides.length)
        this.other = others(doc)[0]!;
      if (!metrics(doc).includes(this.metric)) this.metric = "bytes";
      this.fill();
    } catch (error) {
      if (this.closed || mine !== this.turn) return;
      showError(this.el, error);
      this.fill(); // the side that was the reference still is
    }
  }

  /** Everything, from the document. */
  private fill(): void {
    const { doc } = this;
    this.peer.hidden = !this.host.live || !doc.can_add_peer;
    const sides = doc.sides.map((side, number) => ({ value: String(number), text: side.name }));
    setOptions(
      this.otherSelect,
      sides.filter((side) => Number(side.value) !== doc.reference),
      String(this.other),
    );
    const titles = { ms: "time", bytes: "bytes written" } as const;
    setOptions(
      this.metricSelect,
      metrics(doc).map((name) => ({ value: name, text: titles[name] })),
      this.metric,
    );
    const focused = this.totals.contains(document.activeElement);
    put(this.totals, totals(doc, (side) => void this.load(side)));
    if (focused)
      this.totals.querySelector<HTMLElement>("input:checked")?.focus({ preventScroll: true });
    put(
      this.chips,
      ...kinds(doc).map((kind) =>
        toggle(
          `${kind.title} ${kind.rows}`,
          `Show rows: ${kind.title.toLowerCase()}`,
          !this.off.has(kind.name),
          (on) => {
            if (on) this.off.delete(kind.name);
            else this.off.add(kind.name);
            this.filter();
          },
        ),
      ),
    );
    this.filter();
  }

  private filter(): void {
    const { doc } = this;
    this.rows = Array.from(doc.status.keys()).filter((row) => !this.off.has(kindOf(doc, row)));
    this.places = new Map(this.rows.map((row, place) => [row, place]));
    this.table.update({ columns: columns(doc, this.metric, this.rows), rows: this.rows.length });
    this.draw();
    this.mark(this.host.selection.get());
  }

  private draw(): void {
    for (const [name, made] of this.pictures)
      made.setAttribute("aria-pressed", String(name === this.shown));
    this.otherGroup.hidden = this.shown === "none" || this.doc.sides.length < 3;
    const mode: Mode = this.shown === "none" ? "first" : "both";
    this.split.setMode(mode);
    const wanted =
      this.shown === "scatter" ? this.scatter.el : this.shown === "graphs" ? this.graphs.el : null;
    if (wanted && this.picture.firstElementChild !== wanted) this.picture.replaceChildren(wanted);
    if (this.shown === "scatter") this.scatter.update(this.doc, this.other, this.metric, this.rows);
    if (this.shown === "graphs") this.graphs.show(this.doc, this.other);
  }

  private setPicture(picture: Picture): void {
    this.shown = picture;
    this.draw();
  }

  private resize(): void {
    const narrow = this.el.clientWidth > 0 && this.el.clientWidth < NARROW;
    this.el.classList.toggle("wb-narrow", narrow);
    this.split.setStacked(narrow);
    this.graphs.setStacked(narrow);
  }

  // ---- selection -------------------------------------------------------------------------------------------

  private pick(row: number, extend: boolean): void {
    const handles = this.index.handles(row);
    if (!handles.length) {
      // Only another capture has it: there is nothing that the other views could light.
      this.local = [row];
      this.show([row]);
      return;
    }
    const before = this.host.selection.get();
    const nodes = nodesOf(this.doc, row);
    this.host.selection.set({
      method: this.doc.method,
      handles: extend ? [...before.handles, ...handles] : handles,
      node: extend || nodes.includes(",") ? null : nodes,
    });
  }

  private mark(picked: Picked): void {
    if (picked.handles.length) this.local = [];
    const known = picked.method === this.doc.method ? this.index.find(picked.handles) : [];
    this.show(known.length ? known : this.local);
  }

  private show(rows: readonly number[]): void {
    const places = rows.map((row) => this.places.get(row)).filter((place) => place !== undefined);
    this.table.select(places);
    this.scatter.select(rows);
  }

  private async addPeer(): Promise<void> {
    this.peer.disabled = true;
    this.peer.textContent = "Running…";
    try {
      // Python says that the comparison changed; the view loads it then.
      await this.host.call("compare.peer", { repeat: REPEAT });
      clearError(this.el);
    } catch (error) {
      if (!this.closed) showError(this.el, error);
    } finally {
      this.peer.disabled = false;
      this.peer.textContent = "+ ExecuTorch";
    }
  }
}
