import { describe, expect, it } from "vitest";
import type { OverlayColumn } from "../contract.ts";
import { StringColumn } from "../common/unpack.ts";
import { Arranger } from "./arrange.ts";
import { Bundles } from "./edges.ts";
import { chainOfBlocks } from "./fake.ts";
import { Labels, type Measure } from "./labels.ts";
import { GraphModel } from "./model.ts";
import { Overlay, TagFill, formatUnit } from "./overlay.ts";
import { Picture } from "./picture.ts";
import { simpleEngine } from "./simple.ts";
import { OpenState } from "./state.ts";

const measure: Measure = (text, size) => text.length * size * 0.5;
const document = chainOfBlocks(3);
const model = new GraphModel(document);
const column = (
  aggregate: OverlayColumn["aggregate"],
  values: readonly number[],
  unit: OverlayColumn["unit"] = "ms",
): OverlayColumn => ({
  name: "c",
  title: "C",
  unit,
  aggregate,
  values: Float64Array.from(values),
});
// x, then weight, mm and relu of three blocks, then the output.
const values = [NaN, NaN, 1, 2, NaN, 3, 4, NaN, 5, 6, NaN];

function picture(open: boolean): Picture {
  const state = new OpenState();
  if (open) state.openAll(model);
  const labels = new Labels(model, measure);
  const placed = new Arranger(simpleEngine).arrange(
    model,
    new Bundles(model),
    state,
    labels,
    measure,
  );
  return new Picture(model, state, labels, placed);
}

describe("overlays", () => {
  const blocks = model.parts[model.root]!.find((item) => model.isContainer(item))!;

  it("add up, or take the worst, on closed modules", () => {
    expect(new Overlay(model, column("sum", values)).value(blocks)).toBe(21);
    expect(new Overlay(model, column("max", values)).value(blocks)).toBe(6);
    expect(new Overlay(model, column("min", values)).value(blocks)).toBe(1);
    expect(new Overlay(model, column("sum", values)).value(0)).toBeNaN();
  });

  it("scale to what is visible", () => {
    const overlay = new Overlay(model, column("sum", values));
    overlay.fit(picture(true), false);
    expect(overlay.scale).toMatchObject({ low: 0, high: 6 });
    expect(overlay.share(3)).toBe(0.5);
    overlay.fit(picture(false), false);
    expect(overlay.scale.high).toBe(21);
    expect(overlay.share(NaN)).toBeNull();
  });

  it("have a logarithmic scale", () => {
    const overlay = new Overlay(
      model,
      column("sum", [NaN, NaN, 1, 10, NaN, 100, 100, NaN, 100, 100, NaN]),
    );
    overlay.fit(picture(true), true);
    expect(overlay.scale).toMatchObject({ low: 1, high: 100, log: true });
    expect(overlay.share(10)).toBeCloseTo(0.5);
    expect(overlay.share(0)).toBe(0);
  });

  it("show few decibels as the bright end", () => {
    const overlay = new Overlay(model, column("min", values, "dB"));
    overlay.fit(picture(true), false);
    expect(overlay.share(1)).toBe(1);
    expect(overlay.share(6)).toBe(0);
    expect(overlay.share(Infinity)).toBe(0);
  });

  it("are written in their unit", () => {
    expect(formatUnit(0.5, "ms")).toBe("500 µs");
    expect(formatUnit(2048, "bytes")).toBe("2.00 KiB");
    expect(formatUnit(3.6e9, "flops")).toBe("3.60 GFLOP");
    expect(formatUnit(0.25, "share")).toBe("25.0 %");
  });
});

describe("partitions", () => {
  it("fill what is of one tag, and leave mixed modules plain", () => {
    const tags = ["", "", "a", "a", "", "b", "b", "", "", "", ""];
    const tagged = { ...document, tag: StringColumn.from(tags) };
    const own = new GraphModel(tagged);
    const fill = new TagFill(own);
    expect(fill.tags).toEqual(["a", "b"]);
    const state = new OpenState();
    state.openAll(own);
    const labels = new Labels(own, measure);
    const placed = new Arranger(simpleEngine).arrange(
      own,
      new Bundles(own),
      state,
      labels,
      measure,
    );
    const drawn = new Picture(own, state, labels, placed);
    expect(fill.fill(drawn.boxOf(2))?.color).not.toBe("transparent");
    expect(fill.fill(drawn.boxOf(2))?.color).not.toBe(fill.fill(drawn.boxOf(5))?.color);
    expect(fill.fill(drawn.boxOf(8))?.color).toBe("transparent");
    const all = own.parts[own.root]!.find((item) => own.isContainer(item))!;
    expect(fill.fill(drawn.box(all)!)?.color).toBe("transparent");
  });
});
