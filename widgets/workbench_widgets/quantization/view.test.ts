import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { QuantizationEdit, QuantizationOutcome } from "../contract.ts";
import { CallError } from "../common/host.ts";
import { MockHost } from "../common/mock_host.ts";
import { operatorColumns, ordered, worstFirst } from "./columns.ts";
import { Figure } from "./figure.ts";
import { makeHistogram } from "./histogram.ts";
import {
  binsOf, channelName, channelsOf, countsOf, decibels, integersOf, reasonOf, scaleText, share, summary, ticks, tickText, told,
} from "./model.ts";
import { accuracy, observers, sample, unmeasured } from "./sample.ts";
import { makeStrip } from "./strip.ts";
import { mount, type QuantizationHandle } from "./view.ts";

const settle = () => new Promise((done) => setTimeout(done, 30));

describe("what is known", () => {
  const doc = sample();
  const seen = doc.observers;

  it("counts the states, and says why", () => {
    expect(countsOf(doc)).toEqual({ all: 4, quantized: 3, float: 1, unfused: 1, edited: 0 });
    expect(reasonOf(doc, 2)).toBe("int8 activations; not fused: its inputs differ");
    expect(reasonOf(doc, 3)).toBe("there is no integer kernel");
    expect(summary(doc, null)).toBe(
      "3 of 4 operators quantized · 1 not fused by XnnpackPartitioner · 4 calibration samples",
    );
    expect(summary(doc, accuracy())).toContain("outputs 31.3 dB on 4 samples");
    expect(summary(sample({ stage: "prepared" }), null)).toContain("not calibrated yet");
  });

  it("marks the bins that lie outside of what is represented, and loses no value", () => {
    const bins = binsOf(seen, 0);
    expect(bins.map((bin) => bin.clipped)).toEqual([true, false, false, false, false, false, false, true]);
    const total = (some: typeof bins) => some.reduce((sum, bin) => sum + bin.count, 0);
    expect(total(bins)).toBe(seen.elements[0]);
    expect(total(bins.filter((bin) => bin.clipped)) / total(bins)).toBeCloseTo(seen.clipped[0]!);
    expect(binsOf(seen, 1)).toEqual([]);
  });

  it("tells how many integers the values reach", () => {
    expect(integersOf(seen, 0)).toEqual({ used: 256, of: 256 });
    expect(integersOf(observers({ max: Float64Array.of(4, 1, 0.5) }), 2)).toEqual({ used: 51, of: 256 });
    expect(integersOf(seen, 1)).toBeNull();
  });

  it("names channels, and runs of channels where there are very many", () => {
    expect(channelsOf(seen, 1).map(channelName)).toEqual(["channel 0", "channel 1", "channel 2", "channel 3"]);
    const many = observers({ channels: Int32Array.of(0, 11, 0) });
    expect(channelsOf(many, 1).map(channelName)).toEqual(["channels 0–2", "channels 3–5", "channels 6–8", "channels 9–10"]);
  });

  it("writes numbers that are missing, exact or small", () => {
    expect([decibels(Infinity), decibels(NaN), decibels(-3.04), decibels(-Infinity)]).toEqual(["exact", "–", "−3.0 dB", "no signal"]);
    expect([share(0), share(0.00002), share(0.25), share(NaN)]).toEqual(["0 %", "0.0020 %", "25.0 %", "–"]);
    expect(scaleText(seen, 1)).toBe("0.00200 … 0.00800");
    const dynamic = observers({ scales: Int32Array.of(0, 4, 1), kind: seen.kind });
    expect(scaleText(dynamic, 0)).toBe("–");
  });

  it.each([
    [-4, 4, 4],
    [0, 1e-6, 5],
    [-3.2e5, 10, 3],
  ])("puts round ticks into %f to %f", (low, high, most) => {
    const found = ticks(low, high, most);
    expect(found.length).toBeGreaterThan(0);
    expect(found.length).toBeLessThanOrEqual(most + 1);
    for (const value of found) expect(value >= low - 1e-12 && value <= high * (1 + 1e-9)).toBe(true);
    expect(found.map(tickText)).toEqual([...new Set(found.map(tickText))]);
  });

  it("has no ticks for no range", () => expect(ticks(1, 1, 5)).toEqual([]));
});

describe("the table", () => {
  it("has errors only once they were measured, and begins with the worst", () => {
    const names = (measured: boolean) =>
      operatorColumns(sample(), measured ? accuracy() : unmeasured()).map(({ name }) => name);
    expect(names(false)).not.toContain("own");
    expect(names(true)).toEqual(expect.arrayContaining(["own", "inherited", "total", "saturation"]));
    expect(worstFirst(unmeasured())).toEqual({ column: "clipped", descending: true });
    expect(worstFirst(accuracy())).toEqual({ column: "own", descending: false });
  });

  it("finds in all columns, and sorts numbers with what has none behind, either way", () => {
    const columns = operatorColumns(sample(), accuracy());
    expect(ordered(columns, [0, 1, 2, 3], null, "integer kernel")).toEqual([3]);
    const by = (column: string, descending: boolean) => ordered(columns, [0, 1, 2, 3], { column, descending }, "");
    expect(by("saturation", true)).toEqual([1, 2, 0, 3]);
    expect(by("saturation", false)).toEqual([2, 1, 0, 3]);
    expect(by("node", false)).toEqual([2, 0, 1, 3]);
    expect(by("nothing", false)).toEqual([0, 1, 2, 3]);
  });

  it("says states by a shape as well, and what was decided by hand", () => {
    const doc = sample({ edited: Uint8Array.of(1, 0, 0, 0) });
    const state = operatorColumns(doc, null).find(({ name }) => name === "state")!;
    const cells = [0, 2, 3].map((row) => state.cell!(row).textContent);
    expect(cells).toEqual(["● quantized ✎", "◐ quantized, not fused", "○ float"]);
    expect(state.text(0)).toBe("quantized, by hand");
  });
});

describe("the pictures", () => {
  const press = (figure: Figure, key: string) =>
    figure.el.querySelector("svg")!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const said = (figure: Figure) => figure.el.querySelector('[role="status"]')!.textContent;

  it("cuts a bar where the range ends, and hatches what is outside", () => {
    const even = observers({ counts: Float64Array.of(1, 1, 1, 1, 1, 1, 1, 1, 50, 30, 20) });
    const figure = makeHistogram(even, 0, true);
    const outside = [...figure.el.querySelectorAll(".wb-quant-outside")];
    // The first bin, the last one, and the parts of those through which the ends go.
    expect(outside.length).toBe(4);
    expect(figure.el.querySelectorAll(".wb-quant-inside").length).toBe(6);
    for (const bar of outside) expect(bar.getAttribute("fill")).toMatch(/^url\(#/);
    expect(figure.el.querySelectorAll(".wb-quant-limit").length).toBe(2);
    figure.destroy();
  });

  it("goes from bin to bin by keyboard and says what is there", () => {
    const figure = makeHistogram(observers(), 0, false);
    expect(said(figure)).toContain("10.0 % clipped (hatched)");
    press(figure, "Home");
    expect(said(figure)).toBe("-4 to -3: 5 values, clipped");
    press(figure, "ArrowRight");
    expect(said(figure)).toBe("-3 to -2: 0 values");
    press(figure, "End");
    expect(said(figure)).toBe("3 to 4: 5 values, clipped");
    figure.destroy();
  });

  it("marks the worst channel by a shape, and says which it is", () => {
    const figure = makeStrip(observers(), 1);
    expect(figure.el.querySelectorAll(".wb-quant-mark, .wb-quant-worst").length).toBe(2);
    expect(said(figure)).toBe("▼ channel 2: its scale is 4 times the median of all");
    expect(figure.el.querySelector("svg")!.getAttribute("aria-label")).toContain("Marked: channel 2");
    press(figure, "Home");
    expect(said(figure)).toBe("channel 0: -0.250 to 0.250, scale 0.00200");
    figure.destroy();
  });

  it("draws one value, none clipped, without an endless number", () => {
    const flat = observers({
      min: Float64Array.of(0, 0, 0), max: Float64Array.of(0, 0, 0), low: Float64Array.of(0, 0, 0), high: Float64Array.of(0, 0, 0),
      bins_start: Int32Array.of(0, 1, 1, 1), counts: Float64Array.of(7), bins_high: Float64Array.of(-4, 0, 0),
    });
    const figure = makeHistogram(flat, 0, true);
    expect(figure.el.innerHTML).not.toMatch(/NaN|Infinity/);
    figure.destroy();
  });
});

describe("the view", () => {
  let host: MockHost;
  let el: HTMLElement;
  let view: QuantizationHandle;
  const outcome: QuantizationOutcome = {
    text: "conv: float", seconds: 1.5, ran: ["prepare", "quantize"], bytes_before: 2048, bytes_after: 4096, measured: true,
    sqnr_before: 31.25, sqnr_after: 40, affected: 2, operators: 4,
  };
  const label = <E extends HTMLElement>(name: string) => el.querySelector<E>(`[aria-label="${name}"]`)!;
  const table = () => [...el.querySelectorAll<HTMLElement>('[aria-label="Operators"] tbody tr[data-row]')];
  const order = () => table().map((row) => Number(row.dataset.row));
  const choose = (name: string, value: string) => {
    const field = label<HTMLSelectElement>(name);
    field.value = value;
    field.dispatchEvent(new Event("change"));
  };

  beforeEach(async () => {
    host = new MockHost({ "quantization:forward": sample(), "quantization.accuracy:forward": unmeasured() });
    el = document.createElement("div");
    document.body.append(el);
    view = await mount(host, el);
  });
  afterEach(() => {
    view.destroy();
    el.remove();
  });

  it("begins with what clips most; what has no observer stands last", () => {
    expect(order()).toEqual([1, 2, 0, 3]);
    expect(el.querySelector(".wb-quant-details h4")!.textContent).toContain("relu");
  });

  it("shows one kind of operators", () => {
    choose("Which operators are shown", "float");
    expect(order()).toEqual([3]);
    choose("Which operators are shown", "unfused");
    expect(order()).toEqual([2]);
    expect(label<HTMLSelectElement>("Which operators are shown").textContent).toContain("not fused (1)");
  });

  it("shares its selection both ways", async () => {
    table().find((row) => row.dataset.row === "0")!.click();
    expect(host.selection.get()).toMatchObject({ handles: [10], node: "conv" });
    host.selection.set({ method: "forward", handles: [13], node: null });
    await settle();
    expect(table().find((row) => row.dataset.row === "3")!.getAttribute("aria-selected")).toBe("true");
    expect(el.querySelector(".wb-quant-details h4")!.textContent).toContain("softmax");
    host.selection.set({ method: "other", handles: [10], node: null });
    expect(el.querySelector(".wb-quant-details h4")!.textContent).toContain("softmax");
  });

  it("has a tab for each observer of an operator", () => {
    table().find((row) => row.dataset.row === "0")!.click();
    const tabs = () => [...el.querySelectorAll<HTMLElement>('[aria-label="Observers of this operator"] [role="tab"]')];
    expect(tabs().map((tab) => [tab.textContent, tab.getAttribute("aria-selected")])).toEqual([["weight w", "true"], ["input x", "false"]]);
    expect(label("Channels")).not.toBeNull();
    tabs()[0]!.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
    expect(tabs().map((tab) => tab.getAttribute("aria-selected"))).toEqual(["false", "true"]);
    expect(label("Channels")).toBeNull();
    expect(label("Histogram")).not.toBeNull();
  });

  it("measures when it is asked, says how far it is, and shows the errors", async () => {
    expect(host.calls).toEqual([]);
    host.answers.set("quantization.measure", () => {
      host.emit("quantization.progress", { method: "forward", done: 3, total: 8 });
      expect(el.querySelector<HTMLProgressElement>("progress")!.hidden).toBe(false);
      expect(el.querySelector<HTMLProgressElement>("progress")!.value).toBe(3);
      expect(el.querySelector(".wb-quant-foot")!.textContent).toContain("3 of 8 samples");
      host.give("quantization.accuracy:forward", accuracy());
      host.changed("quantization.accuracy");
      return accuracy();
    });
    const colours: string[] = [];
    const end = view.onOverlay((name) => colours.push(name));
    choose("Samples to measure with", "4");
    label<HTMLButtonElement>("Measure the error of each operator against floats").click();
    await settle();
    expect(host.calls).toEqual([{ name: "quantization.measure", args: { method: "forward", samples: 4 } }]);
    expect(order()).toEqual([2, 1, 0, 3]);
    expect(colours).toEqual(["quantization_own"]);
    end();
    expect(el.querySelector(".wb-quant-foot")!.textContent).toContain("outputs 31.3 dB");
    expect(el.querySelector<HTMLProgressElement>("progress")!.hidden).toBe(true);
  });

  it("asks for what was chosen, of the layer or of its module", async () => {
    const asked: QuantizationEdit[] = [];
    host.answers.set("quantization.edit", (args: QuantizationEdit) => {
      asked.push(args);
      return outcome;
    });
    const apply = label<HTMLButtonElement>("Write the decision to the recipe and lower again in place");
    expect(apply.disabled).toBe(true); // nothing is different yet
    choose("Observer of the activations", "percentile");
    expect(apply.disabled).toBe(false);
    apply.click();
    await settle();
    choose("Type", "int8 dynamic");
    expect(label("Observer of the activations").hidden).toBe(true);
    apply.click();
    await settle();
    choose("What is decided about", "module");
    choose("Type", "float");
    apply.click();
    await settle();
    const base = { method: "forward", node: "conv", module: "" };
    expect(asked).toEqual([
      { ...base, dtype: "int8", observer: "percentile", granularity: "channel" },
      { ...base, dtype: "int8 dynamic", observer: "", granularity: "channel" },
      { method: "forward", node: "", module: "body.act", dtype: "float", observer: "", granularity: "" },
    ]);
    expect(el.querySelector(".wb-quant-foot")!.textContent).toBe(told(outcome));
    expect(told(outcome)).toBe("conv: float · program 2.00 KiB → 4.00 KiB · outputs 31.3 dB → 40.0 dB · 2 of 4 operators measured again · 1.50 s");
  });

  it("offers to leave a layer to the quantizer again, undo, and the code, where something was decided", async () => {
    expect(label("Take the decision out of the recipe and lower again").hidden).toBe(true);
    const moves: unknown[] = [];
    host.answers.set("quantization.move", (args: unknown) => moves.push(args) && outcome);
    host.give("quantization:forward", sample({
      history: [{ text: "conv: float", node: "conv", module: "", index: 0 }], undo: "conv: float", edited: Uint8Array.of(1, 1, 0, 0),
    }));
    host.changed("*");
    await settle();
    expect(label("Take the decision out of the recipe and lower again").hidden).toBe(false);
    label<HTMLButtonElement>("Undo").click();
    await settle();
    label<HTMLButtonElement>("Decisions by hand, and the Python that makes them").click();
    label<HTMLButtonElement>("Take back: conv: float").click();
    await settle();
    expect(moves).toEqual([
      { method: "forward", what: "undo", index: -1 },
      { method: "forward", what: "remove", index: 0 },
    ]);
    expect(el.querySelector(".wb-quant-code")!.textContent).toContain("import workbench");
  });

  it("says what went wrong, and can be used again", async () => {
    host.answers.set("quantization.edit", () => {
      throw new CallError({ kind: "QuantizationError", message: "the groups do not divide the rows", details: {} });
    });
    choose("Scales of the weights", "64");
    label<HTMLButtonElement>("Write the decision to the recipe and lower again in place").click();
    await settle();
    expect(el.querySelector(".wb-error")!.textContent).toContain("the groups do not divide");
    expect(label<HTMLButtonElement>("Write the decision to the recipe and lower again in place").disabled).toBe(false);
  });

  it("offers nothing that needs a kernel where there is none", async () => {
    view.destroy();
    host.live = false;
    view = await mount(host, el);
    for (const name of ["Undo", "Measure the error of each operator against floats", "Write the decision to the recipe and lower again in place"])
      expect(label<HTMLButtonElement>(name).disabled).toBe(true);
    expect(el.querySelector(".wb-quant-note")!.textContent).toContain("A report");
  });

  it("leaves a foreign quantizer's layers only the choice to stay in floats", async () => {
    host.give("quantization:forward", sample({ configurable: false, by: "TheirQuantizer", choice: Int32Array.of(-1, -1, -1, 1) }));
    host.changed("quantization");
    await settle();
    expect([...label<HTMLSelectElement>("Type").options].map(({ value }) => value)).toEqual(["float"]);
    expect(el.querySelector(".wb-quant-note")!.textContent).toContain("TheirQuantizer can't be told");
    expect(label<HTMLButtonElement>("Write the decision to the recipe and lower again in place").disabled).toBe(false);
  });

  it("leaves nothing behind", () => {
    view.destroy();
    expect(host.listening).toBe(0);
    expect(el.children.length).toBe(0);
  });
});
