// A small partitioned graph, a host that plays Python, and a scene; for tests.
import type {
  Calls, GraphDocument, PartitionAnswer, PartitionDocument, PartitionRequest, PartitionState, Picked,
} from "../contract.ts";
import type { GraphScene, SceneBox } from "../graph/scene.ts";
import type { Host } from "../common/host.ts";
import { ABOUT } from "../common/mock_model.ts";
import { selectionOf } from "../common/selection.ts";
import { StringColumn } from "../common/unpack.ts";

/** x -> add -> sin -> mul -> relu -> sub -> out; add in A, mul and sub in B. */
export const NAMES = ["x", "add", "sin", "mul", "relu", "sub", "out"] as const;
const TAGS = [-1, 0, -1, 1, -1, 1, -1];
export const COST = { partitions: 2, delegated: 3, crossing_bytes: 4096, constant_bytes: 0 };

export function partitionDocument(): PartitionDocument {
  return {
    method: "forward",
    name: StringColumn.from(NAMES),
    op: StringColumn.from(NAMES.map((name) => `aten.${name}`)),
    module: StringColumn.from(NAMES.map((name) => (name === "mul" || name === "relu" ? "inner" : ""))),
    source: StringColumn.from(NAMES.map(() => "model.py:3")),
    bytes: Float64Array.from(NAMES, () => 1024),
    operator: Uint8Array.from(NAMES, (name) => (name === "x" || name === "out" ? 0 : 1)),
    proposed: StringColumn.from(["", "A", "", "B", "", "B", ""]),
    handle_start: Int32Array.from([0, 1, 2, 3, 4, 5, 6, 7]),
    // relu and sub come from one exported node.
    handles: Int32Array.from([1, 2, 3, 4, 5, 5, 6]),
  };
}

export function partitionState(changes: Partial<PartitionState> = {}): PartitionState {
  const tag = { settings: "", nodes: 1, input_bytes: 1024, output_bytes: 1024, constant_bytes: 0, inputs: 1, outputs: 1 };
  return {
    method: "forward",
    tag: Int32Array.from(TAGS),
    pending: new Uint8Array(NAMES.length),
    tags: [
      { ...tag, name: "A", backend: "One", color: 0 },
      { ...tag, name: "B", backend: "One", color: 1, nodes: 2 },
    ],
    reason_row: Int32Array.from([2, 4]),
    reason_by: StringColumn.from(["One", "One"]),
    reason: StringColumn.from(["it has no sin", "it has no relu"]),
    eligible_if: StringColumn.from(["it were add", ""]),
    asked_row: new Int32Array(),
    asked_tag: StringColumn.from([]),
    asked_given: new Uint8Array(),
    asked_why: StringColumn.from([]),
    history: [],
    backends: [
      { name: "One", checked: true, settings: "" },
      { name: "Two", checked: false, settings: "" },
    ],
    operators: 5,
    cost: COST,
    lowered: COST,
    undo: "",
    redo: "",
    waiting: 0,
    editable: true,
    python: "import workbench as wb\n",
    json: "{}",
    note: "",
    ...changes,
  };
}

export function answerTo(request: PartitionRequest, changes: Partial<PartitionAnswer> = {}): PartitionAnswer {
  return {
    legal: true, text: `${request.action} it`, kind: "", message: "", hint: "", nodes: [], path: [],
    changed: Int32Array.from(request.rows), before: StringColumn.from([]), after: StringColumn.from([]),
    why: StringColumn.from(request.rows.map(() => "")), requested: request.rows.length, missing: [], unchecked: "",
    cost_before: COST, cost_after: { ...COST, crossing_bytes: 3072 }, suggestion: null,
    ...changes,
  };
}

export class FakeHost implements Host {
  live = true;
  readonly about = { ...ABOUT, view: "partition", stage: "partitioned" };
  readonly selection = selectionOf("", "forward");
  readonly calls: { name: string; args: never }[] = [];
  state = partitionState();
  readonly answers: Record<string, ((request: PartitionRequest) => unknown) | undefined> = {
    "partition.preview": (request: PartitionRequest) => answerTo(request),
    "partition.apply": (request: PartitionRequest) => answerTo(request),
    "partition.move": () => ({ text: "Undone: erase add" }),
  };
  private readonly listeners = new Set<(kinds: ReadonlySet<string>) => void>();

  document(kind: string): Promise<never> {
    const found = kind === "partition" ? partitionDocument() : kind === "partition.state" ? this.state : null;
    return found ? Promise.resolve(found as never) : Promise.reject(new Error(`no ${kind}`));
  }

  has(): boolean {
    return true;
  }

  onChange(listener: (kinds: ReadonlySet<string>) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  get listening(): number {
    return this.listeners.size;
  }

  change(...kinds: string[]): void {
    for (const listener of this.listeners) listener(new Set(kinds));
  }

  call<K extends keyof Calls>(name: K, args: Calls[K]["arguments"]): Promise<Calls[K]["result"]> {
    this.calls.push({ name, args: args as never });
    const answer = this.answers[name];
    if (!answer) return Promise.reject(new Error(`no ${name}`));
    try {
      return Promise.resolve(answer(args as never as PartitionRequest) as Calls[K]["result"]);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  onEvent(): () => void {
    return () => undefined;
  }

  named(name: string): PartitionRequest[] {
    return this.calls.filter((call) => call.name === name).map((call) => call.args);
  }

  pick(handles: number[], node: string | null = null): void {
    this.selection.set({ method: "forward", handles, node } satisfies Picked);
  }
}

/** One column of boxes, 100 x 30, 20 apart; "inner" holds mul and relu. */
export function scene(): GraphScene {
  const module = sceneBox("module", 0, -10, 140, 120, 100, null, [3, 4], true);
  const boxes = NAMES.map((_, row) =>
    sceneBox("node", row, 0, row * 50, 100, 30, row === 3 || row === 4 ? module : null, [row], false),
  );
  const all = [module, ...boxes];
  const at = (x: number, y: number) =>
    all.filter((b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height);
  return {
    document: { dtype: StringColumn.from(NAMES), shape: StringColumn.from(NAMES) } as unknown as GraphDocument,
    boxes: all,
    extent: { x: -10, y: 0, width: 120, height: 350 },
    boxAt: (x, y) => at(x, y).at(-1) ?? null,
    boxesIn: (rect) => boxes.filter((b) => b.y < rect.y + rect.height && rect.y < b.y + b.height && b.x < rect.x + rect.width && rect.x < b.x + b.width),
    boxOf: (row) => boxes[row]!,
  };
}

function sceneBox(
  kind: "node" | "module", index: number, x: number, y: number, width: number, height: number,
  parent: SceneBox | null, members: number[], open: boolean,
): SceneBox {
  return {
    kind, index, open, parent, x, y, width, height, depth: parent ? 1 : 0,
    title: kind === "node" ? NAMES[index]! : "inner", detail: "", members: () => Int32Array.from(members),
  };
}

/** Long enough for the question that waits for strokes to end, and its answers. */
export const settled = () => new Promise((resolve) => setTimeout(resolve, 90));
