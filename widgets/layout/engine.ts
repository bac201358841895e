// The layout engine (C++, compiled to WebAssembly) behind one typed function. Runs in the page, so that a view answers
// while the kernel is busy, and in a report without any kernel.
import bytes from "./layout.wasm";

/** n boxes in topological order and m edges; all lengths in px. See layout.h. */
export interface LayoutInput {
  width: ArrayLike<number>;
  height: ArrayLike<number>;
  /** Index of a box; -1: comes in from the top border. */
  src: ArrayLike<number>;
  /** Index of a box; -1: leaves through the bottom border. */
  dst: ArrayLike<number>;
  /** Heavier edges are kept straight first; ones where it is left out. */
  weight?: ArrayLike<number>;
  /** Where a box stood before (top left), NaN for a new one: it stays there if it can. */
  anchor_x?: ArrayLike<number>;
  anchor_y?: ArrayLike<number>;
  options?: LayoutOptions;
}

export interface LayoutOptions {
  gap_x?: number;
  gap_y?: number;
  margin?: number;
  sweeps?: number;
  max_span?: number;
}

export interface LayoutResult {
  /** Top left of each box. */
  x: Float32Array;
  y: Float32Array;
  /** Of everything with its margin. */
  width: number;
  height: number;
  /** Edge e has the points edge_start[e] up to edge_start[e + 1]. */
  edge_start: Int32Array;
  /** x, y, x, y, ... of orthogonal polylines. */
  points: Float32Array;
}

export interface LayoutEngine {
  /** Throws a LayoutError for sizes, indices or options out of range. */
  layout(input: LayoutInput): LayoutResult;
  /** Bytes of memory that the engine holds; grows to what the largest graph needed, and no further. */
  readonly memory: number;
}

export class LayoutError extends Error {
  override name = "LayoutError";
  constructor(
    message: string,
    /** The box or edge at fault, -1: none. */
    readonly index = -1,
  ) {
    super(message);
  }
}

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  layout_alloc(size: number): number;
  layout_free(pointer: number): void;
  layout_run(
    n: number, m: number, boxes: number, edges: number,
    gapX: number, gapY: number, margin: number, sweeps: number, maxSpan: number,
  ): number;
  layout_fault_index(): number;
  layout_fault_text(): number;
  layout_x(): number;
  layout_y(): number;
  layout_width(): number;
  layout_height(): number;
  layout_edge_start(): number;
  layout_points(): number;
  layout_point_count(): number;
  layout_release(): void;
}

// The C++ library is linked with its file functions; nothing here ever calls them.
const refuse = (): number => 52; // ENOSYS
const imports = {
  wasi_snapshot_preview1: new Proxy<Record<string, () => number>>({}, { get: () => refuse }),
};

let loaded: Promise<LayoutEngine> | undefined;

/** Compiles the engine at the first call; all views of a page share it. */
export function loadLayout(): Promise<LayoutEngine> {
  loaded ??= WebAssembly.compile(bytes as BufferSource).then(async (module) => {
    const start = async (): Promise<Exports> => {
      const instance = await WebAssembly.instantiate(module, imports);
      const exports = instance.exports as unknown as Exports;
      exports._initialize();
      return exports;
    };
    return new Engine(await start(), module);
  });
  return loaded;
}

class Engine implements LayoutEngine {
  constructor(
    private wasm: Exports,
    private readonly module: WebAssembly.Module,
  ) {}

  get memory(): number {
    return this.wasm.memory.buffer.byteLength;
  }

  layout(input: LayoutInput): LayoutResult {
    const [n, m] = [input.width.length, input.src.length];
    check(input, n, m);
    try {
      return this.run(input, n, m);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      // Out of memory ends in a trap, after which the instance is not to be trusted.
      this.wasm = new WebAssembly.Instance(this.module, imports).exports as unknown as Exports;
      this.wasm._initialize();
      throw new LayoutError(`the graph of ${n} boxes and ${m} edges is too large to be laid out`);
    }
  }

  private run(input: LayoutInput, n: number, m: number): LayoutResult {
    const { wasm } = this;
    const boxes = this.allocate(16 * n);
    const edges = this.allocate(12 * m);
    try {
      // Views are made after the last allocation: memory that grows detaches the older ones.
      const ofBoxes = new Float32Array(wasm.memory.buffer, boxes, 4 * n);
      ofBoxes.set(input.width, 0);
      ofBoxes.set(input.height, n);
      const anchored = input.anchor_x !== undefined && input.anchor_y !== undefined;
      if (anchored) ofBoxes.set(input.anchor_x!, 2 * n);
      if (anchored) ofBoxes.set(input.anchor_y!, 3 * n);
      if (!anchored) ofBoxes.fill(NaN, 2 * n);
      const ofEdges = new Int32Array(wasm.memory.buffer, edges, 3 * m);
      ofEdges.set(input.src, 0);
      ofEdges.set(input.dst, m);
      if (input.weight) ofEdges.set(input.weight, 2 * m);
      else ofEdges.fill(1, 2 * m);
      const { gap_x = 24, gap_y = 36, margin = 16, sweeps = 8, max_span = 32 } = input.options ?? {};
      if (wasm.layout_run(n, m, boxes, edges, gap_x, gap_y, margin, sweeps, max_span) !== 0) {
        throw new LayoutError(this.text(wasm.layout_fault_text()), wasm.layout_fault_index());
      }
      const { buffer } = wasm.memory;
      return {
        x: new Float32Array(buffer, wasm.layout_x(), n).slice(),
        y: new Float32Array(buffer, wasm.layout_y(), n).slice(),
        width: wasm.layout_width(),
        height: wasm.layout_height(),
        edge_start: new Int32Array(buffer, wasm.layout_edge_start(), m + 1).slice(),
        points: new Float32Array(buffer, wasm.layout_points(), 2 * wasm.layout_point_count()).slice(),
      };
    } finally {
      wasm.layout_release();
      wasm.layout_free(boxes);
      wasm.layout_free(edges);
    }
  }

  private allocate(size: number): number {
    const pointer = this.wasm.layout_alloc(Math.max(size, 4));
    if (pointer === 0) throw new WebAssembly.RuntimeError("out of memory");
    return pointer;
  }

  private text(pointer: number): string {
    const all = new Uint8Array(this.wasm.memory.buffer);
    return new TextDecoder().decode(all.subarray(pointer, all.indexOf(0, pointer)));
  }
}

function check(input: LayoutInput, n: number, m: number): void {
  const columns: [string, ArrayLike<number> | undefined, number][] = [
    ["height", input.height, n],
    ["dst", input.dst, m],
    ["weight", input.weight, m],
    ["anchor_x", input.anchor_x, n],
    ["anchor_y", input.anchor_y, n],
  ];
  for (const [name, column, length] of columns) {
    if (column && column.length !== length) {
      throw new LayoutError(`${name} has ${column.length} values, expected ${length}`);
    }
  }
  if ((input.anchor_x === undefined) !== (input.anchor_y === undefined)) {
    throw new LayoutError("anchor_x and anchor_y come together");
  }
}
