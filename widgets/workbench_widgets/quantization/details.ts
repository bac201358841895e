// What is known of one operator: why it is as it is, what its observers saw, and the switch of its layer.
import type { QuantizationAccuracy, QuantizationDocument } from "../contract.ts";
import { h, unique } from "../common/dom.ts";
import { count, number } from "../common/format.ts";
import { Table } from "../common/table.ts";
import { toggle } from "../common/toolbar.ts";
import { facts } from "../common/tooltip.ts";
import type { Figure } from "./figure.ts";
import { makeHistogram } from "./histogram.ts";
import {
  binsOf,
  channelName,
  channelsOf,
  decibels,
  integersOf,
  measured,
  scaleText,
  share,
  sign,
  usesOf,
  zeroText,
} from "./model.ts";
import { makeStrip } from "./strip.ts";
import { LayerSwitch, type Wanted } from "./switch.ts";

export interface DetailsEvents {
  apply(wanted: Wanted): void;
}

export class Details {
  readonly el = h("div.wb-quant-details");
  private readonly head = h("div.wb-quant-head");
  private readonly tabs = h("div.wb-quant-uses", { role: "tablist", "aria-label": "Observers of this operator" });
  private readonly seen: HTMLElement;
  private readonly layer: LayerSwitch;
  private figures: Figure[] = [];
  private tables: Table[] = [];
  private doc: QuantizationDocument | null = null;
  private accuracy: QuantizationAccuracy | null = null;
  private row = -1;
  private role = "";
  private log = true;

  constructor(events: DetailsEvents) {
    this.layer = new LayerSwitch(events);
    this.seen = h("div.wb-quant-seen", { role: "tabpanel", id: unique("seen") });
    this.el.append(
      h("div.wb-quant-part", {}, this.head, this.layer.el),
      h("div.wb-quant-part", {}, this.tabs, this.seen),
    );
  }

  destroy(): void {
    this.clear();
    this.el.remove();
  }

  show(doc: QuantizationDocument, accuracy: QuantizationAccuracy | null, row: number, why: string): void {
    const other = this.doc !== doc || this.row !== row;
    this.doc = doc;
    this.accuracy = accuracy;
    this.row = row;
    const none = row < 0;
    for (const part of [this.layer.el, this.tabs, this.seen]) part.hidden = none;
    if (none) {
      this.clear();
      this.head.replaceChildren(h("p.wb-muted", {}, "Choose an operator to see what its observers saw."));
      return;
    }
    this.head.replaceChildren(...this.about());
    this.layer.show(doc, row, why);
    if (!other) return;
    const uses = usesOf(doc, row);
    const kept = uses.find((use) => use.role.split(" ")[0] === this.role);
    const main = uses.find((use) => use.observer === doc.observer[row]);
    this.open((kept ?? main ?? uses[0])?.role ?? "");
  }

  private about(): Node[] {
    const { row } = this;
    const doc = this.doc!;
    const state = doc.state.get(row);
    const layer = doc.layer.get(row);
    const value = (name: "own" | "inherited" | "total") =>
      this.accuracy?.measured ? decibels(measured(this.accuracy, name, row)) : null;
    const source = doc.source.get(row);
    return [
      h("h4", {}, doc.node.get(row), h("span.wb-muted", {}, ` ${doc.op.get(row)}`)),
      facts([
        ["state", `${sign(state)} ${state}${doc.edited[row] ? ", decided by hand" : ""}`],
        ["how", doc.how.get(row)],
        ["why", doc.why.get(row)],
        ["not fused", doc.backend_why.get(row)],
        ["layer", layer === doc.node.get(row) ? null : layer],
        ["module", doc.module.get(row)],
        ["own error", value("own")],
        ["inherited", value("inherited")],
        ["both", value("total")],
        ["source", source ? h("span", { title: source }, source.split("/").slice(-2).join("/")) : null],
      ]),
    ];
  }

  // ---- one observer ----------------------------------------------------------------------------------------

  private open(role: string): void {
    const doc = this.doc!;
    const uses = usesOf(doc, this.row);
    const use = uses.find((candidate) => candidate.role === role);
    this.role = role.split(" ")[0] ?? "";
    this.tabs.replaceChildren(...uses.map((candidate) => this.tab(candidate.role, candidate.role === role)));
    this.tabs.hidden = uses.length === 0;
    this.clear();
    if (!use) {
      const text = doc.state.get(this.row) === "float" ? "In floats: nothing is observed." : "Nothing of it is observed by itself.";
      this.seen.replaceChildren(h("p.wb-muted", {}, text));
      return;
    }
    this.seen.replaceChildren(...this.observer(use.observer));
  }

  private tab(role: string, chosen: boolean): HTMLElement {
    const roles = () => usesOf(this.doc!, this.row).map((use) => use.role);
    return h(
      "button.wb-button",
      {
        type: "button",
        role: "tab",
        "aria-selected": String(chosen),
        "aria-controls": this.seen.id,
        tabindex: chosen ? 0 : -1,
        onclick: () => this.open(role),
        onkeydown: (event: KeyboardEvent) => {
          const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
          if (!by) return;
          const all = roles();
          this.open(all[(all.indexOf(role) + by + all.length) % all.length]!);
          this.tabs.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
          event.preventDefault();
          event.stopPropagation();
        },
      },
      role,
    );
  }

  private observer(at: number): Node[] {
    const seen = this.doc!.observers;
    const known = !Number.isNaN(seen.min[at]!);
    const used = integersOf(seen, at);
    const range = (low: number, high: number) => `${number(low)} … ${number(high)}`;
    const parts: Node[] = [];
    if (seen.bins_start[at + 1]! > seen.bins_start[at]!) parts.push(this.histogram(at));
    if (seen.channel_start[at + 1]! > seen.channel_start[at]!) parts.push(this.channels(at));
    const numbers = facts([
      [seen.scales[at]! > 1 ? `${count(seen.scales[at]!)} scales` : "scale", scaleText(seen, at)],
      ["zero point", seen.scales[at] ? zeroText(seen, at) : null],
      ["seen", known ? range(seen.min[at]!, seen.max[at]!) : null],
      ["represented", known ? range(seen.low[at]!, seen.high[at]!) : null],
      ["clipped", known && !Number.isNaN(seen.clipped[at]!) ? share(seen.clipped[at]!) : null],
      ["integers used", used ? `${count(used.used)} of ${count(used.of)}` : null],
      ["observer", seen.kind.get(at).replace("_", " ")],
      ["quantized", seen.spec.get(at)],
      ["tensors", seen.values.get(at)],
      ["read by", seen.readers.get(at)],
    ]);
    numbers.classList.add("wb-quant-facts");
    // Beside the scales stands what they are for: the picture comes first, the numbers right below it.
    parts.splice(Math.min(1, parts.length), 0, numbers);
    return parts;
  }

  private histogram(at: number): HTMLElement {
    const seen = this.doc!.observers;
    const holder = h("div");
    const draw = () => {
      const old = this.figures.findIndex((figure) => holder.contains(figure.el));
      if (old >= 0) this.figures.splice(old, 1)[0]!.destroy();
      const made = makeHistogram(seen, at, this.log);
      this.figures.push(made);
      holder.replaceChildren(made.el);
    };
    draw();
    const logarithm = toggle("log", "Counts on a logarithmic scale", this.log, (on) => {
      this.log = on;
      draw();
    });
    const bins = binsOf(seen, at).filter((bin) => bin.count > 0);
    return h(
      "section",
      { "aria-label": "Histogram" },
      h(
        "div.wb-quant-title",
        {},
        h("strong", {}, "Values"),
        h("span.wb-legend", {}, h("span", {}, h("span.wb-swatch.wb-quant-swatch-in"), "represented"), h("span", {}, h("span.wb-swatch.wb-quant-swatch-out"), "clipped")),
        logarithm,
      ),
      holder,
      this.behind("The histogram as a table", () =>
        this.table({
          label: "Histogram",
          filter: false,
          rows: bins.length,
          columns: [
            { name: "low", title: "From", numeric: true, text: (row) => number(bins[row]!.low), value: (row) => bins[row]!.low },
            { name: "high", title: "To", numeric: true, text: (row) => number(bins[row]!.high), value: (row) => bins[row]!.high },
            { name: "count", title: "Values", numeric: true, text: (row) => count(bins[row]!.count), value: (row) => bins[row]!.count },
            { name: "clipped", title: "Clipped", text: (row) => (bins[row]!.clipped ? "yes" : "") },
          ],
        }),
      ),
    );
  }

  private channels(at: number): HTMLElement {
    const seen = this.doc!.observers;
    const channels = channelsOf(seen, at);
    const worst = seen.worst[at]!;
    const made = makeStrip(seen, at);
    this.figures.push(made);
    return h(
      "section",
      { "aria-label": "Channels" },
      h("div.wb-quant-title", {}, h("strong", {}, `${count(seen.channels[at]!)} channels`), h("span.wb-muted", {}, seen.per_channel[at] ? "each with a scale of its own" : "one scale for all")),
      made.el,
      this.behind("The channels as a table", () =>
        this.table({
          label: "Channels",
          filter: false,
          rows: channels.length,
          columns: [
            { name: "channel", title: "Channel", text: (row) => channelName(channels[row]!) + (row === worst ? " ▼" : ""), value: (row) => row },
            { name: "min", title: "Min", numeric: true, text: (row) => number(channels[row]!.min), value: (row) => channels[row]!.min },
            { name: "max", title: "Max", numeric: true, text: (row) => number(channels[row]!.max), value: (row) => channels[row]!.max },
            { name: "scale", title: "Scale", numeric: true, text: (row) => number(channels[row]!.scale), value: (row) => channels[row]!.scale },
          ],
        }),
      ),
    );
  }

  /** A table that is made when it is opened. */
  private behind(title: string, make: () => HTMLElement): HTMLElement {
    const made = h("details.wb-quant-behind", {}, h("summary", {}, title));
    made.addEventListener("toggle", () => {
      if (made.open && made.children.length === 1) made.append(make());
    });
    return made;
  }

  private table(options: ConstructorParameters<typeof Table>[0]): HTMLElement {
    const made = new Table(options);
    this.tables.push(made);
    return made.el;
  }

  private clear(): void {
    for (const part of [...this.figures, ...this.tables]) part.destroy();
    this.figures = [];
    this.tables = [];
    this.seen.replaceChildren();
  }
}
