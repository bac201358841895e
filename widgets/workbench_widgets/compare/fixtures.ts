// A small comparison of three sides, for the tests.
import type { CompareCells, CompareDocument, CompareSide, GraphDocument } from "../contract.ts";
import { StringColumn } from "../common/unpack.ts";

const words = (...items: string[]) => StringColumn.from(items);

function side(name: string, changes: Partial<CompareSide> = {}): CompareSide {
  return {
    name,
    title: `Run of ${name}`,
    kind: "run",
    stage: "lowered",
    rows: 4,
    matched: 1,
    changed: 1,
    only: 0,
    nodes: 4,
    bytes: 4096,
    program_bytes: 1024,
    arena_bytes: 512,
    ms: 10,
    ...changes,
  };
}

function cells(nodes: string[], ms: number[], changes: Partial<CompareCells> = {}): CompareCells {
  const named = nodes.flatMap((text, row) =>
    text
      .split(", ")
      .filter(Boolean)
      .map((node) => [node, row] as const),
  );
  return {
    nodes: words(...nodes),
    operators: words(...nodes.map((text) => (text ? `aten.${text.split("_")[0]}.default` : ""))),
    bytes: Float64Array.from(nodes, (text) => (text ? 1024 : 0)),
    ms: Float64Array.from(ms),
    sqnr: new Float64Array(nodes.length).fill(NaN),
    error: new Float64Array(nodes.length).fill(NaN),
    inside: words(...nodes.map(() => "")),
    node: words(...named.map(([node]) => node)),
    node_row: Int32Array.from(named, ([, row]) => row),
    handle: new Int32Array(),
    first_handle: new Int32Array(),
    ...changes,
  };
}

/** Rows: 0 matched; 1 changed (a: conv and relu; b: fused); 2 on a and c; 3 only on b, of another capture. */
export function comparison(reference = 0): CompareDocument {
  return {
    method: "forward",
    reference,
    sides: [
      side("plain"),
      side("fused", { ms: 8, only: 1 }),
      side("ExecuTorch", { kind: "peer", ms: 20 }),
    ],
    cells: [
      cells(["add", "conv, relu", "mul", ""], [1, 6, 3, NaN]),
      cells(["add", "fused", "", "tanh"], [1, 5, NaN, 2], {
        sqnr: Float64Array.of(Infinity, 42, NaN, NaN),
        error: Float64Array.of(0, 0.5, NaN, NaN),
        handle: Int32Array.of(11, 12, 13, 19),
        first_handle: Int32Array.of(1, 2, 3, 0),
      }),
      cells(["add", "conv, relu", "mul", ""], [2, 12, 6, NaN]),
    ],
    status: Uint8Array.of(0, 1, 2, 2),
    present: Uint32Array.of(7, 7, 5, 2),
    source: words("net.py:1", "net.py:2", "", ""),
    module: words("", "layer1", "", ""),
    handle_start: Int32Array.of(0, 1, 3, 4, 4),
    handles: Int32Array.of(1, 2, 3, 4),
    can_add_peer: true,
  };
}

/** A graph whose delegate holds two nodes that come from handles 2 and 3, counted as the second side does. */
export const GRAPH = {
  name: words("x", "add", "executorch_call_delegate", "inner_conv", "inner_relu"),
  kind: words("placeholder", "call", "delegate", "call", "call"),
  handle_start: Int32Array.of(0, 1, 2, 4, 5, 6),
  handles: Int32Array.of(12, 11, 12, 13, 12, 13),
} as unknown as GraphDocument;
