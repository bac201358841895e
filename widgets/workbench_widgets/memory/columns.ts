// The table behind the picture, and the legend below it.
import type { MemoryDocument } from "../contract.ts";
import { h } from "../common/dom.ts";
import { count } from "../common/format.ts";
import { hatchCss } from "../common/palette.ts";
import type { TableColumn } from "../common/table.ts";
import { kindLook } from "./paint.ts";
import { KINDS } from "./scene.ts";
import { shortPath } from "./side.ts";

/** The columns of the table of tensors. */
export function tensorColumns(document: MemoryDocument): TableColumn[] {
  const number = (name: string, title: string, column: ArrayLike<number>): TableColumn => ({
    name,
    title,
    numeric: true,
    text: (row) => count(column[row]!),
    value: (row) => column[row]!,
  });
  const plain = (
    name: string,
    title: string,
    column: { get(row: number): string },
  ): TableColumn => ({ name, title, text: (row) => column.get(row) });
  return [
    plain("name", "Tensor", document.name),
    number("arena", "Arena", document.arena),
    number("offset", "Offset", document.offset),
    number("bytes", "Bytes", document.bytes),
    number("first", "First", document.first),
    number("last", "Last", document.last),
    {
      name: "producer",
      title: "Made by",
      text: (row) => document.moment_name.get(document.producer[row]!),
    },
    { name: "kind", title: "Kind", text: (row) => kindLook(document.kind[row]!).name },
    { name: "peak", title: "At peak", text: (row) => (document.at_peak[row] ? "yes" : "") },
    { name: "pinned", title: "Pinned", text: (row) => (document.pinned[row] ? "yes" : "") },
    plain("shape", "Shape", document.shape),
    plain("dtype", "Type", document.dtype),
    {
      ...plain("source", "Source", document.source),
      text: (row) => shortPath(document.source.get(row)),
      hint: (row) => document.source.get(row),
    },
  ];
}

/** What colours and hatches mean; `gathered` small tensors stand under marks of others. */
export function legend(document: MemoryDocument, gathered: number): (Node | string)[] {
  const muted = (text: string) => h("span.wb-muted", {}, text);
  const swatch = (style: string) => h("span.wb-swatch", { style });
  const kinds = [...KINDS.keys()].filter((kind) => document.kind.includes(kind));
  const empty = `background-image:${hatchCss("cross", "var(--wb-error-color)")}`;
  return [
    ...kinds.map((kind) => {
      const look = kindLook(kind);
      const hatch = hatchCss(look.hatch, "rgb(255 255 255 / 70%)");
      const image = look.hatch === "none" ? "" : `background-image:${hatch};`;
      return h("span", {}, swatch(`background-color:${look.color};${image}`), look.name);
    }),
    muted("strong: alive at the peak"),
    h("span", {}, swatch(empty), "empty at the peak"),
    gathered ? muted(`${count(gathered)} small tensors gathered`) : "",
    document.origin === "file" ? muted("lifetimes read off the instructions") : "",
  ];
}
