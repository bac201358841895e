import { expect, it } from "vitest";
import type { GraphDocument } from "../graph/scene.ts";
import { StringColumn } from "../common/unpack.ts";
import { crossingOf } from "./border.ts";
import { PartitionEditor } from "./editor.ts";
import { FakeHost, NAMES, partitionState } from "./fake.ts";

/** x -> add -> sin -> mul -> relu -> sub -> out, and add -> mul, add -> sub besides. */
const EDGES = [[0, 1, 10], [1, 2, 20], [2, 3, 30], [3, 4, 40], [4, 5, 50], [5, 6, 60], [1, 3, 20], [1, 5, 20]] as const;

async function crossing(tags: string[], changes = {}) {
  const host = new FakeHost();
  host.state = partitionState(changes);
  const editor = new PartitionEditor(host, "forward", () => undefined);
  await editor.load();
  const document = {
    src: Int32Array.from(EDGES, (edge) => edge[0]),
    dst: Int32Array.from(EDGES, (edge) => edge[1]),
    edge_bytes: Float64Array.from(EDGES, (edge) => edge[2]),
    kind: StringColumn.from(NAMES.map((name) => (name === "x" ? "placeholder" : "call"))),
  } as unknown as GraphDocument;
  const { into, out } = crossingOf(document, editor, new Set(tags));
  return { into: Object.fromEntries(into), out: Object.fromEntries(out) };
}

it("counts a value once where it leaves, however many use it", async () => {
  expect(await crossing(["A"])).toEqual({ into: { 1: 10 }, out: { 1: 20 } });
});

it("counts a value once where it enters a partition, however many use it there", async () => {
  expect(await crossing(["B"])).toEqual({ into: { 3: 50, 5: 50 }, out: { 3: 40, 5: 60 } });
});

it("what stays inside does not cross", async () => {
  const tag = Int32Array.from([-1, 0, -1, 1, 1, 1, -1]);
  expect(await crossing(["B"], { tag })).toEqual({ into: { 3: 50 }, out: { 5: 60 } });
});
