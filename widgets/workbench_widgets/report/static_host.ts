// The host of views in a report: all documents are in the page, and there is no kernel.
import type { About, Documents, Failure } from "../contract.ts";
import { CallError, type CallName, type DocumentKind, type Host } from "../common/host.ts";
import { selectionOf } from "../common/selection.ts";
import { unpack } from "../common/unpack.ts";

export interface StoredDocument {
  /** Base64 of what pack.py wrote; or why there is none. */
  readonly data?: string;
  readonly error?: Failure;
}

/** Documents by `kind:key`. */
export type Store = ReadonlyMap<string, StoredDocument>;

const NO_KERNEL: Failure = {
  kind: "DisplayError",
  message: "A report has no kernel that could do this",
  details: { hint: "Show the lowering in a notebook" },
};

export class StaticHost implements Host {
  readonly live = false;
  readonly about: About;
  readonly selection;
  private readonly store: Store;
  private readonly cache = new Map<string, Promise<unknown>>();

  constructor(about: About, store: Store) {
    this.about = about;
    this.store = store;
    this.selection = selectionOf("", about.method);
  }

  has(kind: DocumentKind, key = ""): boolean {
    return this.store.get(`${kind}:${key}`)?.data !== undefined;
  }

  document<K extends DocumentKind>(kind: K, key = ""): Promise<Documents[K]> {
    const name = `${kind}:${key}`;
    let known = this.cache.get(name);
    if (!known) {
      known = this.read(name);
      this.cache.set(name, known);
      known.catch(() => {}); // whoever asked hears of it
    }
    return known as Promise<Documents[K]>;
  }

  onChange(): () => void {
    return () => {};
  }

  call<K extends CallName>(_: K): Promise<never> {
    return Promise.reject(new CallError(NO_KERNEL));
  }

  onEvent(): () => void {
    return () => {};
  }

  private async read(name: string): Promise<unknown> {
    const stored = this.store.get(name);
    if (stored?.data !== undefined) return unpack(decode(stored.data));
    throw new CallError(
      stored?.error ?? {
        kind: "DisplayError",
        message: "The report does not hold this",
        details: { found: name, hint: "Show the lowering in a notebook" },
      },
    );
  }
}

/** Bytes from base64. */
export function decode(text: string): Uint8Array {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

/** The host of the blocks in a page; see report/__init__.py for how they are written. */
export function hostOf(page: Document): StaticHost {
  const about = page.getElementById("wb-about")?.textContent;
  if (!about) throw new Error("The report is incomplete: it does not say what it is about.");
  const store = new Map<string, StoredDocument>();
  for (const block of page.querySelectorAll<HTMLScriptElement>("script[data-document]")) {
    const text = block.textContent ?? "";
    const stored: StoredDocument = block.type.endsWith("json")
      ? { error: JSON.parse(text) as Failure }
      : { data: text };
    store.set(block.dataset.document ?? "", stored);
    block.remove(); // the text is held once
  }
  return new StaticHost(JSON.parse(about) as About, store);
}
