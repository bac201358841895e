import { describe, expect, it, vi } from "vitest";
import { HandleIndex, same, selectionOf } from "./selection.ts";

const picked = (handles: number[], node: string | null = null) => ({
  method: "forward",
  handles,
  node,
});

describe("a selection", () => {
  it("is one for all stores of a family", () => {
    const [graph, table] = [selectionOf("shared", "forward"), selectionOf("shared", "forward")];
    const heard = vi.fn();
    table.subscribe(heard);
    graph.set(picked([5, 3, 5]));
    expect(table.get()).toEqual(picked([3, 5]));
    expect(heard).toHaveBeenCalledExactlyOnceWith(picked([3, 5]));
  });

  it("is another for another family, and for stores without one", () => {
    const [one, other, alone, lone] = ["one", "other", "", ""].map((name) =>
      selectionOf(name, "forward"),
    );
    one!.set(picked([1]));
    alone!.set(picked([2]));
    expect(other!.get().handles).toEqual([]);
    expect(lone!.get().handles).toEqual([]);
  });

  it("tells nobody where nothing changes, and nobody who left", () => {
    const store = selectionOf("", "forward");
    const [stays, leaves] = [vi.fn(), vi.fn()];
    store.subscribe(stays);
    const leave = store.subscribe(leaves);
    store.set(picked([1], "add"));
    store.set(picked([1], "add"));
    leave();
    store.set(picked([1], null));
    expect(stays).toHaveBeenCalledTimes(2);
    expect(leaves).toHaveBeenCalledTimes(1);
  });

  it("may be changed by who hears of it", () => {
    const store = selectionOf("", "forward");
    store.subscribe((value) => value.handles.includes(1) && store.set(picked([2])));
    store.set(picked([1]));
    expect(store.get().handles).toEqual([2]);
  });
});

it("selections are the same by method, node and handles", () => {
  expect(same(picked([1, 2]), picked([1, 2]))).toBe(true);
  expect(same(picked([1, 2]), picked([1]))).toBe(false);
  expect(same(picked([1]), picked([1], "a"))).toBe(false);
  expect(same(picked([1]), { ...picked([1]), method: "other" })).toBe(false);
});

describe("an index of handles", () => {
  // Row 0 has 7 and 9, row 1 nothing, row 2 has 9.
  const index = new HandleIndex(Int32Array.of(0, 2, 2, 3), Int32Array.of(7, 9, 9));

  it("finds the rows that have one of them", () => {
    expect(index.find([9])).toEqual([0, 2]);
    expect(index.find([9, 7])).toEqual([0, 2]);
    expect(index.find([1])).toEqual([]);
  });

  it("gives the handles of a row", () => {
    expect(index.handles(0)).toEqual([7, 9]);
    expect(index.handles(1)).toEqual([]);
    expect(index.handles(8)).toEqual([]);
  });
});
