// The host of a view in a notebook: an anywidget model, and behind it a kernel.
import type { About, Calls, Documents, Events, Failure, Picked } from "../contract.ts";
import { CallError, matches, type Host } from "./host.ts";
import { same, selectionOf } from "./selection.ts";
import { unpack } from "./unpack.ts";

/** The part of anywidget's model that is used here. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(event: string, callback: (...args: never[]) => void): void;
  off(event: string, callback: (...args: never[]) => void): void;
}

interface Reply {
  id?: number;
  /** Python has the request and works on it. */
  taken?: boolean;
  error?: Failure;
  changed?: string[];
  event?: string;
}

type Waiting = {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  timer: ReturnType<typeof setTimeout> | undefined;
};

/** Milliseconds after which a request is sent again that nobody took, and the longest pause between two. */
const PATIENCE = 2000;
const LONGEST = 60_000;

export class LiveHost implements Host {
  readonly live = true;
  readonly selection;
  private readonly model: Model;
  private readonly waiting = new Map<number, Waiting>();
  private readonly cache = new Map<string, Promise<unknown>>();
  private readonly changes = new Set<(kinds: ReadonlySet<string>) => void>();
  private readonly events = new Map<string, Set<(event: never) => void>>();
  private readonly ends: (() => void)[] = [];
  /** Unpacking takes longer for longer events: each waits for those before it. */
  private delivered: Promise<void> = Promise.resolve();
  private closed = false;
  private next = Math.floor(Math.random() * 2 ** 40) * 1024;

  constructor(model: Model) {
    this.model = model;
    const picked = model.get("selection") as Picked | undefined;
    this.selection = selectionOf(this.about.family, this.about.method);
    if (picked?.handles) this.selection.set(picked);
    this.ends.push(this.selection.subscribe((value) => this.push(value)));
    this.listen("change:selection", () => {
      const value = model.get("selection") as Picked;
      if (value?.handles) this.selection.set(value);
    });
    this.listen("msg:custom", ((message: Reply, buffers: DataView[]) =>
      this.receive(message, buffers)) as (...args: never[]) => void);
  }

  get about(): About {
    return this.model.get("about") as About;
  }

  has(kind: keyof Documents, key = ""): boolean {
    const name = `${kind}:${key}`;
    return this.cache.has(name) || name in ((this.model.get("documents") as object | null) ?? {});
  }

  document<K extends keyof Documents>(kind: K, key = ""): Promise<Documents[K]> {
    const name = `${kind}:${key}`;
    let known = this.cache.get(name);
    if (!known) {
      const sent = (this.model.get("documents") as Record<string, DataView> | undefined)?.[name];
      known = sent ? unpack(sent) : this.ask({ document: kind, key });
      this.cache.set(name, known);
      // What failed may work when it is asked for again.
      const failed = known;
      known.catch(() => {
        // Unless it was asked for again already.
        if (this.cache.get(name) === failed) this.cache.delete(name);
      });
    }
    return known as Promise<Documents[K]>;
  }

  call<K extends keyof Calls>(name: K, args: Calls[K]["arguments"]): Promise<Calls[K]["result"]> {
    return this.ask({ call: name, arguments: args }) as Promise<Calls[K]["result"]>;
  }

  onChange(listener: (kinds: ReadonlySet<string>) => void): () => void {
    this.changes.add(listener);
    return () => this.changes.delete(listener);
  }

  onEvent<K extends keyof Events>(name: K, listener: (event: Events[K]) => void): () => void {
    let known = this.events.get(name);
    if (!known) this.events.set(name, (known = new Set()));
    known.add(listener as (event: never) => void);
    return () => known.delete(listener as (event: never) => void);
  }

  destroy(): void {
    for (const end of this.ends) end();
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new Error("The view was closed."));
    }
    this.closed = true;
    this.waiting.clear();
    this.cache.clear();
    this.changes.clear();
    this.events.clear();
  }

  private listen(event: string, callback: (...args: never[]) => void): void {
    this.model.on(event, callback);
    this.ends.push(() => this.model.off(event, callback));
  }

  private push(picked: Picked): void {
    if (same(this.model.get("selection") as Picked, picked)) return;
    this.model.set("selection", picked);
    this.model.save_changes();
  }

  private ask(message: object): Promise<unknown> {
    if (this.closed) return Promise.reject(new Error("The view was closed."));
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, timer: undefined });
      this.post({ ...message, id }, PATIENCE);
    });
  }

  /** Sends a request, and again until Python took it: a busy kernel is late, and one that changes threads loses some. */
  private post(message: { id: number }, patience: number): void {
    const waiting = this.waiting.get(message.id);
    if (!waiting) return;
    waiting.timer = setTimeout(() => this.post(message, Math.min(2 * patience, LONGEST)), patience);
    try {
      this.model.send(message);
    } catch (error) {
      clearTimeout(waiting.timer);
      this.waiting.delete(message.id);
      waiting.reject(error as Error);
    }
  }

  private receive(message: Reply, buffers: DataView[]): void {
    if (message.changed) {
      const kinds = new Set(message.changed);
      for (const name of this.cache.keys()) {
        if (matches(kinds, name.split(":", 1)[0] ?? "")) this.cache.delete(name);
      }
      for (const listener of [...this.changes]) listener(kinds);
    } else if (message.event !== undefined && buffers[0]) {
      this.deliver(message.event, unpack(buffers[0]));
    } else if (message.id !== undefined) {
      // Several views of one model get all replies: numbers start at random, each knows its own.
      const waiting = this.waiting.get(message.id);
      if (!waiting) return;
      clearTimeout(waiting.timer);
      if (message.taken) return;
      this.waiting.delete(message.id);
      if (message.error) waiting.reject(new CallError(message.error));
      else if (buffers[0]) unpack(buffers[0]).then(waiting.resolve, waiting.reject);
      else waiting.resolve(undefined);
    }
  }

  private deliver(name: string, unpacked: Promise<unknown>): void {
    const before = this.delivered;
    this.delivered = Promise.all([unpacked, before]).then(
      ([event]) => {
        for (const listener of [...(this.events.get(name) ?? [])]) {
          try {
            listener(event as never);
          } catch (error) {
            console.error(`A listener of ${name} failed`, error); // the others still hear of it
          }
        }
      },
      (error: unknown) => console.error(`The event ${name} can't be read`, error),
    );
  }
}
