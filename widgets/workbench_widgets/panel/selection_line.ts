// The line that says what is selected: node, operator, module, source line; and how Python sees it.
import type { GraphDocument, Picked } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { copyText } from "../common/clipboard.ts";
import { h } from "../common/dom.ts";
import { shorten } from "../common/format.ts";
import { put } from "../common/press.ts";
import { HandleIndex } from "../common/selection.ts";
import { button } from "../common/toolbar.ts";

export interface Described {
  readonly title: string;
  readonly op: string;
  readonly module: string;
  readonly source: string;
}

const PATIENCE_MS = 100;
const indices = new WeakMap<GraphDocument, HandleIndex>();

function indexOf(graph: GraphDocument): HandleIndex {
  let known = indices.get(graph);
  if (!known) indices.set(graph, (known = new HandleIndex(graph.handle_start, graph.handles)));
  return known;
}

/** What a selection is in a graph; null where none of its nodes is there. */
export function describe(graph: GraphDocument, picked: Picked): Described | null {
  const rows = indexOf(graph).find(picked.handles);
  const named =
    picked.node === null ? -1 : rows.findIndex((row) => graph.name.get(row) === picked.node);
  const first = rows[Math.max(0, named)];
  if (first === undefined) return null;
  const calls = rows.filter(
    (row) => graph.kind.get(row) === "call" || graph.kind.get(row) === "delegate",
  );
  const lead = named >= 0 || calls.length === 0 ? first : calls[0]!;
  const others = rows.length - 1;
  return {
    title: graph.name.get(lead) + (others > 0 ? ` and ${others} more` : ""),
    op: graph.op.get(lead),
    module: graph.module_path.get(graph.module[lead] ?? -1),
    source: graph.source.get(lead),
  };
}

export interface SelectionLine {
  readonly el: HTMLElement;
  /** The stage whose graph names the selection. */
  setStage(stage: string): void;
  destroy(): void;
}

export function makeSelectionLine(host: Host, stage: string, python: string): SelectionLine {
  const text = h("span.wb-selection-text", { role: "status" });
  const clear = button("Clear", "Select nothing (Escape)", () => {
    host.selection.set({ ...host.selection.get(), handles: [], node: null });
  });
  const el = h(
    "div.wb-selection-line",
    {},
    text,
    h("span.wb-spacer"),
    h(
      "code.wb-muted.wb-selection-python",
      { title: "The same selection in Python; it can be set there, too" },
      python,
    ),
    clear,
  );
  let current = stage;
  let turn = 0;

  const show = async () => {
    const mine = ++turn;
    const picked = host.selection.get();
    clear.hidden = !picked.handles.length && picked.node === null;
    if (!picked.handles.length && picked.node === null) {
      put(
        text,
        h("span.wb-muted", {}, "Nothing selected: choose a node, tensor, instruction or row"),
      );
      return;
    }
    // The graph may be on its way from a kernel that is busy: until then what is known stands here.
    const patience = setTimeout(() => {
      if (mine === turn) put(text, h("strong", {}, nameOf(picked)));
    }, PATIENCE_MS);
    const found = await lookUp(host, current, picked);
    clearTimeout(patience);
    if (mine !== turn) return;
    put(text, ...(found ? parts(found) : plain(picked)));
  };
  const ends = [host.selection.subscribe(() => void show()), host.onChange(() => void show())];
  void show();
  return {
    el,
    setStage(next) {
      current = next;
      void show();
    },
    destroy() {
      turn = -1;
      for (const end of ends) end();
      el.remove();
    },
  };
}

async function lookUp(host: Host, stage: string, picked: Picked): Promise<Described | null> {
  const key = `${stage}/${picked.method || host.about.method}`;
  // A graph that is not here yet is not worth a question: the view beside asks for it anyway.
  if (!host.has("graph", key)) return null;
  try {
    return describe(await host.document("graph", key), picked);
  } catch {
    return null; // the view that shows this graph shows the error
  }
}

/** File and line with the folder around; the whole path is copied, and in the tooltip. */
function shortPath(source: string): string {
  const parts = source.split("/");
  return shorten(parts.slice(-2).join("/"), 48);
}

function nameOf({ node, handles }: Picked): string {
  return node ?? (handles.length === 1 ? `source ${handles[0]}` : `${handles.length} sources`);
}

function plain(picked: Picked): Node[] {
  return [h("strong", {}, nameOf(picked)), h("span.wb-muted", {}, " not in this stage's graph")];
}

function parts(found: Described): Node[] {
  const made: Node[] = [h("strong", { title: found.title }, shorten(found.title, 48))];
  if (found.op) made.push(h("span.wb-mono", { title: found.op }, shorten(found.op, 40)));
  if (found.module)
    made.push(h("span", { title: `Module ${found.module}` }, shorten(found.module, 40)));
  if (found.source) {
    made.push(
      h("span.wb-mono", { title: `Source line ${found.source}` }, shortPath(found.source)),
      button("Copy", `Copy ${found.source}`, () => void copyText(found.source)),
    );
  }
  return made;
}
