// Written by `python -m workbench_widgets.contract`; do not edit.

import type { StringColumn } from "./shared/unpack.ts";

/** What a widget is about. */
export interface About {
  readonly view: string;
  readonly title: string;
  readonly family: string;
  readonly stages: readonly Stage[];
  readonly stage: string;
  readonly methods: readonly string[];
  readonly method: string;
  readonly can_lower: boolean;
  readonly can_run: boolean;
}

/** One line of the user's source. */
export interface CodeLine {
  readonly number: number;
  readonly text: string;
}

/** An error as views show it. */
export interface Failure {
  readonly kind: string;
  readonly message: string;
  readonly details: Readonly<Record<string, string>>;
}

/** All that is known about a node. */
export interface GraphDetails {
  readonly row: number;
  readonly name: string;
  readonly target: string;
  readonly schema: string;
  readonly module: string;
  readonly module_type: string;
  readonly inputs: readonly NodeTensor[];
  readonly outputs: readonly NodeTensor[];
  readonly arguments: readonly NodeArgument[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly why_not: readonly string[];
  readonly source: string;
  readonly code: readonly CodeLine[];
  readonly origins: readonly NodeOrigin[];
  readonly stages: readonly StageRows[];
}

/** The graph of one method at one stage. */
export interface GraphDocument {
  readonly stage: string;
  readonly method: string;
  readonly name: StringColumn;
  readonly op: StringColumn;
  readonly kind: StringColumn;
  readonly shape: StringColumn;
  readonly dtype: StringColumn;
  readonly bytes: Float64Array;
  readonly flops: Float64Array;
  readonly module: Int32Array;
  readonly source: StringColumn;
  readonly tag: StringColumn;
  readonly instruction: Int32Array;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
  readonly src: Int32Array;
  readonly dst: Int32Array;
  readonly edge_bytes: Float64Array;
  readonly module_parent: Int32Array;
  readonly module_name: StringColumn;
  readonly module_path: StringColumn;
  readonly module_type: StringColumn;
  readonly module_kind: StringColumn;
  readonly module_hash: Uint32Array;
}

/** Which node: stage, method and row of the graph document. */
export interface GraphRow {
  readonly stage: string;
  readonly method: string;
  readonly row: number;
}

/** One argument of a call, by the operator's own name for it. */
export interface NodeArgument {
  readonly name: string;
  readonly text: string;
}

/** An exported node that a node comes from. */
export interface NodeOrigin {
  readonly handle: number;
  readonly name: string;
  readonly target: string;
  readonly module: string;
  readonly source: string;
}

/** A tensor that goes into a node or comes out of it. */
export interface NodeTensor {
  readonly name: string;
  readonly row: number;
  readonly shape: string;
  readonly dtype: string;
  readonly strides: string;
  readonly dim_order: string;
  readonly bytes: number;
}

/** A number for each node, to colour the graph by. */
export interface OverlayColumn {
  readonly name: string;
  readonly title: string;
  readonly unit: "ms" | "bytes" | "flops" | "share" | "dB" | "number";
  readonly aggregate: "sum" | "max" | "min";
  readonly values: Float64Array;
}

/** All numbers that the nodes of one method at one stage can be coloured by. */
export interface OverlayDocument {
  readonly stage: string;
  readonly method: string;
  readonly columns: readonly OverlayColumn[];
}

/** The selection. */
export interface Picked {
  readonly method: string;
  readonly handles: readonly number[];
  readonly node: string | null;
}

/** The recipe that was followed. */
export interface RecipeDocument {
  readonly python: string;
  readonly json: string;
  readonly problem: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** A report. */
export interface ReportFile {
  readonly name: string;
  readonly html: string;
}

/** What goes into a report. */
export interface ReportOptions {
  readonly stage: string;
  readonly method: string;
}

/** One entry of the stage bar. */
export interface Stage {
  readonly name: string;
  readonly title: string;
  readonly detail: string;
  readonly seconds: number | null;
}

/** What the same exported nodes are at another stage: rows and names, the first 50 of `count`. */
export interface StageRows {
  readonly stage: string;
  readonly count: number;
  readonly rows: readonly number[];
  readonly names: readonly string[];
  readonly ops: readonly string[];
}

export interface Documents {
  readonly "graph": GraphDocument;
  readonly "overlays": OverlayDocument;
  readonly "recipe": RecipeDocument;
}

export interface Calls {
  readonly "graph.details": { arguments: GraphRow; result: GraphDetails };
  readonly "panel.report": { arguments: ReportOptions; result: ReportFile };
}

export interface Events {
}
