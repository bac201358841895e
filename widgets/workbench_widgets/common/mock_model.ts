// A model as anywidget hands one to a view, with a kernel that a test plays.
import type { About, Picked } from "../contract.ts";
import type { Model } from "./live.ts";

type Callback = (...args: never[]) => void;

export class MockModel implements Model {
  readonly state = new Map<string, unknown>();
  readonly sent: {
    id: number;
    document?: string;
    key?: string;
    call?: string;
    arguments?: unknown;
  }[] = [];
  saves = 0;
  private readonly callbacks = new Map<string, Set<Callback>>();

  constructor(about: Partial<About> = {}, documents: Record<string, DataView> = {}) {
    this.state.set("about", { ...ABOUT, ...about });
    this.state.set("documents", documents);
    this.state.set("selection", { method: "forward", handles: [], node: null } satisfies Picked);
    this.state.set("height", 520);
  }

  get(name: string): unknown {
    return this.state.get(name);
  }

  /** As anywidget: also the side that sets hears of it. */
  set(name: string, value: unknown): void {
    this.state.set(name, value);
    this.trigger(`change:${name}`);
  }

  save_changes(): void {
    this.saves += 1;
  }

  send(content: unknown): void {
    this.sent.push(content as (typeof this.sent)[number]);
  }

  on(event: string, callback: Callback): void {
    const known = this.callbacks.get(event) ?? new Set();
    this.callbacks.set(event, known.add(callback));
  }

  off(event: string, callback: Callback): void {
    this.callbacks.get(event)?.delete(callback);
  }

  /** How many callbacks are waiting for events. */
  get listening(): number {
    return [...this.callbacks.values()].reduce((sum, known) => sum + known.size, 0);
  }

  trigger(event: string, ...args: unknown[]): void {
    for (const callback of [...(this.callbacks.get(event) ?? [])]) callback(...(args as never[]));
  }

  /** What the kernel sends. */
  receive(message: object, ...buffers: Uint8Array[]): void {
    this.trigger(
      "msg:custom",
      message,
      buffers.map((data) => new DataView(data.buffer as ArrayBuffer)),
    );
  }
}

export const ABOUT: About = {
  view: "graph",
  title: "A lowering",
  family: "",
  stages: [
    { name: "edge", title: "Edge", detail: "12 nodes", seconds: 0.25 },
    { name: "planned", title: "Planned", detail: "4 KiB", seconds: 0.05 },
    { name: "run", title: "Run", detail: "", seconds: null },
  ],
  stage: "edge",
  methods: ["forward"],
  method: "forward",
  can_lower: true,
  can_run: true,
};
