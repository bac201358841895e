import { describe, expect, it } from "vitest";
import { fakeDocument } from "./fake.ts";
import { GraphModel } from "./model.ts";
import { search } from "./search.ts";

const model = new GraphModel(
  fakeDocument({
    nodes: [
      { name: "x", kind: "placeholder", shape: "(1, 3)" },
      {
        name: "conv",
        op: "aten.convolution.default",
        module: "body.conv1",
        source: "net.py:12",
        attributes: "stride=[2, 2]",
      },
      { name: "relu", op: "aten.relu.default", module: "body", tag: "tag0" },
      { name: "relu_1", op: "aten.relu.default", shape: "(4, 4)" },
    ],
    edges: [
      ["x", "conv"],
      ["conv", "relu"],
      ["relu", "relu_1"],
    ],
    modules: [
      { path: "body", type: "torch.nn.Sequential" },
      { path: "body.conv1", type: "torch.nn.Conv2d" },
    ],
  }),
);
const found = (query: string, regex = false) =>
  search(model, query, regex).hits.map(({ kind, index }) =>
    kind === "node"
      ? model.document.name.get(index)
      : `module ${model.document.module_path.get(index)}`,
  );

describe("search", () => {
  it("finds by name, operator, attribute, shape, source and tag", () => {
    expect(found("relu")).toEqual(["relu", "relu_1"]);
    expect(found("CONVOLUTION")).toEqual(["conv"]);
    expect(found("stride=[2")).toEqual(["conv"]);
    expect(found("net.py:12")).toEqual(["conv"]);
    expect(found("tag0")).toEqual(["relu"]);
  });

  it("needs all words", () => {
    expect(found('relu "(4, 4)"')).toEqual(["relu_1"]);
    expect(found("relu conv")).toEqual([]);
  });

  it("searches one field when told", () => {
    expect(found("shape:3")).toEqual(["x"]);
    expect(found("module:body")).toEqual(["conv", "relu"]);
    expect(found("type:conv2d")).toEqual(["conv", "module body.conv1"]);
    expect(found("kind:placeholder")).toEqual(["x"]);
  });

  it("finds modules by name and class, without all their nodes", () => {
    expect(found("sequential")).toEqual(["module body"]);
    expect(found("conv1")).toEqual(["module body.conv1"]);
  });

  it("reads regular expressions, between slashes or when asked", () => {
    expect(found("/^relu$/")).toEqual(["relu"]);
    expect(found("relu_\\d", true)).toEqual(["relu_1"]);
    expect(found("relu_\\d")).toEqual([]);
  });

  it("says why an expression can't be read", () => {
    const { hits, problem } = search(model, "relu(", true);
    expect(hits).toEqual([]);
    expect(problem).toMatch(/Invalid regular expression|Unterminated/);
    expect(search(model, "relu(").problem).toBe("");
  });

  it("finds nothing for nothing", () => {
    expect(found("  ")).toEqual([]);
  });
});
