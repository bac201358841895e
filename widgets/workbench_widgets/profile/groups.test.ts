import { describe, expect, it } from "vitest";
import { groupKeys, numbers, shortOperator, tree, visible, type Line } from "./groups.ts";
import { ProfileModel } from "./model.ts";
import { sample } from "./sample.ts";

const model = new ProfileModel(
  sample([
    {
      name: "conv",
      operator: "aten::convolution.out",
      module: "net.stem",
      median: 5,
      flops: 100,
      bytes: 10,
    },
    {
      name: "add",
      operator: "aten::add.out",
      module: "net.body.0.mix",
      median: 1,
      flops: 1,
      bytes: 4,
      before: 2,
    },
    {
      name: "call",
      operator: "Demo",
      backend: "Demo",
      module: "net.body.1",
      median: 4,
      sqnr: 30,
      error: 0.5,
    },
    { name: "mm", operator: "mm #0", backend: "Demo", module: "net.body.1", parent: 2, median: 3 },
    { name: "add_1", operator: "aten::add.out", median: 2, before: 1, sqnr: 20, error: 0.25 },
  ]),
);

const show = (lines: readonly Line[]): unknown[] =>
  lines.map((line) => (line.children.length ? [line.label, show(line.children)] : line.label));

const byTime = { value: (line: Line) => numbers(model, line).time, descending: true };

describe("groups", () => {
  it("has the inside of a delegate below its call", () => {
    expect(show(tree(model, "none"))).toEqual(["conv", "add", ["call", ["mm"]], "add_1"]);
  });

  it("has the members of a fused group below it, and they bring no time of their own", () => {
    const fused = new ProfileModel(
      sample([
        { name: "call", operator: "Demo", backend: "Demo", median: 4 },
        { name: "relu", operator: "matmul+relu #0+1", backend: "Demo", parent: 0, median: 3 },
        { name: "mm", operator: "mm #0", backend: "Demo", parent: 1, flops: 7, bytes: 1 },
        { name: "relu", operator: "relu #1", backend: "Demo", parent: 1, flops: 1, bytes: 1 },
      ]),
    );
    const lines = tree(fused, "none");
    expect(show(lines)).toEqual([["call", [["relu", ["mm", "relu"]]]]]);
    const [call] = lines;
    const [group] = call!.children;
    expect(group!.children.map((line) => [line.depth, line.inside])).toEqual([
      [2, true],
      [2, true],
    ]);
    expect(numbers(fused, group!).time).toBe(3);
    expect(numbers(fused, group!.children[0]!)).toMatchObject({ time: NaN, flops: 7 });
    expect(fused.sum()).toBe(4);
    const keys = [call!, group!, ...group!.children].map((line) => line.key);
    expect(new Set(keys).size).toBe(4);
  });

  it("nests modules, and writes chains of single modules in one line", () => {
    expect(show(tree(model, "module"))).toEqual([
      [
        "net",
        [
          ["stem", ["conv"]],
          [
            "body",
            [
              ["0.mix", ["add"]],
              ["1", [["call", ["mm"]]]],
            ],
          ],
        ],
      ],
      "add_1",
    ]);
  });

  it("collects operators whatever their overload, and backends", () => {
    expect(show(tree(model, "operator"))).toEqual([
      ["convolution", ["conv"]],
      ["add", ["add", "add_1"]],
      ["Demo", [["call", ["mm"]]]],
    ]);
    expect(tree(model, "backend").map((line) => line.label)).toEqual(["runtime", "Demo"]);
  });

  it("has every instruction in exactly one group", () => {
    for (const grouping of ["module", "operator", "backend"] as const) {
      const rows = tree(model, grouping).flatMap((line) => line.rows);
      expect([...rows].sort()).toEqual([0, 1, 2, 4]);
    }
  });

  it("shortens operators", () => {
    expect(shortOperator("aten::add.out")).toBe("add");
    expect(shortOperator("Backend")).toBe("Backend");
  });
});

describe("numbers of a group", () => {
  const groups = tree(model, "operator");

  it("adds times, shares, work", () => {
    const whole = groups.map((line) => numbers(model, line));
    expect(whole[1]).toMatchObject({ time: 3, flops: 1, bytes: 4, before: 3 });
    expect(whole.reduce((sum, found) => sum + found.share, 0)).toBeCloseTo(1);
    expect(whole[2]!.flops).toBeNaN();
  });

  it("has the worst error, not a mean", () => {
    const [module] = tree(model, "module");
    expect(numbers(model, module!)).toMatchObject({ sqnr: 30, error: 0.5 });
    expect(numbers(model, groups[1]!)).toMatchObject({ sqnr: 20, error: 0.25 });
  });

  it("compares only where all parts were measured before", () => {
    expect(numbers(model, tree(model, "backend")[0]!).before).toBeNaN(); // `conv` was not
  });
});

describe("lines that are shown", () => {
  const lines = tree(model, "module");
  const labels = (found: readonly Line[]) => found.map((line) => line.label);

  it("hides what is closed, and sorts among siblings", () => {
    expect(labels(visible(lines, new Set(), byTime, null))).toEqual(["net", "add_1"]);
    const open = new Set(["module:net", "module:net.body"]);
    expect(labels(visible(lines, open, byTime, null))).toEqual([
      "net",
      "stem",
      "body",
      "1",
      "0.mix",
      "add_1",
    ]);
    const rising = { ...byTime, descending: false };
    expect(labels(visible(lines, open, rising, null))).toEqual([
      "add_1",
      "net",
      "stem",
      "body",
      "0.mix",
      "1",
    ]);
  });

  it("has missing values last in both directions", () => {
    const few = tree(new ProfileModel(sample([{ name: "a" }, { name: "b", median: 1 }])), "none");
    for (const descending of [true, false]) {
      const order = {
        value: (line: Line) => numbers(model, line).time && (line.row ? 1 : NaN),
        descending,
      };
      expect(labels(visible(few, new Set(), order, null))).toEqual(["b", "a"]);
    }
  });

  it("opens what leads to a match while filtering", () => {
    const found = visible(lines, new Set(), null, (line) => line.label === "mm");
    expect(labels(found)).toEqual(["net", "body", "1", "call", "mm"]);
    expect(visible(lines, new Set(), null, () => false)).toEqual([]);
  });

  it("names the groups that can be opened", () => {
    expect(groupKeys(lines)).toEqual([
      "module:net",
      "module:net.stem",
      "module:net.body",
      "module:net.body.0.mix",
      "module:net.body.1",
    ]);
  });
});
