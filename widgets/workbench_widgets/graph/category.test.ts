import { describe, expect, it } from "vitest";
import { Categories, categoryOf } from "./category.ts";
import { fakeDocument } from "./fake.ts";
import { GraphModel } from "./model.ts";

const document = (ops: readonly string[]) =>
  new GraphModel(
    fakeDocument({ nodes: ops.map((op, at) => ({ name: `n${at}`, op, kind: "call" })), edges: [] }),
  );

describe("categories", () => {
  it("are those of the operator, whatever its namespace and overload", () => {
    expect(categoryOf("call", "aten.convolution.default")).toBe("product");
    expect(categoryOf("call", "aten::relu.out")).toBe("pointwise");
    expect(categoryOf("call", "aten.maximum.default")).toBe("pointwise");
    expect(categoryOf("call", "aten.max.dim")).toBe("reduction");
    expect(categoryOf("call", "aten.max_pool2d_with_indices.default")).toBe("reduction");
    expect(categoryOf("delegate", "executorch_call_delegate")).toBe("delegate");
  });

  it("stay right when another stage numbers its operators differently", () => {
    const categories = new Categories();
    const first = document(["aten.relu.default", "aten.conv2d.default"]);
    const second = document(["aten.convolution.default", "aten.sum.dim_IntList"]);
    expect([0, 1].map((node) => categories.of(first, node))).toEqual(["pointwise", "product"]);
    expect([0, 1].map((node) => categories.of(second, node))).toEqual(["product", "reduction"]);
  });
});
