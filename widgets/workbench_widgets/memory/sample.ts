// A plan for tests.
import type { MemoryDocument } from "../contract.ts";
import { StringColumn } from "../common/unpack.ts";

/** name, bytes, first, last, offset; and by choice arena and kind. */
export type Row = readonly [string, number, number, number, number, number?, number?];

export const ROWS: readonly Row[] = [
  ["x", 64, 0, 1, 0, 1, 1],
  ["a", 128, 1, 3, 64],
  ["b", 64, 2, 4, 0],
  ["c", 128, 4, 5, 64],
  ["y", 32, 5, 6, 0, 1, 2],
];

/** The document of a plan: handles are 10, 20, ... by row; all of arena 1 have peaks worked out. */
export function sample(
  rows: readonly Row[] = ROWS,
  changes: Partial<MemoryDocument> = {},
): MemoryDocument {
  const moments = Math.max(...rows.map((row) => row[3])) + 1;
  const column = <T>(make: (row: Row) => T) => rows.map(make);
  const live = (moment: number) =>
    rows.reduce((sum, row) => sum + (row[2] <= moment && moment <= row[3] ? row[1] : 0), 0);
  const loads = Array.from({ length: moments }, (_, moment) => live(moment));
  const peak = loads.indexOf(Math.max(...loads));
  const size = Math.max(...rows.map((row) => row[4] + row[1]));
  return {
    method: "forward",
    origin: "plan",
    can_apply: true,
    why_not: "",
    planners: ["best", "greedy", "naive"],
    choices: { planner: "best", alignment: 16, arena_limits: {}, arenas: {}, pins: {} },
    plan_inputs: true,
    plan_outputs: true,
    arenas: [
      {
        arena: 1,
        size,
        lower_bound: loads[peak]!,
        peak_moment: peak,
        limit: null,
        total: rows.reduce((sum, row) => sum + row[1], 0),
        fragmentation: 1 - loads[peak]! / size,
        tensors: rows.length,
      },
    ],
    moments,
    moment_name: StringColumn.from(
      Array.from({ length: moments }, (_, at) =>
        at === 0 ? "inputs" : at === moments - 1 ? "results" : `aten::op${at}.out`,
      ),
    ),
    moment_source: StringColumn.from(Array.from({ length: moments }, () => "")),
    // The instruction of moment 2 has the handles of `b`.
    moment_handle_start: Int32Array.from({ length: moments + 1 }, (_, at) => Number(at > 2)),
    moment_handles: Int32Array.of(30),
    live_start: Int32Array.of(0, moments),
    live_moment: Int32Array.from(loads.keys()),
    live_bytes: Float64Array.from(loads),
    name: StringColumn.from(column((row) => row[0])),
    arena: Int32Array.from(column((row) => row[5] ?? 1)),
    offset: Float64Array.from(column((row) => row[4])),
    bytes: Float64Array.from(column((row) => row[1])),
    first: Int32Array.from(column((row) => row[2])),
    last: Int32Array.from(column((row) => row[3])),
    producer: Int32Array.from(column((row) => row[2])),
    at_peak: Uint8Array.from(column((row) => Number(row[2] <= peak && peak <= row[3]))),
    pinned: new Uint8Array(rows.length),
    kind: Uint8Array.from(column((row) => row[6] ?? 0)),
    shape: StringColumn.from(column(() => "[1, 8]")),
    dtype: StringColumn.from(column(() => "float32")),
    views: new Int32Array(rows.length),
    source: StringColumn.from(column(() => "/home/me/models/net.py:7")),
    handle_start: Int32Array.from({ length: rows.length + 1 }, (_, at) => at),
    handles: Int32Array.from(rows.map((_, at) => 10 * (at + 1))),
    ...changes,
  };
}
