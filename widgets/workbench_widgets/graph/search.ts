// Finding nodes and modules by text: words that all must match, `field:word` for one field, or a regular expression.
import type { GraphModel } from "./model.ts";

export interface Hit {
  /** Row of a node, or of a module. */
  readonly kind: "node" | "module";
  readonly index: number;
}

export interface Found {
  readonly hits: readonly Hit[];
  /** Why the query can't be read; empty if it can. */
  readonly problem: string;
}

const FIELDS = [
  "name",
  "op",
  "kind",
  "shape",
  "dtype",
  "attributes",
  "source",
  "tag",
  "module",
  "type",
] as const;
type Field = (typeof FIELDS)[number];
const ANYWHERE: readonly Field[] = ["name", "op", "shape", "dtype", "attributes", "source", "tag"];

interface Term {
  readonly fields: readonly Field[];
  readonly test: (text: string) => boolean;
}

/** With `regex` the whole query is one expression; without, `/…/` is. */
export function search(model: GraphModel, query: string, regex = false): Found {
  let terms: readonly Term[];
  try {
    terms = parse(query.trim(), regex);
  } catch (error) {
    return { hits: [], problem: error instanceof Error ? error.message : String(error) };
  }
  if (!terms.length) return { hits: [], problem: "" };
  const hits: Hit[] = [];
  const { document } = model;
  const tests = terms.map((term) => memoized(term, model));
  for (let node = 0; node < model.nodes; node++) {
    if (tests.every((test) => test(node))) hits.push({ kind: "node", index: node });
  }
  // A module is found by its own name and class, so that its nodes are not all hits.
  for (let module = 1; module < model.modules; module++) {
    const texts = [document.module_name.get(module), document.module_type.get(module)];
    const own = (term: Term) =>
      (term.fields === ANYWHERE || term.fields.includes("type")) &&
      texts.some((text) => term.test(text));
    if (terms.every(own)) hits.push({ kind: "module", index: module });
  }
  return { hits, problem: "" };
}

function parse(query: string, regex: boolean): Term[] {
  if (!query) return [];
  const slashed = /^\/(.*)\/(i?)$/.exec(query);
  if (regex || slashed) {
    const expression = new RegExp(slashed ? slashed[1]! : query, "i");
    return [{ fields: ANYWHERE, test: (text) => expression.test(text) }];
  }
  const words = query.match(/[a-z]+:"[^"]*"|"[^"]*"|\S+/gi) ?? [];
  return words.map((word) => {
    const named = /^([a-z]+):(.*)$/i.exec(word);
    const field = FIELDS.find((known) => known === named?.[1]?.toLowerCase());
    const needle = (field && named ? named[2]! : word).replaceAll('"', "").toLowerCase();
    return {
      fields: field ? [field] : ANYWHERE,
      test: (text) => text.toLowerCase().includes(needle),
    };
  });
}

/** Tests each different text of a column once. */
function memoized(term: Term, model: GraphModel): (node: number) => boolean {
  const { document } = model;
  const byField = term.fields.map((field) => {
    if (field === "module" || field === "type") {
      const texts = field === "module" ? document.module_path : document.module_type;
      const hit = Array.from({ length: model.modules }, (_, module) =>
        term.test(texts.get(module)),
      );
      return (node: number) => hit[document.module[node]!]!;
    }
    const column = document[field];
    const hit = column.values.map((text) => term.test(text));
    return (node: number) => hit[column.codes[node]!]!;
  });
  return (node) => byField.some((test) => test(node));
}
