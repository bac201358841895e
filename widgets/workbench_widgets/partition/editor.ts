// What the partition view knows and does: documents, marked nodes, the target, answers to edits before they are
// made. Nothing here draws.
import type {
  Calls, PartitionAnswer, PartitionDocument, PartitionMove, PartitionOutcome, PartitionRequest, PartitionState,
  PartitionTag, Picked,
} from "../contract.ts";
import { matches, type Host } from "../common/host.ts";
import { HandleIndex } from "../common/selection.ts";
import { Latest } from "./latest.ts";

export type Action = PartitionRequest["action"];
export const ACTIONS: readonly Action[] = ["assign", "erase", "split", "merge"];
export const NONE = -1;

/** What nodes are assigned to: a tag that exists, or a new one of a backend. */
export interface Target {
  readonly tag: string | null;
  readonly backend: string | null;
}

/** An edit with the answer to it. */
export interface Shown {
  readonly request: PartitionRequest;
  readonly answer: PartitionAnswer;
  /** `look`: nothing was done yet; `made`; `refused`: it was asked for, and is not legal. */
  readonly kind: "look" | "made" | "refused";
}

/** Why a node was left behind. */
export interface Reason {
  readonly by: string;
  readonly text: string;
  readonly eligibleIf: string;
}

export type Part = "documents" | "marked" | "target" | "answers" | "shown" | "busy" | "outcome";
type Listener = (parts: ReadonlySet<Part>) => void;

export class PartitionEditor {
  document: PartitionDocument | null = null;
  state: PartitionState | null = null;
  method: string;
  target: Target = { tag: null, backend: null };
  /** Rows that the next edit is about, ascending. */
  marked: readonly number[] = [];
  /** For each action what it would do with the marked nodes; missing while nothing is known. */
  answers = new Map<Action, PartitionAnswer>();
  shown: Shown | null = null;
  /** By row why it was left behind. */
  reasons: ReadonlyMap<number, readonly Reason[]> = new Map();
  outcome: PartitionOutcome | null = null;
  /** What Python is doing that takes a while; empty for nothing. */
  busy = "";
  private readonly host: Host;
  private readonly fail: (error: unknown) => void;
  private readonly listeners = new Set<Listener>();
  private readonly ends: (() => void)[] = [];
  private readonly looks: Latest<PartitionRequest, PartitionAnswer>;
  private index: HandleIndex | null = null;
  private turn = 0;
  private round = 0;
  private own = false;

  constructor(host: Host, method: string, fail: (error: unknown) => void) {
    this.host = host;
    this.method = method;
    this.fail = fail;
    this.looks = new Latest((request) => host.call("partition.preview", request));
    this.ends.push(
      host.onChange((kinds) => {
        if (matches(kinds, "partition")) void this.load();
        else if (matches(kinds, "partition.state")) void this.loadState();
      }),
      host.selection.subscribe((picked) => {
        if (!this.own) this.take(picked);
      }),
    );
  }

  destroy(): void {
    this.turn = this.round = -1;
    this.looks.cancel();
    for (const end of this.ends) end();
    this.listeners.clear();
  }

  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(...parts: Part[]): void {
    const told = new Set(parts);
    for (const listener of [...this.listeners]) listener(told);
  }

  // ---- documents -------------------------------------------------------------------------------------------

  async load(method = this.method): Promise<void> {
    const own = ++this.turn;
    this.method = method;
    try {
      const [document, state] = await Promise.all([
        this.host.document("partition", method),
        this.host.document("partition.state", method),
      ]);
      if (own !== this.turn) return;
      this.document = document;
      this.index = new HandleIndex(document.handle_start, document.handles);
      this.enter(state);
      this.take(this.host.selection.get());
    } catch (error) {
      if (own === this.turn) this.fail(error);
    }
  }

  private async loadState(): Promise<void> {
    const own = ++this.turn;
    try {
      const state = await this.host.document("partition.state", this.method);
      if (own === this.turn) this.enter(state);
    } catch (error) {
      if (own === this.turn) this.fail(error);
    }
  }

  private enter(state: PartitionState): void {
    this.state = state;
    this.reasons = reasonsOf(state);
    const known = state.tags.some((tag) => tag.name === this.target.tag);
    if (this.target.tag !== null && !known) this.target = { tag: null, backend: null };
    if (this.target.tag === null && this.target.backend === null) {
      const first = state.tags[0];
      this.target = first
        ? { tag: first.name, backend: null }
        : { tag: null, backend: state.backends[0]?.name ?? null };
    }
    // What was said about an edit that is only looked at may not hold any more.
    if (this.shown?.kind === "look") this.shown = null;
    this.tell("documents", "target", "shown");
    void this.askAll();
  }

  get editable(): boolean {
    return this.host.live && (this.state?.editable ?? false);
  }

  tagOf(row: number): PartitionTag | null {
    return this.state?.tags[this.state.tag[row] ?? NONE] ?? null;
  }

  isOperator(row: number): boolean {
    return this.document?.operator[row] === 1;
  }

  /** Rows of a tag, in graph order. */
  rowsOf(tag: string): number[] {
    const place = this.state?.tags.findIndex((known) => known.name === tag) ?? NONE;
    const rows: number[] = [];
    if (place < 0 || !this.state) return rows;
    this.state.tag.forEach((value, row) => {
      if (value === place && this.isOperator(row)) rows.push(row);
    });
    return rows;
  }

  /** Names of the tags that the marked nodes have, in the order of the tags. */
  markedTags(): string[] {
    const places = new Set(this.marked.map((row) => this.state?.tag[row] ?? NONE));
    return (this.state?.tags ?? []).filter((_, place) => places.has(place)).map((tag) => tag.name);
  }

  handlesOf(rows: Iterable<number>): number[] {
    const found: number[] = [];
    for (const row of rows) found.push(...(this.index?.handles(row) ?? []));
    return found;
  }

  // ---- what is marked --------------------------------------------------------------------------------------

  /** Marks operators; everything else among the rows is left out. The selection follows. */
  mark(rows: Iterable<number>, extend = false): void {
    const chosen = new Set(extend ? this.marked : []);
    for (const row of rows) if (this.isOperator(row)) chosen.add(row);
    this.setMarked([...chosen]);
    this.own = true;
    const only = this.marked.length === 1 ? (this.document?.name.get(this.marked[0]!) ?? null) : null;
    this.host.selection.set({ method: this.method, handles: this.handlesOf(this.marked), node: only });
    this.own = false;
  }

  private take(picked: Picked): void {
    if (!this.index || !this.document || picked.method !== this.method) return;
    let rows = this.index.find(picked.handles).filter((row) => this.isOperator(row));
    if (picked.node !== null) {
      const named = rows.filter((row) => this.document?.name.get(row) === picked.node);
      if (named.length) rows = named;
    }
    this.setMarked(rows);
  }

  private setMarked(rows: readonly number[]): void {
    const next = [...rows].sort((a, b) => a - b);
    if (next.length === this.marked.length && next.every((row, at) => row === this.marked[at])) return;
    this.marked = next;
    if (this.shown) this.shown = null;
    this.tell("marked", "shown");
    void this.askAll();
  }

  setTarget(target: Target): void {
    this.target = target;
    this.tell("target");
    void this.askAll();
  }

  // ---- edits -----------------------------------------------------------------------------------------------

  /** The request for an action on rows; for `merge` on the tags that they have. */
  request(action: Action, rows: readonly number[] = this.marked, tags: readonly string[] = this.markedTags()): PartitionRequest {
    const merging = action === "merge";
    // One marked tag merges with the target.
    const joined = tags.length === 1 && this.target.tag && this.target.tag !== tags[0] ? [this.target.tag, ...tags] : tags;
    return {
      method: this.method,
      action,
      rows: merging ? [] : rows,
      handles: [],
      module: null,
      tag: action === "assign" ? this.target.tag : null,
      tags: merging ? joined : [],
      backend: action === "assign" && this.target.tag === null ? this.target.backend : null,
    };
  }

  /** Asks what each action would do with the marked nodes, one after the other. */
  private async askAll(): Promise<void> {
    const own = ++this.round;
    this.answers = new Map();
    this.tell("answers");
    if (!this.editable || !this.marked.length) return;
    // Strokes and arrow keys mark many things in a row: the last counts.
    await new Promise((resolve) => setTimeout(resolve, 60));
    for (const action of ACTIONS) {
      if (own !== this.round) return;
      if (action === "merge" && this.request("merge").tags.length < 2) continue;
      try {
        const answer = await this.host.call("partition.preview", this.request(action));
        if (own !== this.round) return;
        this.answers.set(action, answer);
        this.tell("answers");
      } catch (error) {
        if (own === this.round) this.fail(error);
        return;
      }
    }
  }

  /** Shows what an edit would do; null shows nothing. Only the last of several is answered. */
  look(request: PartitionRequest | null): void {
    if (!request || !this.editable) {
      this.looks.cancel();
      this.unlook();
      return;
    }
    this.looks.ask(request).then(
      (answer) => {
        if (answer) this.show({ request, answer, kind: "look" });
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** What was only looked at is shown no more; answers to what was done stay. */
  unlook(): void {
    if (this.shown?.kind === "look") this.show(null);
  }

  show(shown: Shown | null): void {
    if (!shown && !this.shown) return;
    this.shown = shown;
    this.tell("shown");
  }

  /** Makes an edit if it is legal; the answer tells. */
  async apply(request: PartitionRequest): Promise<PartitionAnswer | null> {
    if (!this.editable) return null;
    this.looks.cancel();
    const answer = await this.guarded(() => this.host.call("partition.apply", request));
    if (answer) this.show({ request, answer, kind: answer.legal ? "made" : "refused" });
    if (answer?.legal && request.action === "assign" && request.tag === null) {
      // The next stroke goes on with the tag that this one made.
      const made = answer.after.get(0);
      if (made) this.setTarget({ tag: made, backend: null });
    }
    return answer;
  }

  async move(what: PartitionMove["what"], index = NONE): Promise<string> {
    if (!this.editable) return "";
    const moved = await this.guarded(() =>
      this.host.call("partition.move", { method: this.method, what, index }),
    );
    if (moved) this.show(null);
    return moved?.text ?? "";
  }

  async relower(run: boolean): Promise<void> {
    if (!this.editable || this.busy) return;
    this.busy = run ? "Lowering and running…" : "Lowering…";
    this.tell("busy");
    const outcome = await this.guarded(() => this.host.call("partition.relower", { method: this.method, run }));
    this.busy = "";
    if (outcome) {
      this.outcome = outcome;
      this.shown = null;
    }
    this.tell("busy", "outcome", "shown");
  }

  private async guarded<T extends Calls[keyof Calls]["result"]>(work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      this.fail(error);
      return null;
    }
  }
}

function reasonsOf(state: PartitionState): ReadonlyMap<number, readonly Reason[]> {
  const found = new Map<number, Reason[]>();
  state.reason_row.forEach((row, at) => {
    const reason = { by: state.reason_by.get(at), text: state.reason.get(at), eligibleIf: state.eligible_if.get(at) };
    const known = found.get(row);
    if (known) known.push(reason);
    else found.set(row, [reason]);
  });
  return found;
}
