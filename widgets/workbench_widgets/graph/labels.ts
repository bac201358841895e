// What stands on a box, and how much room it takes.
import { count } from "../common/format.ts";
import type { GraphModel } from "./model.ts";

export const TITLE_SIZE = 12;
export const DETAIL_SIZE = 10.5;
export const HEADER = 24;
const PAD = 20;
const NARROWEST = 76;
const WIDEST = 250;

/** The operator without its namespace and overload. */
export function shortOperator(op: string): string {
  const plain = op.replace(/^(torch\.ops\.)?/, "").replaceAll("::", ".");
  const parts = plain.split(".");
  return parts.length >= 2 ? (parts[1] ?? plain) : plain;
}

export function nodeTitle(model: GraphModel, node: number): string {
  const { kind, name, op } = model.document;
  switch (kind.get(node)) {
    case "placeholder":
    case "parameter":
    case "buffer":
    case "constant":
    case "attribute":
      return name.get(node);
    case "delegate":
      return model.document.stage === "program"
        ? name.get(node)
        : `call ${model.document.module_type.get(model.document.module[node]!) || name.get(node)}`;
    default:
      return shortOperator(op.get(node));
  }
}

export function nodeDetail(model: GraphModel, node: number): string {
  const { shape, dtype } = model.document;
  const sizes = shape.get(node);
  if (!sizes) return dtype.get(node);
  const parts = sizes.split("; ");
  const types = dtype.get(node).split("; ");
  const first = `${types[0] ?? ""}${parts[0]!.replace("(", "[").replace(")", "]")}`;
  return parts.length > 1 ? `${first} +${parts.length - 1}` : first;
}

export function moduleDetail(model: GraphModel, item: number): string {
  const { module_type: types, module_kind: kinds } = model.document;
  const index = model.index(item);
  const type = types.get(index).split(".").pop() ?? "";
  const nodes = model.count(item);
  const much = `${count(nodes)} node${nodes === 1 ? "" : "s"}`;
  if (model.kind(item) === "fold")
    return `×${model.folded(item).length} ${type || kinds.get(index)} · ${much}`;
  const word =
    kinds.get(index) === "module" ? type : type ? `${kinds.get(index)} ${type}` : kinds.get(index);
  return word ? `${word} · ${much}` : much;
}

export interface Size {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly detail: string;
}

export type Measure = (text: string, size: number, bold?: boolean) => number;

/** Widths of texts, remembered; an estimate where there is no canvas. */
export function makeMeasure(font: string): Measure {
  const pen = document.createElement("canvas").getContext("2d");
  const known = new Map<string, number>();
  return (text, size, bold = false) => {
    const key = `${bold ? "b" : ""}${size} ${text}`;
    let width = known.get(key);
    if (width === undefined) {
      if (pen) {
        pen.font = `${bold ? "600 " : ""}${size}px ${font || "sans-serif"}`;
        // Widths that grow with the scale: without, small text is wider than a small part of large
        // text.
        pen.textRendering = "geometricPrecision";
        width = pen.measureText(text).width;
      } else {
        width = text.length * size * 0.56;
      }
      known.set(key, width);
    }
    return width;
  };
}

/** Text that fits into a width, cut at its end. */
export function fitText(
  text: string,
  size: number,
  width: number,
  measure: Measure,
  bold = false,
): string {
  if (measure(text, size, bold) <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${text.slice(0, middle)}…`, size, bold) <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

export class Labels {
  private readonly model: GraphModel;
  private readonly measure: Measure;
  private readonly known = new Map<number, Size>();

  constructor(model: GraphModel, measure: Measure) {
    this.model = model;
    this.measure = measure;
  }

  /** The size of a closed box. */
  of(item: number): Size {
    let size = this.known.get(item);
    if (!size) this.known.set(item, (size = this.make(item)));
    return size;
  }

  private make(item: number): Size {
    const { model } = this;
    const node = item < model.nodes;
    const title = node ? nodeTitle(model, item) : model.title(item);
    const detail = node ? nodeDetail(model, item) : moduleDetail(model, item);
    const wide =
      Math.max(
        this.measure(title, TITLE_SIZE, !node) + (node ? 0 : 14),
        this.measure(detail, DETAIL_SIZE),
      ) + PAD;
    // Steps of 8: boxes of nearly equal texts have equal sizes, and equal blocks one layout.
    const width = Math.min(Math.max(Math.ceil(wide / 8) * 8, NARROWEST), WIDEST);
    return { width, height: detail ? 38 : 26, title, detail };
  }
}
