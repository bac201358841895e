// All that a view knows about the outside: documents, calls, events, the selection.
import type { About, Calls, Documents, Events, Failure } from "../contract.ts";
import type { SelectionStore } from "./selection.ts";

export type DocumentKind = keyof Documents;
export type CallName = keyof Calls;
export type EventName = keyof Events;

export interface Host {
  /** A kernel answers calls. False in a report. */
  readonly live: boolean;
  readonly about: About;
  readonly selection: SelectionStore;
  /** A document; asked for once, until it changes. Rejects with a CallError. */
  document<K extends DocumentKind>(kind: K, key?: string): Promise<Documents[K]>;
  /** Whether a document can be had without asking the kernel. */
  has(kind: DocumentKind, key?: string): boolean;
  /** Tells which kinds of documents are stale, `about` among them; `matches(kinds, "graph")` reads it. */
  onChange(listener: (kinds: ReadonlySet<string>) => void): () => void;
  /** Asks Python to do something. Rejects with a CallError. */
  call<K extends CallName>(name: K, args: Calls[K]["arguments"]): Promise<Calls[K]["result"]>;
  onEvent<K extends EventName>(name: K, listener: (event: Events[K]) => void): () => void;
}

/** Whether a kind is among those that changed. */
export function matches(kinds: ReadonlySet<string>, kind: string): boolean {
  return kinds.has("*") || kinds.has(kind);
}

/** An error of Python's side, with what to do about it. */
export class CallError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.name = failure.kind;
    this.failure = failure;
  }
}
