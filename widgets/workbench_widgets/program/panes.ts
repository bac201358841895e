// The tables beside the map: instructions, values, operators, delegates.
import type {
  ProgramDelegateDocument,
  ProgramDocument,
  ProgramMethodDocument,
} from "../contract.ts";
import { h } from "../common/dom.ts";
import { bytes, count } from "../common/format.ts";
import type { TableColumn } from "../common/table.ts";
import { facts } from "../common/tooltip.ts";
import type { StringColumn } from "../common/unpack.ts";

const text = (name: string, title: string, column: StringColumn): TableColumn => ({
  name,
  title,
  text: (row) => column.get(row),
});

const size = (name: string, title: string, column: ArrayLike<number>): TableColumn => ({
  name,
  title,
  numeric: true,
  text: (row) => (column[row] ? bytes(column[row]!) : ""),
  value: (row) => column[row]!,
  hint: (row) => `${count(column[row]!)} bytes`,
});

/** Bytes as a bar with their number. */
const bar = (name: string, title: string, column: ArrayLike<number>): TableColumn => {
  const most = Math.max(1, ...Array.from(column));
  return {
    ...size(name, title, column),
    cell: (row) =>
      h(
        "span.wb-program-amount",
        {},
        column[row]
          ? h("span.wb-bar", { style: `width:${Math.max(1, (60 * column[row]!) / most)}px` })
          : null,
        h("span", {}, column[row] ? bytes(column[row]!) : "–"),
      ),
  };
};

/** The end of a path; the whole of it in the tooltip. */
export function shortSource(source: string): string {
  const parts = source.split("/");
  return parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : source;
}

export function instructionColumns(document: ProgramMethodDocument): TableColumn[] {
  const chains = document.chain.some((chain) => chain !== 0);
  return [
    {
      name: "index",
      title: "#",
      numeric: true,
      text: (row) =>
        chains ? `${document.chain[row]}.${document.index[row]}` : String(document.index[row]),
      value: (row) => row,
    },
    {
      ...text("name", "Operator", document.name),
      hint: (row) => `${document.kind.get(row)}: ${document.name.get(row)}`,
    },
    text("arguments", "Arguments", document.arguments),
    text("results", "Results", document.results),
    size("constants", "Constants", document.constant_bytes),
    size("written", "Writes", document.written_bytes),
    text("node", "Node", document.node),
    text("module", "Module", document.module),
    {
      name: "source",
      title: "Source",
      text: (row) => shortSource(document.source.get(row)),
      hint: (row) => document.source.get(row),
    },
    {
      name: "handles",
      title: "Handles",
      text: (row) =>
        [
          ...document.handles.subarray(
            document.handle_start[row]!,
            document.handle_start[row + 1]!,
          ),
        ].join(" "),
    },
  ];
}

export function valueColumns(document: ProgramMethodDocument): TableColumn[] {
  const uses = (row: number) => document.use_start[row + 1]! - document.use_start[row]!;
  return [
    { name: "index", title: "#", numeric: true, text: (row) => `%${row}`, value: (row) => row },
    text("kind", "Kind", document.value_kind),
    text("value", "Value", document.value_text),
    size("bytes", "Bytes", document.value_bytes),
    text("place", "Place", document.value_place),
    { name: "uses", title: "Uses", numeric: true, text: (row) => String(uses(row)), value: uses },
  ];
}

const KERNELS = ["✗ missing", "✓ in our runtime", "the backend's"] as const;

export function operatorColumns(document: ProgramDocument): TableColumn[] {
  const several = document.methods.length > 1;
  return [
    ...(several ? [text("method", "Method", document.operator_method)] : []),
    text("name", "Operator", document.operator_name),
    {
      name: "calls",
      title: "Calls",
      numeric: true,
      text: (row) => count(document.operator_calls[row]!),
      value: (row) => document.operator_calls[row]!,
    },
    bar("constants", "Constants", document.operator_constant_bytes),
    bar("written", "Writes", document.operator_written_bytes),
    {
      name: "kernel",
      title: "Kernel",
      text: (row) => KERNELS[document.operator_kernel[row]!] ?? "",
      hint: (row) =>
        document.operator_kernel[row] === 0
          ? "Our runtime has no such kernel: the program does not load there"
          : (KERNELS[document.operator_kernel[row]!] ?? ""),
    },
  ];
}

export function delegateColumns(document: ProgramDocument): TableColumn[] {
  return [
    ...(document.methods.length > 1 ? [text("method", "Method", document.delegate_method)] : []),
    {
      name: "index",
      title: "#",
      numeric: true,
      text: (row) => String(document.delegate_index[row]),
      value: (row) => document.delegate_index[row]!,
    },
    text("backend", "Backend", document.delegate_backend),
    bar("bytes", "Bytes", document.delegate_bytes),
    {
      name: "format",
      title: "Opened as",
      text: (row) => document.delegate_format.get(row) || "not known",
    },
    text("specs", "Compile specs", document.delegate_specs),
  ];
}

export function partColumns(document: ProgramDocument): TableColumn[] {
  return [
    text("name", "Part", document.part_name),
    text("kind", "Kind", document.part_kind),
    size("bytes", "Bytes", document.part_bytes),
    {
      name: "start",
      title: "At byte",
      numeric: true,
      text: (row) => count(document.part_start[row]!),
      value: (row) => document.part_start[row]!,
    },
    text("detail", "Detail", document.part_detail),
    text("operator", "Used by", document.part_operator),
    {
      name: "uses",
      title: "Uses",
      numeric: true,
      text: (row) => String(document.part_uses[row] || ""),
      value: (row) => document.part_uses[row]!,
    },
    text("module", "Module", document.part_module),
    {
      name: "same",
      title: "Same as",
      text: (row) => (document.part_same[row]! < 0 ? "" : `group ${document.part_same[row]! + 1}`),
    },
  ];
}

export function stepColumns(document: ProgramDelegateDocument): TableColumn[] {
  return [
    { name: "index", title: "#", numeric: true, text: (row) => String(row), value: (row) => row },
    text("name", "Computes", document.step_name),
    text("inputs", "Inputs", document.step_inputs),
    text("outputs", "Outputs", document.step_outputs),
    text("detail", "Options", document.step_detail),
    text("node", "Node", document.step_node),
  ];
}

/** What a delegate is, beside its steps: header, parts, values, texts, first bytes. */
export function delegateDetails(document: ProgramDelegateDocument): HTMLElement {
  const folded = (title: string, open: boolean, body: Node) =>
    h("details", { open }, h("summary", {}, title), body);
  const sections = document.section_name.length
    ? facts(
        Array.from(
          { length: document.section_name.length },
          (_, row) =>
            [
              document.section_name.get(row),
              `${bytes(document.section_bytes[row]!)} at byte ${count(document.section_start[row]!)}`,
            ] as const,
        ),
      )
    : null;
  const values = Array.from(
    { length: document.value_name.length },
    (_, row) =>
      `${document.value_name.get(row)}  ${document.value_role.get(row).padEnd(9)}  ${document.value_text.get(row)}`,
  );
  const hex = Array.from({ length: document.hex.length }, (_, row) => document.hex.get(row));
  const texts = Array.from({ length: document.texts.length }, (_, row) => document.texts.get(row));
  return h(
    "div.wb-program-delegate",
    {},
    h("h4", {}, `${document.backend} ${document.index}`),
    document.note ? h("p.wb-program-warning", { role: "status" }, document.note) : null,
    document.format
      ? null
      : h(
          "p.wb-muted",
          {},
          "The format of this blob is not known here: its bytes and the texts in them.",
        ),
    facts([["opened as", document.format || null], ...Object.entries(document.facts)]),
    sections ? folded("Parts", true, sections) : null,
    values.length
      ? folded(`${count(values.length)} values`, false, h("pre", {}, values.join("\n")))
      : null,
    texts.length
      ? folded(`${count(texts.length)} texts`, !document.format, h("pre", {}, texts.join("\n")))
      : null,
    folded("First bytes", !document.format, h("pre", {}, hex.join("\n"))),
  );
}
