// What quantization made of each operator, what its observers saw, and a switch for each layer.
import "../common/theme.css";
import "./view.css";
import type {
  Picked,
  QuantizationAccuracy,
  QuantizationDocument,
  QuantizationMove,
} from "../contract.ts";
import { h, on } from "../common/dom.ts";
import { clearError, showError } from "../common/errors.ts";
import { seconds } from "../common/format.ts";
import { matches, type Host } from "../common/host.ts";
import { widget, type Mounted } from "../common/render.ts";
import { HandleIndex } from "../common/selection.ts";
import { makeSplit, type Split } from "../common/split.ts";
import { Table } from "../common/table.ts";
import { button, group, select, setOptions, spacer, toggle, toolbar } from "../common/toolbar.ts";
import { operatorColumns, ordered, worstFirst } from "./columns.ts";
import { Details } from "./details.ts";
import { Hand } from "./hand.ts";
import { countsOf, decibels, isShown, SHOWN, summary, told, type Shown } from "./model.ts";
import type { Wanted } from "./switch.ts";

const NARROW = 900;

export interface QuantizationOptions {
  readonly stage?: string;
  readonly method?: string;
}

export interface QuantizationHandle extends Mounted {
  setStage(stage: string, method?: string): Promise<void>;
  /** Calls back with the overlay that a graph beside this view should be coloured by. */
  onOverlay(listener: (name: string) => void): () => void;
}

/** The column of the graph's overlays that has each layer's own error. */
const OWN = "quantization_own";

class QuantizationView implements QuantizationHandle {
  private readonly host: Host;
  private readonly frame: HTMLElement;
  private readonly notes = h("div.wb-quant-notes");
  private readonly line = h("span.wb-quant-summary");
  private readonly progress = h("progress", { hidden: true, "aria-label": "Samples measured" });
  private readonly foot = h("div.wb-quant-foot", { role: "status" });
  private readonly split: Split = makeSplit("Table and details", 0.56);
  private readonly details: Details;
  private readonly hand: Hand;
  private readonly methods: HTMLSelectElement;
  private readonly samples: HTMLSelectElement;
  private readonly shown: HTMLSelectElement;
  private readonly measuring: HTMLButtonElement;
  private readonly undo: HTMLButtonElement;
  private readonly redo: HTMLButtonElement;
  private readonly byHand: HTMLButtonElement;
  private readonly ends: (() => void)[] = [];
  private readonly overlays = new Set<(name: string) => void>();
  private method: string;
  private doc: QuantizationDocument | null = null;
  private accuracy: QuantizationAccuracy | null = null;
  private index: HandleIndex | null = null;
  private table: Table | null = null;
  private sorted = "";
  private visible: readonly number[] = [];
  private columns: ReturnType<typeof operatorColumns> = [];
  /** The operator that is described; others may have its handles, too. */
  private row = -1;
  private own = false;
  private busy = "";
  private turn = 0;

  constructor(host: Host, el: HTMLElement, method: string) {
    this.host = host;
    this.method = method;
    this.methods = select("Method", [], method, (name) => void this.load(name));
    this.samples = select("Samples to measure with", [], "4", () => undefined);
    this.measuring = button("Measure accuracy", "Measure the error of each operator against floats", () => void this.measure());
    this.shown = select("Which operators are shown", [], "all", () => this.fill());
    this.undo = button("↶ Undo", "Undo", () => void this.move("undo"));
    this.redo = button("↷ Redo", "Redo", () => void this.move("redo"));
    this.byHand = toggle("By hand", "Decisions by hand, and the Python that makes them", false, (on) => this.showHand(on));
    this.details = new Details({ apply: (wanted) => void this.apply(wanted) });
    this.hand = new Hand({
      move: (what, index) => void this.move(what, index),
      say: (text) => this.say(text),
      reveal: (node, module) => this.reveal(node, module),
    });
    this.hand.el.hidden = true;
    this.split.second.append(h("div.wb-quant-pane", {}, this.hand.el, this.details.el));
    const bar = toolbar(
      "Quantization",
      this.methods,
      this.measuring,
      group("on", this.samples),
      this.shown,
      spacer(),
      this.undo,
      this.redo,
      this.byHand,
    );
    this.frame = h(
      "div.wb-frame.wb-quant",
      {},
      bar,
      this.notes,
      h("div.wb-quant-line", {}, this.line, this.progress),
      h("div.wb-body", {}, this.split.el),
      this.foot,
    );
    el.append(this.frame);
    const stack = () => this.split.setStacked(this.frame.clientWidth > 0 && this.frame.clientWidth < NARROW);
    const observer = new ResizeObserver(stack);
    observer.observe(this.frame);
    stack();
    this.ends.push(
      () => observer.disconnect(),
      host.selection.subscribe((picked) => this.selected(picked)),
      host.onChange((kinds) => {
        if (matches(kinds, "quantization")) void this.load(this.method);
        else if (matches(kinds, "quantization.accuracy")) void this.loadAccuracy();
      }),
      host.onEvent("quantization.progress", ({ method, done, total }) => {
        if (method !== this.method || !this.busy) return;
        this.progress.max = total;
        this.progress.value = done;
        this.say(`${this.busy} ${done} of ${total} samples measured`);
      }),
      on(this.frame, "keydown", (event) => this.key(event)),
    );
    this.arrange();
  }

  destroy(): void {
    this.turn = -1;
    for (const end of this.ends) end();
    this.table?.destroy();
    this.details.destroy();
    this.split.destroy();
    this.frame.remove();
  }

  async setStage(_: string, method?: string): Promise<void> {
    if (method !== undefined && method !== this.method) await this.load(method);
  }

  async load(method: string): Promise<void> {
    const turn = ++this.turn;
    this.method = method;
    try {
      const [doc, accuracy] = await Promise.all([
        this.host.document("quantization", method),
        this.host.document("quantization.accuracy", method),
      ]);
      if (turn !== this.turn) return;
      clearError(this.notes);
      const other = this.doc?.method !== doc.method;
      const node = other ? "" : (this.doc?.node.get(this.row) ?? "");
      this.doc = doc;
      this.accuracy = accuracy;
      this.index = new HandleIndex(doc.handle_start, doc.handles);
      this.row = rowNamed(doc, node);
      this.fill();
      this.selected(this.host.selection.get());
      // Something to look at before anything is chosen: the worst.
      if (this.row < 0) this.describe(this.table?.shown()[0] ?? -1);
    } catch (error) {
      if (turn === this.turn) showError(this.notes, error);
    }
  }

  onOverlay(listener: (name: string) => void): () => void {
    this.overlays.add(listener);
    return () => this.overlays.delete(listener);
  }

  private async loadAccuracy(): Promise<void> {
    const turn = this.turn;
    try {
      const accuracy = await this.host.document("quantization.accuracy", this.method);
      if (turn !== this.turn || !this.doc) return;
      this.accuracy = accuracy;
      this.fill();
    } catch (error) {
      if (turn === this.turn) showError(this.notes, error);
    }
  }

  // ---- what is shown ---------------------------------------------------------------------------------------

  private fill(): void {
    const { doc, accuracy } = this;
    if (!doc) return;
    const kept = this.shown.value as Shown;
    const counts = countsOf(doc);
    const offered = (Object.keys(SHOWN) as Shown[]).filter((shown) => shown === "all" || counts[shown] || shown === kept);
    setOptions(this.shown, offered.map((value) => ({ value, text: `${SHOWN[value]} (${counts[value]})` })), kept || "all");
    this.offerSamples();
    setOptions(this.methods, this.host.about.methods.map((value) => ({ value, text: value })), this.method);
    this.methods.hidden = this.host.about.methods.length < 2;
    this.line.textContent = summary(doc, accuracy);
    this.drawTable(doc);
    this.hand.show(doc, this.can);
    this.describe(this.row);
    this.arrange();
  }

  private offerSamples(): void {
    const available = this.accuracy?.available ?? -1;
    const steps = [1, 4, 16, 64].filter((size) => available < 0 || size < available);
    const all = { value: "0", text: available < 0 ? "all samples" : `${available} ${available === 1 ? "sample" : "samples"}` };
    const options = [...steps.map((size) => ({ value: String(size), text: size === 1 ? "1 sample" : `${size} samples` })), all];
    const now = options.some(({ value }) => value === this.samples.value) ? this.samples.value : "";
    setOptions(this.samples, options, now || (steps.includes(16) ? "16" : "0"));
  }

  private drawTable(doc: QuantizationDocument): void {
    const columns = operatorColumns(doc, this.accuracy);
    const rows = [...doc.node.codes.keys()].filter((row) => isShown(doc, row, this.shown.value as Shown));
    const sort = worstFirst(this.accuracy);
    // What is worst is told by another column once it was measured.
    if (!this.table || this.sorted !== sort.column) {
      this.table?.destroy();
      this.sorted = sort.column;
      this.table = new Table({
        label: "Operators",
        columns,
        rows: doc.node.length,
        sort,
        arrange: (order, needle) => ordered(this.columns, this.visible, order, needle),
        onPick: (row, extend) => this.pick(row, extend),
      });
      this.split.first.append(this.table.el);
    }
    this.visible = rows;
    this.columns = columns;
    this.table.update({ columns, rows: doc.node.length });
    this.mark();
  }

  private get can(): boolean {
    return this.host.live && (this.doc?.editable ?? false) && !this.busy;
  }

  private whyNot(): string {
    if (!this.host.live) return "A report: decisions need a running kernel.";
    if (this.doc && !this.doc.editable) return this.doc.why_not;
    return this.busy;
  }

  private arrange(): void {
    const { doc, host } = this;
    const calibrated = doc?.stage === "calibrated";
    this.measuring.disabled = !host.live || !calibrated || this.busy !== "";
    this.measuring.title = host.live
      ? calibrated
        ? "Measure the error of each operator against floats, with the calibration data"
        : "Show the lowering, or its stage `quantized`, to measure"
      : "A report has no kernel to measure with";
    this.measuring.textContent = this.accuracy?.measured ? "Measure again" : "Measure accuracy";
    this.samples.disabled = this.measuring.disabled;
    this.undo.disabled = !this.can || !doc?.undo;
    this.redo.disabled = !this.can || !doc?.redo;
    this.undo.title = doc?.undo ? `Undo: ${doc.undo} (Ctrl+Z)` : "Nothing to undo";
    this.redo.title = doc?.redo ? `Redo: ${doc.redo} (Ctrl+Shift+Z)` : "Nothing to redo";
    this.byHand.textContent = doc?.history.length ? `By hand (${doc.history.length})` : "By hand";
    this.progress.hidden = !this.busy;
    this.frame.setAttribute("aria-busy", String(this.busy !== ""));
  }

  private describe(row: number): void {
    const { doc } = this;
    if (!doc) return;
    this.row = row;
    this.details.show(doc, this.accuracy, row, this.whyNot());
  }

  private showHand(shown: boolean): void {
    this.byHand.setAttribute("aria-pressed", String(shown));
    this.hand.el.hidden = !shown;
    if (shown) this.hand.el.scrollIntoView({ block: "nearest" });
  }

  private say(text: string): void {
    this.foot.textContent = text;
  }

  // ---- selection -------------------------------------------------------------------------------------------

  private pick(row: number, extend: boolean): void {
    const { doc, index } = this;
    if (!doc || !index) return;
    this.describe(row);
    const handles = [...(extend ? this.host.selection.get().handles : []), ...index.handles(row)];
    this.own = true;
    this.host.selection.set({ method: this.method, handles, node: extend ? null : doc.node.get(row) });
    this.own = false;
    this.mark(false);
  }

  private selected(picked: Picked): void {
    const { doc, index } = this;
    if (this.own || !doc || !index || picked.method !== this.method) return;
    const rows = index.find(picked.handles);
    const named = picked.node ? rowNamed(doc, picked.node) : -1;
    if (named >= 0) this.describe(named);
    else if (rows.length && !rows.includes(this.row)) this.describe(rows[0]!);
    this.mark();
  }

  private mark(reveal = true): void {
    const picked = this.host.selection.get();
    const rows = picked.method === this.method ? (this.index?.find(picked.handles) ?? []) : [];
    this.table?.select(rows, reveal);
  }

  private reveal(node: string, module: string): void {
    const { doc } = this;
    if (!doc) return;
    const rows = [...doc.node.codes.keys()].filter((row) => {
      const path = doc.module.get(row);
      return node ? doc.node.get(row) === node : path === module || path.startsWith(`${module}.`);
    });
    if (!rows.length) return;
    this.pick(rows[0]!, false);
    for (const row of rows.slice(1)) this.pick(row, true);
    this.describe(rows[0]!);
    this.mark();
  }

  private key(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.target instanceof HTMLInputElement) return;
    const letter = event.key.toLowerCase();
    const what = letter === "y" || (letter === "z" && event.shiftKey) ? "redo" : letter === "z" ? "undo" : null;
    if (!what) return;
    if (this.can && this.doc?.[what]) void this.move(what);
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- what Python does ------------------------------------------------------------------------------------

  private async measure(): Promise<void> {
    await this.work("Measuring:", async () => {
      const made = await this.host.call("quantization.measure", { method: this.method, samples: Number(this.samples.value) });
      for (const listener of [...this.overlays]) listener(OWN);
      const samples = `${made.samples} ${made.samples === 1 ? "sample" : "samples"}`;
      const colours = this.overlays.size ? " The graph is coloured by own error." : "";
      return `Measured on ${samples} in ${seconds(made.seconds)}: outputs ${decibels(made.sqnr_db ?? Infinity)}.${colours}`;
    });
  }

  private async apply(wanted: Wanted): Promise<void> {
    await this.work("Lowering again.", async () =>
      told(await this.host.call("quantization.edit", { method: this.method, ...wanted })),
    );
  }

  private async move(what: QuantizationMove["what"], index = -1): Promise<void> {
    await this.work("Lowering again.", async () =>
      told(await this.host.call("quantization.move", { method: this.method, what, index })),
    );
  }

  private async work(doing: string, task: () => Promise<string>): Promise<void> {
    if (this.busy) return;
    this.busy = doing;
    this.progress.removeAttribute("value");
    clearError(this.notes);
    this.say(doing);
    this.describe(this.row);
    this.arrange();
    try {
      this.say(await task());
    } catch (error) {
      this.say("");
      showError(this.notes, error);
    } finally {
      this.busy = "";
      this.describe(this.row);
      this.arrange();
    }
  }
}

function rowNamed(doc: QuantizationDocument, name: string): number {
  const code = doc.node.values.indexOf(name);
  return code < 0 ? -1 : doc.node.codes.indexOf(code);
}

export async function mount(host: Host, el: HTMLElement, options: QuantizationOptions = {}): Promise<QuantizationHandle> {
  const view = new QuantizationView(host, el, options.method ?? host.about.method);
  await view.load(options.method ?? host.about.method);
  return view;
}

export default widget((host, el) => mount(host, el));
