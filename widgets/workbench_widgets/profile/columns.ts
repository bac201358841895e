// The columns of the table, as functions of a line.
import { h } from "../common/dom.ts";
import { bytes, delta, ms, number, percent } from "../common/format.ts";
import { numbers, shortOperator, type Line, type Numbers } from "./groups.ts";
import { limitOf, type Limit, type ProfileModel } from "./model.ts";

export type ColumnSet = "times" | "work" | "values" | "all";

export interface LineColumn {
  readonly name: string;
  readonly title: string;
  readonly numeric?: boolean;
  text(line: Line): string;
  value?(line: Line): number | string | null;
  cell?(line: Line): Node;
  hint?(line: Line): string;
}

const SETS: Readonly<Record<Exclude<ColumnSet, "all">, readonly string[]>> = {
  times: [
    "name",
    "bar",
    "median",
    "share",
    "cumulative",
    "change",
    "spread",
    "calls",
    "operator",
    "source",
  ],
  work: [
    "name",
    "bar",
    "median",
    "flops",
    "bytes",
    "intensity",
    "rate",
    "traffic",
    "attainable",
    "part",
    "bound",
  ],
  values: ["name", "sqnr", "error", "relative", "operator", "shape", "source"],
};

/** What the columns need to know beside the line. */
export interface ColumnContext {
  readonly model: ProfileModel;
  /** Length of the longest bar, ms. */
  scale(): number;
  /** Share of this line and all above it; NaN where that makes no sense. */
  cumulative(line: Line): number;
  name(line: Line): Node;
}

/** Numbers of lines, computed once until `forget`. */
export class LineNumbers {
  private known = new WeakMap<Line, Numbers>();
  private readonly model: ProfileModel;

  constructor(model: ProfileModel) {
    this.model = model;
  }

  of(line: Line): Numbers {
    let found = this.known.get(line);
    if (!found) this.known.set(line, (found = numbers(this.model, line)));
    return found;
  }

  limit(line: Line): Limit {
    const { flops, bytes: moved, time } = this.of(line);
    return limitOf(flops, moved, time, this.model.peaks);
  }

  forget(): void {
    this.known = new WeakMap();
  }
}

export function columnsOf(
  set: ColumnSet,
  context: ColumnContext,
  lines: LineNumbers,
): LineColumn[] {
  const { document } = context.model;
  const changed = document.before_median !== null;
  const all = allColumns(context, lines).filter((column) => changed || column.name !== "change");
  if (set === "all") return all;
  return SETS[set].flatMap((name) => all.filter((column) => column.name === name));
}

function allColumns(context: ColumnContext, lines: LineNumbers): LineColumn[] {
  const { model } = context;
  const { document } = model;
  const numeric = (
    name: string,
    title: string,
    value: (line: Line) => number,
    format: (value: number) => string,
    hint?: (line: Line) => string,
  ): LineColumn => ({
    name,
    title,
    numeric: true,
    value,
    text: (line) => format(value(line)),
    hint,
  });
  const text = (name: string, title: string, of: (row: number) => string): LineColumn => ({
    name,
    title,
    text: (line) => (line.row >= 0 ? of(line.row) : ""),
  });
  const own = (line: Line, of: (row: number) => number) => (line.row >= 0 ? of(line.row) : NaN);
  const change = (line: Line) => lines.of(line).time / lines.of(line).before - 1;
  return [
    {
      name: "name",
      title: "Node",
      text: (line) => line.label,
      cell: (line) => context.name(line),
      hint: (line) => titleOf(model, line),
    },
    {
      name: "bar",
      title: "Time",
      numeric: false,
      value: (line) => lines.of(line).time,
      text: () => "",
      cell: (line) => bar(model, line, lines.of(line), context.scale()),
      hint: (line) => whiskers(model, line, lines.of(line)),
    },
    numeric("median", "Median", (line) => lines.of(line).time, ms),
    numeric("share", "Share", (line) => lines.of(line).share, percent),
    numeric(
      "cumulative",
      "Sum",
      (line) => context.cumulative(line),
      percent,
      () => "Share of this line and those above it",
    ),
    numeric(
      "change",
      "Change",
      change,
      (value) => delta(value, percent),
      (line) => `Before: ${ms(lines.of(line).before)}`,
    ),
    numeric(
      "spread",
      "Spread",
      (line) => own(line, (row) => spread(model, row)),
      times,
      () => "p90 − p10, of the median",
    ),
    numeric("p10", "p10", (line) => own(line, (row) => model.times(row).p10), ms),
    numeric("p90", "p90", (line) => own(line, (row) => model.times(row).p90), ms),
    numeric("mean", "Mean", (line) => own(line, (row) => model.mean[row]!), ms),
    numeric("min", "Min", (line) => own(line, (row) => model.min[row]!), ms),
    numeric("max", "Max", (line) => own(line, (row) => model.max[row]!), ms),
    numeric("calls", "Calls", (line) => callsOf(model, line), number),
    numeric("flops", "FLOP", (line) => lines.of(line).flops, scaled),
    numeric(
      "bytes",
      "Bytes",
      (line) => lines.of(line).bytes,
      bytes,
      () => "Read and written at least",
    ),
    numeric("intensity", "FLOP/B", (line) => lines.limit(line).intensity, number),
    numeric("rate", "GFLOP/s", (line) => lines.limit(line).reached, number),
    numeric("traffic", "GB/s", (line) => lines.limit(line).bytesRate, number),
    numeric(
      "attainable",
      "Attainable",
      (line) => lines.limit(line).attainable,
      number,
      () => "GFLOP/s that the machine allows at this many operations per byte",
    ),
    numeric(
      "part",
      "Of limit",
      (line) => lines.limit(line).part,
      percent,
      () => "Beyond 100 %: the data came from a cache, not from memory",
    ),
    { name: "bound", title: "Bound", text: (line) => lines.limit(line).bound },
    numeric(
      "sqnr",
      "SQNR",
      (line) => lines.of(line).sqnr,
      decibel,
      () => "Against eager PyTorch; ∞ for equal values",
    ),
    numeric("error", "Max error", (line) => lines.of(line).error, number),
    numeric(
      "relative",
      "Of largest",
      (line) => own(line, (row) => document.max_error[row]! / document.max_reference[row]!),
      number,
      () => "Largest error, of the largest value of eager's result",
    ),
    text("operator", "Operator", (row) =>
      model.inside[row]!.length && document.parent[row]! < 0
        ? document.backend.get(row)
        : document.operator.get(row).replace(/^aten::/, ""),
    ),
    text("backend", "Backend", (row) => document.backend.get(row)),
    text("shape", "Result", (row) => document.shape.get(row)),
    text("module", "Module", (row) => document.module.get(row)),
    {
      ...text("source", "Source", (row) => shortSource(document.source.get(row))),
      hint: (line) => (line.row >= 0 ? document.source.get(line.row) : ""),
    },
    text("instruction", "#", (row) => String(document.instruction[row]!)),
  ];
}

/** A part as percent; what is many times the whole as a multiple. */
function times(value: number): string {
  return value < 10 ? percent(value) : Number.isFinite(value) ? `${Math.round(value)} ×` : "–";
}

/** `vit.py:120` of a whole path. */
export function shortSource(source: string): string {
  return source.split(/[/\\]/).pop() ?? source;
}

export function spread(model: ProfileModel, row: number): number {
  const { median, p10, p90 } = model.times(row);
  return median > 0 ? (p90 - p10) / median : NaN;
}

/** NaN for the member of a fused group: it ran, but not by itself. */
function callsOf(model: ProfileModel, line: Line): number {
  if (line.row >= 0 && Number.isNaN(model.document.calls[line.row]!)) return NaN;
  return line.rows.reduce(
    (sum, row) => sum + (model.count[row] ? model.document.calls[row]! || 1 : 0),
    0,
  );
}

function decibel(value: number): string {
  return value === Infinity ? "∞" : Number.isNaN(value) ? "–" : `${value.toFixed(1)} dB`;
}

/** `1.23 G` */
export function scaled(value: number): string {
  if (!Number.isFinite(value)) return "–";
  for (const [factor, unit] of [
    [1e9, " G"],
    [1e6, " M"],
    [1e3, " k"],
  ] as const) {
    if (value >= factor) return (value / factor).toPrecision(3) + unit;
  }
  return String(value);
}

function titleOf(model: ProfileModel, line: Line): string {
  if (line.row < 0) return `${line.key.replace(/^\w+:/, "")}: ${line.rows.length} instructions`;
  const { document } = model;
  const parts = [
    document.name.get(line.row),
    document.operator.get(line.row),
    document.module.get(line.row),
  ];
  return parts.filter(Boolean).join(" · ");
}

function whiskers(model: ProfileModel, line: Line, found: Numbers): string {
  if (line.row < 0)
    return `${ms(found.time)}, the medians of ${line.rows.length} instructions added`;
  const { median, p10, p90 } = model.times(line.row);
  const before = Number.isNaN(found.before) ? "" : `; before: ${ms(found.before)}`;
  return `median ${ms(median)}, p10 ${ms(p10)}, p90 ${ms(p90)}${before}`;
}

/** Where bar, whiskers and the bar of the run before end, in parts of the whole width. */
export interface BarParts {
  readonly fill: number;
  readonly low: number;
  readonly high: number;
  readonly before: number;
}

export function barParts(
  time: number,
  p10: number,
  p90: number,
  before: number,
  scale: number,
): BarParts {
  const part = (value: number) => (scale > 0 && value >= 0 ? Math.min(value / scale, 1) : 0);
  return { fill: part(time), low: part(p10), high: part(p90), before: part(before) };
}

function bar(model: ProfileModel, line: Line, found: Numbers, scale: number): Node {
  const single = line.row >= 0 ? model.times(line.row) : null;
  const parts = barParts(found.time, single?.p10 ?? NaN, single?.p90 ?? NaN, found.before, scale);
  const at = (value: number) => `${(100 * value).toFixed(2)}%`;
  const spans: (Node | null)[] = [
    parts.before ? h("span.wb-profile-before", { style: `width:${at(parts.before)}` }) : null,
    parts.fill
      ? h("span.wb-profile-fill", {
          style: `width:${at(parts.fill)}`,
          "data-kind": line.inside ? "inside" : line.row < 0 ? "group" : "row",
        })
      : null,
    parts.high > parts.low
      ? h("span.wb-profile-whisker", {
          style: `left:${at(parts.low)};width:${at(parts.high - parts.low)}`,
          "data-cut": single !== null && single.p90 > scale,
        })
      : null,
  ];
  return h("span.wb-profile-bar", { "aria-hidden": true }, ...spans);
}

/** The words that a line is found by. */
export function searchText(model: ProfileModel, line: Line): string {
  if (line.row < 0) return line.label.toLowerCase();
  const { document } = model;
  const columns = [
    document.name,
    document.operator,
    document.backend,
    document.module,
    document.source,
  ];
  return columns
    .map((column) => column.get(line.row))
    .join(" ")
    .toLowerCase();
}

export { shortOperator };
