import { describe, expect, it } from "vitest";
import { LayoutError, loadLayout } from "./engine.ts";

describe("the layout engine", () => {
  it("places a chain in one column", async () => {
    const engine = await loadLayout();
    const result = engine.layout({ width: [80, 80], height: [30, 30], src: [0], dst: [1] });
    expect(result.x[0]).toBe(result.x[1]);
    expect(Array.from(result.edge_start)).toEqual([0, 2]);
  });

  it("names the edge that points nowhere", async () => {
    const engine = await loadLayout();
    const bad = { width: [80], height: [30], src: [0], dst: [7] };
    expect(() => engine.layout(bad)).toThrow(LayoutError);
    expect(() => engine.layout(bad)).toThrow(/target must be .*/);
  });
});
