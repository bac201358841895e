// A host whose documents a test gives.
import type { About, Calls, Documents, Events } from "../contract.ts";
import { CallError, type CallName, type DocumentKind, type EventName, type Host } from "./host.ts";
import { ABOUT } from "./mock_model.ts";
import { selectionOf } from "./selection.ts";

export class MockHost implements Host {
  live = true;
  about: About;
  readonly selection;
  readonly calls: { name: string; args: unknown }[] = [];
  readonly answers = new Map<string, (args: never) => unknown>();
  private readonly documents: Map<string, unknown>;
  private readonly changes = new Set<(kinds: ReadonlySet<string>) => void>();
  private readonly events = new Map<string, Set<(event: never) => void>>();

  constructor(documents: Record<string, unknown> = {}, about: Partial<About> = {}) {
    this.documents = new Map(Object.entries(documents));
    this.about = { ...ABOUT, ...about };
    this.selection = selectionOf("", this.about.method);
  }

  /** Adds a document, or puts one in the place of another. */
  give(name: string, document: unknown): void {
    this.documents.set(name, document);
  }

  has(kind: DocumentKind, key = ""): boolean {
    return this.documents.has(`${kind}:${key}`);
  }

  document<K extends DocumentKind>(kind: K, key = ""): Promise<Documents[K]> {
    const found = this.documents.get(`${kind}:${key}`);
    if (found !== undefined) return Promise.resolve(found as Documents[K]);
    return Promise.reject(missing(`${kind}:${key}`));
  }

  call<K extends CallName>(name: K, args: Calls[K]["arguments"]): Promise<Calls[K]["result"]> {
    this.calls.push({ name, args });
    const answer = this.answers.get(name);
    if (!answer) return Promise.reject(missing(name));
    return new Promise((resolve) => resolve(answer(args as never) as Calls[K]["result"]));
  }

  onChange(listener: (kinds: ReadonlySet<string>) => void): () => void {
    this.changes.add(listener);
    return () => this.changes.delete(listener);
  }

  onEvent<K extends EventName>(name: K, listener: (event: Events[K]) => void): () => void {
    const known = this.events.get(name) ?? new Set();
    this.events.set(name, known.add(listener as (event: never) => void));
    return () => known.delete(listener as (event: never) => void);
  }

  changed(...kinds: string[]): void {
    for (const listener of [...this.changes]) listener(new Set(kinds));
  }

  emit<K extends EventName>(name: K, event: Events[K]): void {
    for (const listener of [...(this.events.get(name) ?? [])]) listener(event as never);
  }

  /** How many wait for changes and events. */
  get listening(): number {
    return [...this.events.values()].reduce((sum, known) => sum + known.size, this.changes.size);
  }
}

function missing(name: string): CallError {
  return new CallError({
    kind: "WorkbenchError",
    message: "there is no such thing",
    details: { found: name },
  });
}
