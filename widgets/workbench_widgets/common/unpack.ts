// Documents from bytes; the format is described in pack.py.

/** A column of text: for each row a code, for each code its text. */
export class StringColumn {
  readonly codes: Uint32Array;
  readonly values: readonly string[];

  constructor(codes: Uint32Array, values: readonly string[]) {
    this.codes = codes;
    this.values = values;
  }

  get length(): number {
    return this.codes.length;
  }

  /** The text of a row; empty beyond the end. */
  get(row: number): string {
    return this.values[this.codes[row] ?? -1] ?? "";
  }

  static from(items: Iterable<string>): StringColumn {
    const known = new Map<string, number>();
    const codes: number[] = [];
    for (const item of items) {
      let code = known.get(item);
      if (code === undefined) known.set(item, (code = known.size));
      codes.push(code);
    }
    return new StringColumn(Uint32Array.from(codes), [...known.keys()]);
  }
}

export type Column =
  | Float64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Uint16Array
  | Uint8Array;

const ARRAYS = {
  float64: Float64Array,
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  uint16: Uint16Array,
  uint8: Uint8Array,
} as const;

const MAGIC = 0x31444257; // "WBD1"
const DEFLATED = 1;

async function inflate(data: Uint8Array): Promise<ArrayBuffer> {
  const stream = new Blob([data as Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** Reads what pack.py wrote. The columns are views of one buffer. */
export async function unpack<T>(data: DataView | Uint8Array | ArrayBuffer): Promise<T> {
  const bytes =
    data instanceof ArrayBuffer
      ? new Uint8Array(data)
      : new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < 12 || head.getUint32(0, true) !== MAGIC) {
    throw new Error("These bytes are no document of the workbench.");
  }
  const packed = bytes.subarray(8);
  // A copy starts at offset 0, so that columns of eight bytes are aligned.
  const body = head.getUint32(4, true) & DEFLATED ? await inflate(packed) : packed.slice().buffer;
  const length = new DataView(body).getUint32(0, true);
  const start = 4 + length;
  const header: unknown = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, length)));
  return restore(header, body, start) as T;
}

function restore(value: unknown, body: ArrayBuffer, start: number): unknown {
  if (Array.isArray(value)) return value.map((item) => restore(item, body, start));
  if (typeof value !== "object" || value === null) return value;
  if ("$column" in value) {
    const [dtype, offset, rows] = value.$column as [keyof typeof ARRAYS, number, number];
    return new ARRAYS[dtype](body, start + offset, rows);
  }
  if ("$strings" in value) {
    const [codes, values] = value.$strings as [unknown, string[]];
    return new StringColumn(restore(codes, body, start) as Uint32Array, values);
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, restore(item, body, start)]),
  );
}
