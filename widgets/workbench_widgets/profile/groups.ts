// The lines of the table: rows alone or in groups, sorted among their siblings, filtered.
import type { ProfileModel } from "./model.ts";

export type Grouping = "none" | "module" | "operator" | "backend";

export interface Line {
  /** Stays the same when the profile changes, so that what is open stays open. */
  readonly key: string;
  readonly label: string;
  readonly depth: number;
  /** The row; -1 for a group. */
  readonly row: number;
  /** The instructions that a group holds; of a row itself. */
  readonly rows: readonly number[];
  readonly children: readonly Line[];
  /** Runs inside a delegate. */
  readonly inside: boolean;
}

/** Operator without namespace and overload: `add` of `aten::add.out`. */
export function shortOperator(operator: string): string {
  return operator.split("::").pop()!.split(".")[0] ?? operator;
}

/** All lines, as a tree. */
export function tree(model: ProfileModel, grouping: Grouping): Line[] {
  const rows = model.instructions();
  if (grouping === "none") return rows.map((row) => leaf(model, row, 0));
  if (grouping === "module") return modules(model, rows);
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const { operator, backend } = model.document;
    const name = grouping === "backend" ? backend.get(row) : shortOperator(operator.get(row));
    const known = groups.get(name);
    if (known) known.push(row);
    else groups.set(name, [row]);
  }
  return [...groups].map(([name, members]) => ({
    key: `${grouping}:${name}`,
    label: name,
    depth: 0,
    row: -1,
    rows: members,
    children: members.map((row) => leaf(model, row, 1)),
    inside: false,
  }));
}

function leaf(model: ProfileModel, row: number, depth: number): Line {
  const { chain, instruction } = model.document;
  return nested(model, row, depth, `row:${chain[row]}.${instruction[row]}`, false);
}

/** A row with what runs inside it, and with what was fused into that. */
function nested(
  model: ProfileModel,
  row: number,
  depth: number,
  key: string,
  inside: boolean,
): Line {
  const { name, operator } = model.document;
  return {
    key,
    label: name.get(row),
    depth,
    row,
    rows: [row],
    children: model.inside[row]!.map((inner) =>
      nested(model, inner, depth + 1, `${key}:${operator.get(inner)}`, true),
    ),
    inside,
  };
}

interface Branch {
  readonly path: string;
  readonly name: string;
  readonly branches: Map<string, Branch>;
  readonly own: number[];
}

/** Modules as a tree; a module that holds nothing but one other is written in one line with it. */
function modules(model: ProfileModel, rows: readonly number[]): Line[] {
  const root: Branch = { path: "", name: "", branches: new Map(), own: [] };
  for (const row of rows) {
    let place = root;
    const path = model.document.module.get(row);
    for (const part of path ? path.split(".") : []) {
      let next = place.branches.get(part);
      if (!next) {
        next = {
          path: place.path ? `${place.path}.${part}` : part,
          name: part,
          branches: new Map(),
          own: [],
        };
        place.branches.set(part, next);
      }
      place = next;
    }
    place.own.push(row);
  }
  return content(model, root, 0);
}

function content(model: ProfileModel, branch: Branch, depth: number): Line[] {
  const groups = [...branch.branches.values()].map((inner) => group(model, inner, depth));
  return [...groups, ...branch.own.map((row) => leaf(model, row, depth))];
}

function group(model: ProfileModel, branch: Branch, depth: number): Line {
  let place = branch;
  let label = branch.name;
  while (!place.own.length && place.branches.size === 1) {
    place = [...place.branches.values()][0]!;
    label += `.${place.name}`;
  }
  const children = content(model, place, depth + 1);
  return {
    key: `module:${place.path}`,
    label,
    depth,
    row: -1,
    rows: children.flatMap((child) => child.rows),
    children,
    inside: false,
  };
}

export interface Numbers {
  readonly time: number;
  readonly share: number;
  readonly flops: number;
  readonly bytes: number;
  readonly before: number;
  readonly sqnr: number;
  readonly error: number;
}

/** The numbers of a line: of a group sums, and of errors the worst. */
export function numbers(model: ProfileModel, line: Line): Numbers {
  let [time, share, flops, bytes, before] = [0, 0, 0, 0, 0];
  let [sqnr, error] = [NaN, NaN];
  let [ran, known, compared] = [false, false, true];
  const document = model.document;
  for (const row of line.rows) {
    const { median } = model.times(row);
    if (!Number.isNaN(median)) {
      ran = true;
      time += median;
      share += model.share(row);
    }
    if (!Number.isNaN(document.flops[row]!)) {
      known = true;
      flops += document.flops[row]!;
      bytes += document.bytes[row]!;
    }
    // A sum of which a part is missing says nothing.
    if (Number.isNaN(document.before[row]!)) compared &&= Number.isNaN(median);
    else before += document.before[row]!;
    sqnr = worse(sqnr, document.sqnr[row]!, Math.min);
    error = worse(error, document.max_error[row]!, Math.max);
  }
  return {
    time: ran ? time : NaN,
    share: ran ? share : NaN,
    flops: known ? flops : NaN,
    bytes: known ? bytes : NaN,
    before: compared && before > 0 ? before : NaN,
    sqnr,
    error,
  };
}

function worse(known: number, next: number, choose: (a: number, b: number) => number): number {
  return Number.isNaN(known) ? next : Number.isNaN(next) ? known : choose(known, next);
}

/** How siblings are ordered: by a value, missing ones last. */
export interface Order {
  value(line: Line): number | string | null;
  readonly descending: boolean;
}

/** The lines that are shown, from the top: open groups with what they hold, sorted and filtered. */
export function visible(
  lines: readonly Line[],
  open: ReadonlySet<string>,
  order: Order | null,
  matches: ((line: Line) => boolean) | null,
): Line[] {
  const found: Line[] = [];
  const walk = (siblings: readonly Line[]) => {
    for (const line of sorted(siblings, order)) {
      if (matches && !matches(line) && !holds(line, matches)) continue;
      found.push(line);
      // While filtering, what matches is shown wherever it is.
      if (open.has(line.key) || (matches && holds(line, matches))) walk(line.children);
    }
  };
  walk(lines);
  return found;
}

function holds(line: Line, matches: (line: Line) => boolean): boolean {
  return line.children.some((child) => matches(child) || holds(child, matches));
}

function sorted(lines: readonly Line[], order: Order | null): readonly Line[] {
  if (!order) return lines;
  const keys = new Map(lines.map((line) => [line, order.value(line)]));
  const missing = (key: unknown) => key === null || (typeof key === "number" && Number.isNaN(key));
  return [...lines].sort((a, b) => {
    const [left, right] = [keys.get(a) ?? null, keys.get(b) ?? null];
    if (missing(left) || missing(right)) return Number(missing(left)) - Number(missing(right));
    const less = left! < right! ? -1 : left! > right! ? 1 : 0;
    return order.descending ? -less : less;
  });
}

/** Keys of all groups (not of delegates). */
export function groupKeys(lines: readonly Line[]): string[] {
  return lines.flatMap((line) => (line.row < 0 ? [line.key, ...groupKeys(line.children)] : []));
}
