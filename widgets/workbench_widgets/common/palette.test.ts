import { describe, expect, it } from "vitest";
import { hatchCss, inkOn, ramp, swatch, type Hatch } from "./palette.ts";

const rgb = (text: string) =>
  /(\d+),(\d+),(\d+)/.exec(text)!.slice(1).map(Number) as [number, number, number];
const luminance = (text: string) => {
  const [r, g, b] = rgb(text).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

describe("swatches", () => {
  it("differ by colour or by hatch, far beyond the number of colours", () => {
    const seen = new Set(Array.from({ length: 42 }, (_, index) => JSON.stringify(swatch(index))));
    expect(seen.size).toBe(42);
  });

  it("each of the first seven also says by its hatch what its colour says", () => {
    const hatches = Array.from({ length: 7 }, (_, index) => swatch(index).hatch);
    expect(new Set(hatches).size).toBe(7);
  });

  it("every hatch has a legend", () => {
    const all: Hatch[] = ["none", "diagonal", "back", "cross", "dots", "horizontal", "vertical"];
    expect(new Set(all.map((hatch) => hatchCss(hatch, "#000"))).size).toBe(7);
  });
});

describe("the ramp", () => {
  it("gets lighter with every step, for every kind of colour vision", () => {
    const steps = Array.from({ length: 21 }, (_, index) => luminance(ramp(index / 20)));
    for (let at = 1; at < steps.length; at++) expect(steps[at]).toBeGreaterThan(steps[at - 1]!);
  });

  it("ends at its ends", () => {
    expect(ramp(-1)).toBe(ramp(0));
    expect(ramp(2)).toBe(ramp(1));
    expect(ramp(0)).toBe("rgb(0,34,78)");
  });

  it("carries text that can be read: contrast of 3 at least", () => {
    for (let share = 0; share <= 1; share += 0.05) {
      const [back, ink] = [luminance(ramp(share)), inkOn(share) === "#000" ? 0 : 1];
      const contrast = (Math.max(back, ink) + 0.05) / (Math.min(back, ink) + 0.05);
      expect(contrast, `at ${share.toFixed(2)}`).toBeGreaterThan(3);
    }
  });
});
