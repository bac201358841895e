// Documents by hand, for tests.
import type { GraphDocument } from "../contract.ts";
import { StringColumn } from "../common/unpack.ts";

export interface FakeNode {
  readonly name: string;
  readonly op?: string;
  readonly kind?: string;
  readonly shape?: string;
  readonly module?: string;
  readonly handles?: readonly number[];
  readonly tag?: string;
  readonly bytes?: number;
  readonly source?: string;
  readonly attributes?: string;
}

export interface FakeModule {
  readonly path: string;
  readonly kind?: string;
  readonly type?: string;
  readonly hash?: number;
}

export interface Fake {
  readonly nodes: readonly FakeNode[];
  /** Pairs of node names. */
  readonly edges: readonly (readonly [string, string])[];
  /** Without the root; parents first; what a path begins with holds it. */
  readonly modules?: readonly FakeModule[];
  readonly stage?: string;
}

export function fakeDocument(fake: Fake): GraphDocument {
  const { nodes } = fake;
  const modules: readonly FakeModule[] = [{ path: "" }, ...(fake.modules ?? [])];
  const row = new Map(nodes.map((node, at) => [node.name, at]));
  const at = new Map(modules.map((module, index) => [module.path, index]));
  const parentOf = (path: string): number => {
    const above = path.slice(0, Math.max(0, path.lastIndexOf(".")));
    return at.get(above) ?? (above ? parentOf(above) : 0);
  };
  const text = (pick: (node: FakeNode) => string) => StringColumn.from(nodes.map(pick));
  const handles = nodes.map((node, index) => node.handles ?? [index + 1]);
  const start = new Int32Array(nodes.length + 1);
  handles.forEach((own, index) => (start[index + 1] = start[index]! + own.length));
  const bytes = Float64Array.from(nodes, (node) => node.bytes ?? 4);
  const src = Int32Array.from(fake.edges, ([from]) => row.get(from)!);
  return {
    stage: fake.stage ?? "edge",
    method: "forward",
    name: text((node) => node.name),
    op: text((node) => node.op ?? `aten.${node.name}.default`),
    kind: text((node) => node.kind ?? "call"),
    shape: text((node) => node.shape ?? "(1)"),
    dtype: text(() => "float32"),
    attributes: text((node) => node.attributes ?? ""),
    bytes,
    module: Int32Array.from(nodes, (node) => at.get(node.module ?? "")!),
    source: text((node) => node.source ?? ""),
    tag: text((node) => node.tag ?? ""),
    instruction: new Int32Array(nodes.length).fill(-1),
    handle_start: start,
    handles: Int32Array.from(handles.flat()),
    src,
    dst: Int32Array.from(fake.edges, ([, to]) => row.get(to)!),
    edge_bytes: Float64Array.from(src, (from) => bytes[from]!),
    module_parent: Int32Array.from(modules, ({ path }) => (path ? parentOf(path) : -1)),
    module_name: StringColumn.from(modules.map(({ path }) => path.split(".").pop() ?? "")),
    module_path: StringColumn.from(modules.map(({ path }) => path)),
    module_type: StringColumn.from(modules.map(({ path, type }) => type ?? `Class of ${path}`)),
    module_kind: StringColumn.from(modules.map(({ kind }) => kind ?? "module")),
    module_hash: Uint32Array.from(modules, ({ hash }, index) => hash ?? 1000 + index),
  };
}

/**
 * `count` equal blocks of two nodes one after the other, between an input and an output; each block
 * has a weight.
 */
export function chainOfBlocks(count: number, stage = "edge"): GraphDocument {
  const nodes: FakeNode[] = [{ name: "x", kind: "placeholder", handles: [1] }];
  const edges: [string, string][] = [];
  let last = "x";
  for (let block = 0; block < count; block++) {
    const module = `blocks.${block}`;
    nodes.push(
      { name: `weight${block}`, kind: "parameter", module, handles: [100 + block], bytes: 64 },
      {
        name: `mm${block}`,
        op: "aten.mm.default",
        module,
        handles: [10 + 2 * block],
        shape: "(2, 2)",
        source: `model.py:${block}`,
      },
      {
        name: `relu${block}`,
        op: "aten.relu.default",
        module,
        handles: [11 + 2 * block],
        shape: "(2, 2)",
      },
    );
    edges.push(
      [`weight${block}`, `mm${block}`],
      [last, `mm${block}`],
      [`mm${block}`, `relu${block}`],
    );
    last = `relu${block}`;
  }
  nodes.push({ name: "output", kind: "output", handles: [9000] });
  edges.push([last, "output"]);
  const modules = [
    { path: "blocks", type: "ModuleList" },
    ...Array.from({ length: count }, (_, block) => ({
      path: `blocks.${block}`,
      type: "Block",
      hash: 7,
    })),
  ];
  return fakeDocument({ nodes, edges, modules, stage });
}

/** A random graph in nested modules, always the same for a seed. */
export function randomDocument(
  nodes: number,
  modules: number,
  edges: number,
  seed = 1,
): GraphDocument {
  let state = seed;
  const random = (below: number) => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  const paths = [""];
  for (let module = 0; module < modules; module++) {
    const above = paths[random(paths.length)]!;
    paths.push(above ? `${above}.m${module}` : `m${module}`);
  }
  const made = Array.from({ length: nodes }, (_, node) => ({
    name: `n${node}`,
    module: paths[random(paths.length)]!,
  }));
  const pairs = Array.from({ length: edges }, () => {
    const to = 1 + random(nodes - 1);
    return [`n${random(to)}`, `n${to}`] as const;
  });
  return fakeDocument({
    nodes: made,
    edges: pairs,
    modules: paths.slice(1).map((path) => ({ path })),
  });
}
