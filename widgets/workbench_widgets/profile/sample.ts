// A small profile for the tests of this view.
import type { Picked, ProfileBatch, ProfileDocument, TimelineDocument } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { selectionOf } from "../common/selection.ts";
import { StringColumn } from "../common/unpack.ts";

export interface SampleRow {
  readonly name: string;
  readonly operator?: string;
  readonly backend?: string;
  readonly module?: string;
  readonly source?: string;
  readonly parent?: number;
  readonly median?: number;
  readonly p10?: number;
  readonly p90?: number;
  readonly count?: number;
  readonly calls?: number;
  readonly flops?: number;
  readonly bytes?: number;
  readonly before?: number;
  readonly sqnr?: number;
  readonly error?: number;
  readonly handles?: readonly number[];
}

export function sample(
  rows: readonly SampleRow[],
  changes: Partial<ProfileDocument> = {},
): ProfileDocument {
  const texts = (of: (row: SampleRow) => string | undefined) =>
    StringColumn.from(rows.map((row) => of(row) ?? ""));
  const numbers = (of: (row: SampleRow, at: number) => number | undefined, missing = NaN) =>
    Float64Array.from(rows.map((row, at) => of(row, at) ?? missing));
  const starts = [0];
  for (const row of rows) starts.push(starts[starts.length - 1]! + (row.handles?.length ?? 0));
  return {
    method: "forward",
    run: 1,
    state: "done",
    runtime: "native",
    executions: 10,
    kept: 10,
    elapsed: 1,
    dropped: 0,
    problem: null,
    values_problem: "",
    total_median: 10,
    total_mean: 10,
    total_p10: 9,
    total_p90: 12,
    total_min: 8,
    total_max: 20,
    name: texts((row) => row.name),
    operator: texts((row) => row.operator ?? "aten::add.out"),
    backend: texts((row) => row.backend ?? "runtime"),
    module: texts((row) => row.module),
    source: texts((row) => row.source ?? "model.py:1"),
    shape: texts(() => "f32[2]"),
    parent: Int32Array.from(rows.map((row) => row.parent ?? -1)),
    chain: new Int32Array(rows.length),
    instruction: Int32Array.from(rows.map((_, at) => at)),
    count: numbers((row) => row.count, 10),
    calls: numbers((row) => row.calls, 1),
    mean: numbers((row) => row.median),
    median: numbers((row) => row.median),
    p10: numbers((row) => row.p10 ?? row.median),
    p90: numbers((row) => row.p90 ?? row.median),
    min: numbers((row) => row.p10 ?? row.median),
    max: numbers((row) => row.p90 ?? row.median),
    flops: numbers((row) => row.flops),
    bytes: numbers((row) => row.bytes),
    sqnr: numbers((row) => row.sqnr),
    max_error: numbers((row) => row.error),
    max_reference: numbers(() => 1),
    before: numbers((row) => row.before),
    before_median: rows.some((row) => row.before !== undefined) ? 9 : null,
    handle_start: Int32Array.from(starts),
    handles: Int32Array.from(rows.flatMap((row) => [...(row.handles ?? [])])),
    history: Float32Array.from([10, 9, 11, 20]),
    history_execution: Int32Array.from([0, 1, 2, 3]),
    peaks: null,
    ...changes,
  };
}

export function batchOf(
  rows: readonly number[],
  changes: Partial<ProfileBatch> = {},
): ProfileBatch {
  return {
    run: 1,
    executions: 2,
    elapsed: 0.5,
    dropped: 0,
    row: Int32Array.from(rows),
    count: Float64Array.from(rows.map(() => 2)),
    sum: Float64Array.from(rows.map((row) => 2 * (row + 1))),
    min: Float64Array.from(rows.map((row) => row + 0.5)),
    max: Float64Array.from(rows.map((row) => row + 1.5)),
    last: Float64Array.from(rows.map((row) => row + 1.5)),
    sampled: 2,
    samples: Float32Array.from([...rows.map((row) => row + 0.5), ...rows.map((row) => row + 1.5)]),
    first: 0,
    stride: 1,
    recent: Float32Array.from([3, 5]),
    ...changes,
  };
}

export function timelineOf(
  spans: readonly (readonly [row: number, start: number, length: number, inside?: boolean])[],
  duration: number,
): TimelineDocument {
  return {
    method: "forward",
    run: 1,
    label: "median",
    execution: 4,
    duration,
    row: Int32Array.from(spans.map((span) => span[0])),
    start: Float64Array.from(spans.map((span) => span[1])),
    length: Float64Array.from(spans.map((span) => span[2])),
    inside: Int32Array.from(spans.map((span) => (span[3] ? 1 : 0))),
  };
}

/** A host that answers from tables and remembers what it was asked. */
export class SampleHost implements Host {
  readonly live: boolean;
  readonly selection = selectionOf("", "forward");
  readonly asked: { name: string; args: unknown }[] = [];
  readonly picks: Picked[] = [];
  documents = new Map<string, unknown>();
  answers = new Map<string, () => unknown>();
  private readonly events = new Map<string, Set<(event: never) => void>>();
  private readonly changes = new Set<(kinds: ReadonlySet<string>) => void>();

  constructor(live = true) {
    this.live = live;
    this.selection.subscribe((picked) => this.picks.push(picked));
  }

  readonly about = {
    view: "profile",
    title: "A net",
    family: "",
    stages: [],
    stage: "run",
    methods: ["forward"],
    method: "forward",
    can_lower: true,
    can_run: true,
  };

  document(kind: string, key = ""): Promise<never> {
    const found = this.documents.get(`${kind}:${key}`);
    return found ? Promise.resolve(found as never) : Promise.reject(new Error(`no ${kind}:${key}`));
  }

  has(kind: string, key = ""): boolean {
    return this.documents.has(`${kind}:${key}`);
  }

  call(name: string, args: unknown): Promise<never> {
    this.asked.push({ name, args });
    const answer = this.answers.get(name);
    return answer
      ? new Promise((resolve) => resolve(answer() as never))
      : Promise.reject(new Error(`no answer to ${name}`));
  }

  onChange(listener: (kinds: ReadonlySet<string>) => void): () => void {
    this.changes.add(listener);
    return () => this.changes.delete(listener);
  }

  onEvent(name: string, listener: (event: never) => void): () => void {
    const known = this.events.get(name) ?? new Set();
    this.events.set(name, known);
    known.add(listener);
    return () => known.delete(listener);
  }

  emit(name: string, event: unknown): void {
    for (const listener of this.events.get(name) ?? []) listener(event as never);
  }

  changed(...kinds: string[]): void {
    for (const listener of this.changes) listener(new Set(kinds));
  }

  /** How many listeners are left. */
  listeners(): number {
    return (
      this.changes.size + [...this.events.values()].reduce((sum, known) => sum + known.size, 0)
    );
  }
}
