// The switch of a layer: type, observer and scales to choose, for the layer or for its module.
import type { QuantizationChoice, QuantizationDocument, QuantizationEdit } from "../contract.ts";
import { h } from "../common/dom.ts";
import { button, select, setOptions, type Option } from "../common/toolbar.ts";
import { choiceOf, DTYPES, GRANULARITIES, OBSERVERS } from "./model.ts";

/** What is chosen: a layer or a module, and how it shall be quantized. */
export type Wanted = Omit<QuantizationEdit, "method">;

export interface SwitchEvents {
  apply(wanted: Wanted): void;
}

const KEPT = "";

export class LayerSwitch {
  readonly el: HTMLElement;
  private readonly dtype: HTMLSelectElement;
  private readonly observer: HTMLSelectElement;
  private readonly granularity: HTMLSelectElement;
  private readonly scope: HTMLSelectElement;
  private readonly apply: HTMLButtonElement;
  private readonly reset: HTMLButtonElement;
  private readonly note = h("p.wb-muted.wb-quant-note");
  private readonly events: SwitchEvents;
  private doc: QuantizationDocument | null = null;
  private row = -1;
  private can = true;

  constructor(events: SwitchEvents) {
    this.events = events;
    const changed = () => this.arrange();
    this.scope = select("What is decided about", [], "", () => this.choose());
    this.dtype = select("Type", [], "", changed);
    this.observer = select("Observer of the activations", [], "", changed);
    this.granularity = select("Scales of the weights", [], "", changed);
    this.apply = button("Apply", "Write the decision to the recipe and lower again in place", () => this.send(false));
    this.apply.classList.add("wb-primary");
    this.reset = button("Leave to the quantizer", "Take the decision out of the recipe and lower again", () => this.send(true));
    this.el = h(
      "fieldset.wb-quant-switch",
      {},
      h("legend", {}, "Quantize otherwise"),
      h("div.wb-quant-choices", {}, this.scope, this.dtype, this.observer, this.granularity, this.apply, this.reset),
      this.note,
    );
  }

  /** Another operator, or other news of it. `why` says why nothing can be decided; empty where it can. */
  show(doc: QuantizationDocument, row: number, why: string): void {
    const same = this.doc === doc && this.row === row;
    this.doc = doc;
    this.row = row;
    this.can = why === "";
    this.note.textContent = why || this.hint();
    if (same) {
      this.arrange();
      return;
    }
    const [layer, module] = [doc.layer.get(row), doc.module.get(row)];
    setOptions(
      this.scope,
      [
        { value: "node", text: `layer ${layer}` },
        ...(module ? [{ value: "module", text: `module ${module}` }] : []),
      ],
      "node",
    );
    this.choose();
  }

  private hint(): string {
    if (!this.doc) return "";
    return this.doc.configurable
      ? ""
      : `${this.doc.by} can't be told how to quantize a layer: it can be kept in floats.`;
  }

  /** Begins with what holds now. */
  private choose(): void {
    const { doc } = this;
    if (!doc) return;
    const now = choiceOf(doc, this.row);
    this.options(doc, now);
    this.arrange();
  }

  private options(doc: QuantizationDocument, now: QuantizationChoice | null): void {
    const named = (known: Readonly<Record<string, string>>, chosen: string): Option[] =>
      Object.entries(known)
        .concat(chosen && !(chosen in known) ? [[chosen, chosen]] : [])
        .map(([value, text]) => ({ value, text }));
    const types = doc.configurable ? DTYPES : { float: DTYPES.float! };
    setOptions(this.dtype, named(types, now?.dtype ?? "float"), now?.dtype ?? "float");
    const observers = Object.fromEntries(
      doc.observer_names.map((name) => [name, `observer: ${OBSERVERS[name] ?? name}`]),
    );
    const kept = { [KEPT]: "observer: the quantizer's" };
    setOptions(this.observer, named({ ...kept, ...observers }, now?.observer ?? KEPT), now?.observer ?? KEPT);
    const scales = { [KEPT]: "scales: the quantizer's", ...GRANULARITIES };
    setOptions(this.granularity, named(scales, now?.granularity ?? KEPT), now?.granularity ?? KEPT);
  }

  private arrange(): void {
    const { doc } = this;
    if (!doc) return;
    const dtype = this.dtype.value;
    const float = dtype === "float";
    const now = choiceOf(doc, this.row);
    const module = this.scope.value === "module";
    this.observer.hidden = float || dtype.includes(" ");
    this.granularity.hidden = float;
    const same =
      !module &&
      now !== null &&
      now.dtype === dtype &&
      (this.observer.hidden || (now.observer || KEPT) === this.observer.value) &&
      (float || now.granularity === this.granularity.value);
    for (const part of [this.scope, this.dtype, this.observer, this.granularity]) part.disabled = !this.can;
    this.apply.disabled = !this.can || same;
    const layer = doc.layer.get(this.row);
    const path = doc.module.get(this.row);
    this.reset.hidden = !doc.history.some((step) => (module ? step.module === path : step.node === layer));
    this.reset.disabled = !this.can;
  }

  /** What the switch asks for. */
  wanted(reset = false): Wanted | null {
    const { doc } = this;
    if (!doc) return null;
    const module = this.scope.value === "module";
    const float = this.dtype.value === "float";
    return {
      node: module ? "" : doc.layer.get(this.row),
      module: module ? doc.module.get(this.row) : "",
      dtype: reset ? "" : this.dtype.value,
      observer: reset || this.observer.hidden ? "" : this.observer.value,
      granularity: reset || float ? "" : this.granularity.value,
    };
  }

  private send(reset: boolean): void {
    const wanted = this.wanted(reset);
    if (wanted) this.events.apply(wanted);
  }
}
