// What sort of work a node does: a colour and a hatch for each sort.
import { swatch, type Swatch } from "../common/palette.ts";
import { shortOperator } from "./labels.ts";
import type { GraphModel } from "./model.ts";

export interface Category {
  readonly title: string;
  readonly swatch: Swatch | null;
}

export const CATEGORIES = {
  product: { title: "Products and convolutions", swatch: swatch(0) },
  pointwise: { title: "Elementwise", swatch: swatch(2) },
  reduction: { title: "Norms, reductions, pooling", swatch: swatch(3) },
  movement: { title: "Views and copies", swatch: { color: "#8c959f", hatch: "horizontal" } },
  delegate: { title: "Delegates", swatch: swatch(1) },
  control: { title: "Control flow", swatch: swatch(5) },
  quantize: { title: "Quantization", swatch: swatch(4) },
  boundary: { title: "Inputs and outputs", swatch: null },
  constant: { title: "Constants", swatch: { color: "#8c959f", hatch: "dots" } },
} as const satisfies Record<string, Category>;

export type CategoryName = keyof typeof CATEGORIES;

const PRODUCTS = /conv|linear|^mm$|bmm|addmm|matmul|attention|einsum|^dot$|lstm|gru/;
const REDUCTIONS =
  /norm|softmax|mean|^sum|pool|amax|amin|^max$|^min$|^var|^std|cumsum|^any|^all$|argm|topk|prod/;
const MOVES =
  /view|reshape|permute|transpose|^t$|t_copy|cat$|concat|stack|slice|select|split|chunk|expand|repeat|squeeze|flatten|getitem|clone|copy|alias|^to$|_to_|embedding|gather|index|scatter|pad|roll|flip|unbind|detach|lift|empty|full|zeros|ones|arange|move|free|contiguous/;
const QUANTIZE = /quantize|fake_quant|choose_qparams/;
const BY_KIND: Readonly<Record<string, CategoryName>> = {
  placeholder: "boundary",
  output: "boundary",
  parameter: "constant",
  buffer: "constant",
  constant: "constant",
  attribute: "constant",
  delegate: "delegate",
  control: "control",
};

export function categoryOf(kind: string, op: string): CategoryName {
  const fixed = BY_KIND[kind];
  if (fixed) return fixed;
  const name = shortOperator(op).toLowerCase();
  if (QUANTIZE.test(name)) return "quantize";
  if (PRODUCTS.test(name)) return "product";
  if (REDUCTIONS.test(name)) return "reduction";
  if (MOVES.test(name)) return "movement";
  return "pointwise";
}

/** The category of an item; of a container that of what it is. */
export class Categories {
  private readonly known = new Map<string, CategoryName>();

  of(model: GraphModel, item: number): CategoryName | null {
    const { kind, op, module_kind: groups } = model.document;
    if (item >= model.nodes) {
      const group = groups.get(model.index(item));
      return group === "delegate"
        ? "delegate"
        : group === "control" || group === "branch"
          ? "control"
          : null;
    }
    // By text: each stage numbers its texts anew.
    const key = `${kind.get(item)} ${op.get(item)}`;
    let known = this.known.get(key);
    if (!known) this.known.set(key, (known = categoryOf(kind.get(item), op.get(item))));
    return known;
  }
}
