// The host as the graph of one side sees it: that side's graph, and the selection in that side's handles.
import type {
  About,
  Calls,
  CompareCells,
  CompareDocument,
  Documents,
  Events,
  Picked,
} from "../contract.ts";
import {
  CallError,
  type CallName,
  type DocumentKind,
  type EventName,
  type Host,
} from "../common/host.ts";
import { same, type SelectionStore } from "../common/selection.ts";

/** A selection in the handles of a side that counts differently; both sides of the map stay in step. */
export function translated(store: SelectionStore, cells: CompareCells): SelectionStore {
  if (!cells.handle.length) return store;
  const toFirst = new Map<number, number>();
  const toOwn = new Map<number, number>();
  cells.handle.forEach((own, at) => {
    const first = cells.first_handle[at] ?? 0;
    if (!first) return;
    toFirst.set(own, first);
    toOwn.set(first, own);
  });
  // What only this side has can't be told to the others, but stays selected here.
  let local: Picked | null = null;
  const listeners = new Set<(picked: Picked) => void>();
  const map = (picked: Picked, names: ReadonlyMap<number, number>): Picked => ({
    ...picked,
    handles: picked.handles.map((handle) => names.get(handle) ?? 0).filter((handle) => handle > 0),
  });
  const get = () => local ?? { ...map(store.get(), toOwn), node: null };
  return {
    get,
    set(picked) {
      const first = map(picked, toFirst);
      local = first.handles.length ? null : picked;
      if (local) for (const listener of [...listeners]) listener(local);
      else if (!same(store.get(), first)) store.set(first);
    },
    subscribe(listener) {
      listeners.add(listener);
      const end = store.subscribe(() => {
        local = null;
        listener(get());
      });
      return () => {
        listeners.delete(listener);
        end();
      };
    },
  };
}

/** A host whose graph is that of a side. */
export function sideHost(host: Host, side: number, doc: CompareDocument): Host {
  const { name: title, stage } = doc.sides[side]!;
  const { method } = doc;
  const own = (kind: DocumentKind, key: string): [DocumentKind, string] | null => {
    if (kind === "graph") return ["compare.graph", `${side}/${key}`];
    return side === 0 ? [kind, key] : null;
  };
  const missing = () =>
    Promise.reject(
      new CallError({
        kind: "DisplayError",
        message: "A side of a comparison shows its graph only",
        details: { hint: `Show ${title} by itself for the rest` },
      }),
    );
  return {
    live: host.live && side === 0,
    get about(): About {
      const stages = host.about.stages.filter(({ name }) => name === stage);
      return { ...host.about, view: "graph", title, stage, stages, method, methods: [method] };
    },
    selection: translated(host.selection, doc.cells[side]!),
    document<K extends DocumentKind>(kind: K, key = ""): Promise<Documents[K]> {
      const found = own(kind, key);
      return found ? (host.document(found[0], found[1]) as Promise<Documents[K]>) : missing();
    },
    has(kind, key = "") {
      const found = own(kind, key);
      return found !== null && host.has(found[0], found[1]);
    },
    onChange: (listener) =>
      host.onChange((kinds) => {
        if (kinds.has("*") || !kinds.has("compare.graph")) listener(kinds);
        else listener(new Set([...kinds, "graph"]));
      }),
    call: <K extends CallName>(name: K, args: Calls[K]["arguments"]) =>
      side === 0 ? host.call(name, args) : missing(),
    onEvent: <K extends EventName>(name: K, listener: (event: Events[K]) => void) =>
      side === 0 ? host.onEvent(name, listener) : () => {},
  };
}
