import { describe, expect, it } from "vitest";
import golden from "./golden.json";
import { StringColumn, unpack } from "./unpack.ts";

interface Golden {
  readonly name: string;
  readonly count: number;
  readonly exact: boolean;
  readonly nothing: string | null;
  readonly inner: readonly { readonly title: string; readonly ratio: number | null }[];
  readonly table: Readonly<Record<string, number>>;
  readonly names: StringColumn;
  readonly f64: Float64Array;
  readonly f32: Float32Array;
  readonly i32: Int32Array;
  readonly u32: Uint32Array;
  readonly u16: Uint16Array;
  readonly u8: Uint8Array;
  readonly empty: Float64Array;
}

const bytesOf = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// What pack.py wrote; tests/unit/widgets/test_pack.py holds Python against the same bytes.
describe.each([
  ["plain", 3],
  ["deflated", 1000],
] as const)("a %s document of Python", (name, rows) => {
  it("is read as it was written", async () => {
    const document = await unpack<Golden>(bytesOf(golden[name]));
    expect(document.name).toBe("Größe → 1");
    expect(document.count).toBe(rows);
    expect(document.exact).toBe(true);
    expect(document.nothing).toBeNull();
    expect(document.inner).toEqual([
      { title: "a", ratio: 0.5 },
      { title: "b", ratio: null },
    ]);
    expect(document.table).toEqual({ x: 1, y: -2 });
    expect(document.names).toBeInstanceOf(StringColumn);
    expect(document.names.length).toBe(rows);
    expect(document.names.values).toEqual(["row 0", "row 1", "row 2"]);
    expect(document.names.get(rows - 1)).toBe(`row ${(rows - 1) % 3}`);
    expect(document.names.get(rows)).toBe("");
    expect([...document.f64.subarray(0, 3)]).toEqual([NaN, Infinity, 0]);
    expect(document.f32[2]).toBe(0.5);
    expect(document.i32[rows - 1]).toBe(1 - rows);
    expect(document.u32[2]).toBe(4_000_000_002);
    expect(document.u16).toBeInstanceOf(Uint16Array);
    expect(document.u16[rows - 1]).toBe(rows - 1);
    expect(document.u8[rows - 1]).toBe((rows - 1) % 200);
    expect(document.empty.length).toBe(0);
  });

  it("is read from a view that begins anywhere", async () => {
    const bytes = bytesOf(golden[name]);
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    const document = await unpack<Golden>(new DataView(shifted.buffer, 3, bytes.length));
    expect(document.f64.length).toBe(rows);
    expect(document.f64.byteOffset % 8).toBe(0);
  });
});

it.each([
  ["nothing", new Uint8Array(0)],
  ["other bytes", new TextEncoder().encode("this is something else")],
])("%s is no document", async (_, bytes) => {
  await expect(unpack(bytes)).rejects.toThrow("no document");
});

it("a document that was cut off is refused", async () => {
  const bytes = bytesOf(golden.plain);
  await expect(unpack(bytes.subarray(0, bytes.length - 40))).rejects.toThrow();
});

it("a column of text holds each text once", () => {
  const column = StringColumn.from(["b", "a", "b"]);
  expect([...column.codes]).toEqual([0, 1, 0]);
  expect(column.values).toEqual(["b", "a"]);
});
