// What the panel shows beside which stage.
import type { Host } from "../common/host.ts";

/** What a mounted view can do for the panel. */
export interface Mounted {
  destroy(): void;
  /** Resolves when the first picture is complete. */
  readonly ready?: Promise<unknown>;
  setStage?(stage: string, method?: string): unknown;
  /** Calls back with what is drawn, whenever that changes; of the graph, whose details lead to other stages. */
  onReady?(
    listener: (scene: { readonly document: { readonly stage: string } }) => void,
  ): () => void;
  /** Calls back with the name of an overlay that the graph shall be coloured by. */
  onOverlay?(listener: (name: string) => void): () => void;
  /** Colours by an overlay; of the graph. */
  showOverlay?(name: string): void;
  /** Runs and measures; of the view that shows runs. */
  start?(): unknown;
}

export interface Options {
  readonly stage: string;
  readonly method: string;
}

export interface PanelView {
  readonly title: string;
  readonly mount: (host: Host, el: HTMLElement, options: Options) => Mounted | Promise<Mounted>;
}

export interface Place {
  /** The stage's own view; null where the graph is all there is to see. */
  readonly view: string | null;
  /** It brings a graph of its own, and takes the whole panel. */
  readonly alone?: boolean;
}

export const PLACES: Readonly<Record<string, Place>> = {
  exported: { view: null },
  pruned: { view: null },
  quantized: { view: "quantization" },
  edge: { view: null },
  partitioned: { view: "partition", alone: true },
  lowered: { view: null },
  planned: { view: "memory" },
  program: { view: "program" },
  run: { view: "profile" },
};

/** The stage whose graph stands beside a stage: a program and its run are the planned graph, in a file. */
export function graphStage(stage: string, stages: readonly string[]): string {
  return (stage === "program" || stage === "run") && stages.includes("planned") ? "planned" : stage;
}
