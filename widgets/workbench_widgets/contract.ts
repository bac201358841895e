// Written by `python -m workbench_widgets.contract`; do not edit.

import type { StringColumn } from "./common/unpack.ts";

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

/** What becomes of an arena. */
export interface ArenaChange {
  readonly arena: number;
  readonly before: number;
  readonly after: number;
  readonly lower_bound: number;
  readonly limit: number | null;
  readonly peak_moment: number;
}

/** One line of the user's source. */
export interface CodeLine {
  readonly number: number;
  readonly text: string;
}

/** What one side has in each row. */
export interface CompareCells {
  readonly nodes: StringColumn;
  readonly operators: StringColumn;
  readonly bytes: Float64Array;
  readonly ms: Float64Array;
  readonly sqnr: Float64Array;
  readonly error: Float64Array;
  readonly inside: StringColumn;
  readonly node: StringColumn;
  readonly node_row: Int32Array;
  readonly handle: Int32Array;
  readonly first_handle: Int32Array;
}

/** Several lowerings or runs, joined on the exported nodes. */
export interface CompareDocument {
  readonly method: string;
  readonly reference: number;
  readonly sides: readonly CompareSide[];
  readonly cells: readonly CompareCells[];
  readonly status: Uint8Array;
  readonly present: Uint32Array;
  readonly source: StringColumn;
  readonly module: StringColumn;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
  readonly can_add_peer: boolean;
}

/** One side, and its totals. */
export interface CompareSide {
  readonly name: string;
  readonly title: string;
  readonly kind: "lowering" | "run" | "peer";
  readonly stage: string;
  readonly rows: number;
  readonly matched: number;
  readonly changed: number;
  readonly only: number;
  readonly nodes: number;
  readonly bytes: number;
  readonly program_bytes: number | null;
  readonly arena_bytes: number | null;
  readonly ms: number | null;
}

/** A file of the measurements. */
export interface ExportRequest {
  readonly method: string;
  readonly format: "perfetto" | "csv" | "etdump";
}

/** A file to be saved. */
export interface ExportedFile {
  readonly name: string;
  readonly mime: string;
  readonly text: string;
  readonly base64: string;
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
  readonly attributes: StringColumn;
  readonly bytes: Float64Array;
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

/** What one core of this machine reaches at most. */
export interface MachinePeaks {
  readonly gflops: number;
  readonly gbytes: number;
  readonly cache_bytes: number;
}

/** One arena. */
export interface MemoryArena {
  readonly arena: number;
  readonly size: number;
  readonly lower_bound: number;
  readonly peak_moment: number;
  readonly limit: number | null;
  readonly total: number;
  readonly fragmentation: number;
  readonly tensors: number;
}

/** How memory is planned; fields as of `workbench.MemoryOptions`. */
export interface MemoryChoices {
  readonly planner: string;
  readonly alignment: number;
  readonly arena_limits: Readonly<Record<string, number>>;
  readonly arenas: Readonly<Record<string, number>>;
  readonly pins: Readonly<Record<string, MemoryPin>>;
}

/** Choices as Python. */
export interface MemoryCode {
  readonly text: string;
}

/** The memory of one method. */
export interface MemoryDocument {
  readonly method: string;
  readonly origin: "plan" | "file";
  readonly can_apply: boolean;
  readonly why_not: string;
  readonly planners: readonly string[];
  readonly choices: MemoryChoices;
  readonly plan_inputs: boolean;
  readonly plan_outputs: boolean;
  readonly arenas: readonly MemoryArena[];
  readonly moments: number;
  readonly moment_name: StringColumn;
  readonly moment_source: StringColumn;
  readonly moment_handle_start: Int32Array;
  readonly moment_handles: Int32Array;
  readonly live_start: Int32Array;
  readonly live_moment: Int32Array;
  readonly live_bytes: Float64Array;
  readonly name: StringColumn;
  readonly arena: Int32Array;
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  readonly first: Int32Array;
  readonly last: Int32Array;
  readonly producer: Int32Array;
  readonly at_peak: Uint8Array;
  readonly pinned: Uint8Array;
  readonly kind: Uint8Array;
  readonly shape: StringColumn;
  readonly dtype: StringColumn;
  readonly views: Int32Array;
  readonly source: StringColumn;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
}

/** Plan with other choices. */
export interface MemoryEdit {
  readonly method: string;
  readonly choices: MemoryChoices;
}

/** A place that the user chose. */
export interface MemoryPin {
  readonly arena: number;
  readonly offset: number;
}

/** A plan with other choices, made beside the one that holds. */
export interface MemoryPreview {
  readonly arenas: readonly ArenaChange[];
  readonly before: number;
  readonly after: number;
  readonly arena: Int32Array;
  readonly offset: Float64Array;
  readonly moved: Uint8Array;
  readonly milliseconds: number;
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

/** What an edit would do, or did. */
export interface PartitionAnswer {
  readonly legal: boolean;
  readonly text: string;
  readonly kind: string;
  readonly message: string;
  readonly hint: string;
  readonly nodes: readonly number[];
  readonly path: readonly number[];
  readonly changed: Int32Array;
  readonly before: StringColumn;
  readonly after: StringColumn;
  readonly why: StringColumn;
  readonly requested: number;
  readonly missing: readonly string[];
  readonly unchecked: string;
  readonly cost_before: PartitionCost;
  readonly cost_after: PartitionCost;
  readonly suggestion: PartitionSuggestion | null;
}

/** A backend that nodes can be assigned to. */
export interface PartitionBackend {
  readonly name: string;
  readonly checked: boolean;
  readonly settings: string;
}

/** What a partition amounts to. */
export interface PartitionCost {
  readonly partitions: number;
  readonly delegated: number;
  readonly crossing_bytes: number;
  readonly constant_bytes: number;
}

/** The nodes of one method, as far as edits don't change them. */
export interface PartitionDocument {
  readonly method: string;
  readonly name: StringColumn;
  readonly op: StringColumn;
  readonly module: StringColumn;
  readonly source: StringColumn;
  readonly bytes: Float64Array;
  readonly operator: Uint8Array;
  readonly proposed: StringColumn;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
}

/** One quantity before and after. */
export interface PartitionMeasure {
  readonly name: string;
  readonly unit: "ms" | "bytes" | "count" | "error" | "dB";
  readonly before: number | null;
  readonly after: number | null;
  readonly better: "less" | "more" | "neither";
  readonly note: string;
}

/** A step in the history of a method. */
export interface PartitionMove {
  readonly method: string;
  readonly what: "undo" | "redo" | "remove" | "discard" | "clear";
  readonly index: number;
}

/** What a step in the history did, in words. */
export interface PartitionMoved {
  readonly text: string;
}

/** What lowering again did. */
export interface PartitionOutcome {
  readonly measures: readonly PartitionMeasure[];
  readonly seconds: number;
  readonly ran: readonly string[];
  readonly problem: string;
}

/** Write the edits to the recipe and lower again. */
export interface PartitionRelower {
  readonly method: string;
  readonly run: boolean;
}

/** An edit to look at or to make. */
export interface PartitionRequest {
  readonly method: string;
  readonly action: "assign" | "erase" | "merge" | "split";
  readonly rows: readonly number[];
  readonly handles: readonly number[];
  readonly module: string | null;
  readonly tag: string | null;
  readonly tags: readonly string[];
  readonly backend: string | null;
}

/** The partition as it is edited now. */
export interface PartitionState {
  readonly method: string;
  readonly tag: Int32Array;
  readonly pending: Uint8Array;
  readonly tags: readonly PartitionTag[];
  readonly reason_row: Int32Array;
  readonly reason_by: StringColumn;
  readonly reason: StringColumn;
  readonly eligible_if: StringColumn;
  readonly asked_row: Int32Array;
  readonly asked_tag: StringColumn;
  readonly asked_given: Uint8Array;
  readonly asked_why: StringColumn;
  readonly history: readonly PartitionStep[];
  readonly backends: readonly PartitionBackend[];
  readonly operators: number;
  readonly cost: PartitionCost;
  readonly lowered: PartitionCost;
  readonly undo: string;
  readonly redo: string;
  readonly waiting: number;
  readonly editable: boolean;
  readonly python: string;
  readonly json: string;
  readonly note: string;
}

/** One entry of the history. */
export interface PartitionStep {
  readonly number: number;
  readonly text: string;
  readonly state: "lowered" | "pending" | "refused" | "undone";
  readonly changed: number;
  readonly reason: string;
  readonly index: number;
  readonly rows: readonly number[];
}

/** The nearest legal form of an edit that isn't legal. */
export interface PartitionSuggestion {
  readonly text: string;
  readonly rows: readonly number[];
  readonly changed: number;
}

/** One tag. */
export interface PartitionTag {
  readonly name: string;
  readonly backend: string;
  readonly settings: string;
  readonly color: number;
  readonly nodes: number;
  readonly input_bytes: number;
  readonly output_bytes: number;
  readonly constant_bytes: number;
  readonly inputs: number;
  readonly outputs: number;
}

/** Measure the machine. */
export interface PeaksRequest {
  readonly again: boolean;
}

/** The side that was added. */
export interface PeerAdded {
  readonly name: string;
}

/** How to run in ExecuTorch's own runtime. */
export interface PeerOptions {
  readonly repeat: number;
}

/** The selection. */
export interface Picked {
  readonly method: string;
  readonly handles: readonly number[];
  readonly node: string | null;
}

/** What a run has measured so far, and what is new. */
export interface ProfileBatch {
  readonly run: number;
  readonly executions: number;
  readonly elapsed: number;
  readonly dropped: number;
  readonly row: Int32Array;
  readonly count: Float64Array;
  readonly sum: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly last: Float64Array;
  readonly sampled: number;
  readonly samples: Float32Array;
  readonly first: number;
  readonly stride: number;
  readonly recent: Float32Array;
}

/** Where the time of a method goes. */
export interface ProfileDocument {
  readonly method: string;
  readonly run: number;
  readonly state: "none" | "running" | "done" | "stopped" | "failed";
  readonly runtime: string;
  readonly executions: number;
  readonly kept: number;
  readonly elapsed: number;
  readonly dropped: number;
  readonly problem: Failure | null;
  readonly values_problem: string;
  readonly total_median: number | null;
  readonly total_mean: number | null;
  readonly total_p10: number | null;
  readonly total_p90: number | null;
  readonly total_min: number | null;
  readonly total_max: number | null;
  readonly name: StringColumn;
  readonly operator: StringColumn;
  readonly backend: StringColumn;
  readonly module: StringColumn;
  readonly source: StringColumn;
  readonly shape: StringColumn;
  readonly parent: Int32Array;
  readonly chain: Int32Array;
  readonly instruction: Int32Array;
  readonly count: Float64Array;
  readonly calls: Float64Array;
  readonly mean: Float64Array;
  readonly median: Float64Array;
  readonly p10: Float64Array;
  readonly p90: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly flops: Float64Array;
  readonly bytes: Float64Array;
  readonly sqnr: Float64Array;
  readonly max_error: Float64Array;
  readonly max_reference: Float64Array;
  readonly before: Float64Array;
  readonly before_median: number | null;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
  readonly history: Float32Array;
  readonly history_execution: Int32Array;
  readonly peaks: MachinePeaks | null;
}

/** A run is over; the profile as measured. */
export interface ProfileEnded {
  readonly run: number;
  readonly document: ProfileDocument;
}

/** A run has begun. */
export interface ProfileStarted {
  readonly run: number;
  readonly method: string;
  readonly repeat: number;
  readonly seconds: number;
  readonly streams: boolean;
}

/** The inside of a delegate. */
export interface ProgramDelegateDocument {
  readonly method: string;
  readonly index: number;
  readonly backend: string;
  readonly format: string;
  readonly note: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly section_name: StringColumn;
  readonly section_start: Float64Array;
  readonly section_bytes: Float64Array;
  readonly step_name: StringColumn;
  readonly step_inputs: StringColumn;
  readonly step_outputs: StringColumn;
  readonly step_detail: StringColumn;
  readonly step_node: StringColumn;
  readonly step_handle_start: Int32Array;
  readonly step_handles: Int32Array;
  readonly value_name: StringColumn;
  readonly value_role: StringColumn;
  readonly value_text: StringColumn;
  readonly hex: StringColumn;
  readonly texts: StringColumn;
}

/** Where the bytes of a file are, and which operators and delegates it calls. */
export interface ProgramDocument {
  readonly size: number;
  readonly saved: number;
  readonly duplicates: number;
  readonly methods: readonly ProgramMethod[];
  readonly part_name: StringColumn;
  readonly part_kind: StringColumn;
  readonly part_parent: Int32Array;
  readonly part_start: Float64Array;
  readonly part_bytes: Float64Array;
  readonly part_detail: StringColumn;
  readonly part_same: Int32Array;
  readonly part_operator: StringColumn;
  readonly part_module: StringColumn;
  readonly part_index: Int32Array;
  readonly part_uses: Int32Array;
  readonly part_handle_start: Int32Array;
  readonly part_handles: Int32Array;
  readonly operator_method: StringColumn;
  readonly operator_name: StringColumn;
  readonly operator_calls: Int32Array;
  readonly operator_kernel: Uint8Array;
  readonly operator_constant_bytes: Float64Array;
  readonly operator_written_bytes: Float64Array;
  readonly operator_handle_start: Int32Array;
  readonly operator_handles: Int32Array;
  readonly delegate_method: StringColumn;
  readonly delegate_index: Int32Array;
  readonly delegate_backend: StringColumn;
  readonly delegate_data: Int32Array;
  readonly delegate_bytes: Float64Array;
  readonly delegate_specs: StringColumn;
  readonly delegate_format: StringColumn;
  readonly delegate_handle_start: Int32Array;
  readonly delegate_handles: Int32Array;
}

/** A method in figures. */
export interface ProgramMethod {
  readonly name: string;
  readonly instructions: number;
  readonly values: number;
  readonly delegates: number;
  readonly inputs: string;
  readonly outputs: string;
  readonly arena_bytes: number;
}

/** Instructions and values of one method. */
export interface ProgramMethodDocument {
  readonly method: string;
  readonly chain: Int32Array;
  readonly index: Int32Array;
  readonly kind: StringColumn;
  readonly name: StringColumn;
  readonly arguments: StringColumn;
  readonly results: StringColumn;
  readonly node: StringColumn;
  readonly module: StringColumn;
  readonly source: StringColumn;
  readonly constant_bytes: Float64Array;
  readonly written_bytes: Float64Array;
  readonly delegate: Int32Array;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
  readonly value_kind: StringColumn;
  readonly value_text: StringColumn;
  readonly value_bytes: Float64Array;
  readonly value_place: StringColumn;
  readonly value_part: Int32Array;
  readonly use_start: Int32Array;
  readonly uses: Int32Array;
}

/** What quantization does to the values, in the rows of the operators; empty before it was measured. */
export interface QuantizationAccuracy {
  readonly method: string;
  readonly measured: boolean;
  readonly samples: number;
  readonly available: number;
  readonly sqnr_db: number | null;
  readonly seconds: number;
  readonly affected: number;
  readonly total: Float64Array;
  readonly own: Float64Array;
  readonly inherited: Float64Array;
  readonly saturation: Float64Array;
}

/** How one layer is quantized, as far as the switch offers it. */
export interface QuantizationChoice {
  readonly dtype: string;
  readonly observer: string;
  readonly granularity: string;
}

/** What became of each operator of one method, and what observers saw. */
export interface QuantizationDocument {
  readonly method: string;
  readonly by: string;
  readonly stage: "prepared" | "calibrated";
  readonly samples: number;
  readonly backend: string;
  readonly editable: boolean;
  readonly why_not: string;
  readonly configurable: boolean;
  readonly node: StringColumn;
  readonly op: StringColumn;
  readonly module: StringColumn;
  readonly source: StringColumn;
  readonly layer: StringColumn;
  readonly state: StringColumn;
  readonly how: StringColumn;
  readonly why: StringColumn;
  readonly backend_why: StringColumn;
  readonly edited: Uint8Array;
  readonly choice: Int32Array;
  readonly choices: readonly QuantizationChoice[];
  readonly observer: Int32Array;
  readonly use_start: Int32Array;
  readonly use: Int32Array;
  readonly role: StringColumn;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
  readonly observers: QuantizationObservers;
  readonly observer_names: readonly string[];
  readonly history: readonly QuantizationStep[];
  readonly undo: string;
  readonly redo: string;
  readonly python: string;
}

/** Quantize a layer or a module otherwise. */
export interface QuantizationEdit {
  readonly method: string;
  readonly node: string;
  readonly module: string;
  readonly dtype: string;
  readonly observer: string;
  readonly granularity: string;
}

/** Measure the accuracy of each operator. */
export interface QuantizationMeasure {
  readonly method: string;
  readonly samples: number;
}

/** A step in the history of decisions by hand. */
export interface QuantizationMove {
  readonly method: string;
  readonly what: "undo" | "redo" | "remove" | "clear";
  readonly index: number;
}

/** What observers saw of groups of tensors, and what follows from it. */
export interface QuantizationObservers {
  readonly name: StringColumn;
  readonly kind: StringColumn;
  readonly spec: StringColumn;
  readonly values: StringColumn;
  readonly readers: StringColumn;
  readonly constant: Uint8Array;
  readonly tensors: Float64Array;
  readonly elements: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly scale: Float64Array;
  readonly scale_min: Float64Array;
  readonly scales: Int32Array;
  readonly zero_point: Int32Array;
  readonly quant_min: Int32Array;
  readonly quant_max: Int32Array;
  readonly clipped: Float64Array;
  readonly bins_start: Int32Array;
  readonly counts: Float64Array;
  readonly bins_low: Float64Array;
  readonly bins_high: Float64Array;
  readonly channel_start: Int32Array;
  readonly channel_min: Float32Array;
  readonly channel_max: Float32Array;
  readonly channel_scale: Float32Array;
  readonly channels: Int32Array;
  readonly worst: Int32Array;
  readonly worst_why: StringColumn;
  readonly per_channel: Uint8Array;
  readonly handle_start: Int32Array;
  readonly handles: Int32Array;
}

/** What lowering again did. */
export interface QuantizationOutcome {
  readonly text: string;
  readonly seconds: number;
  readonly ran: readonly string[];
  readonly bytes_before: number;
  readonly bytes_after: number;
  readonly measured: boolean;
  readonly sqnr_before: number | null;
  readonly sqnr_after: number | null;
  readonly affected: number;
  readonly operators: number;
}

/** How far measuring has come. */
export interface QuantizationProgress {
  readonly method: string;
  readonly done: number;
  readonly total: number;
}

/** One decision by hand that the recipe holds. */
export interface QuantizationStep {
  readonly text: string;
  readonly node: string;
  readonly module: string;
  readonly index: number;
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

/** Run a method and measure. */
export interface StartRequest {
  readonly method: string;
  readonly repeat: number;
  readonly seconds: number;
  readonly values: boolean;
  readonly runtime: "native" | "executorch";
}

/** End the run after the execution that is under way. */
export interface StopRequest {
  readonly method: string;
}

/** One execution, event by event. */
export interface TimelineDocument {
  readonly method: string;
  readonly run: number;
  readonly label: string;
  readonly execution: number;
  readonly duration: number;
  readonly row: Int32Array;
  readonly start: Float64Array;
  readonly length: Float64Array;
  readonly inside: Int32Array;
}

export interface Documents {
  readonly "compare": CompareDocument;
  readonly "compare.graph": GraphDocument;
  readonly "graph": GraphDocument;
  readonly "memory": MemoryDocument;
  readonly "overlays": OverlayDocument;
  readonly "partition": PartitionDocument;
  readonly "partition.state": PartitionState;
  readonly "profile": ProfileDocument;
  readonly "program": ProgramDocument;
  readonly "program_delegate": ProgramDelegateDocument;
  readonly "program_method": ProgramMethodDocument;
  readonly "quantization": QuantizationDocument;
  readonly "quantization.accuracy": QuantizationAccuracy;
  readonly "recipe": RecipeDocument;
  readonly "timeline": TimelineDocument;
}

export interface Calls {
  readonly "compare.peer": { arguments: PeerOptions; result: PeerAdded };
  readonly "graph.details": { arguments: GraphRow; result: GraphDetails };
  readonly "memory.apply": { arguments: MemoryEdit; result: MemoryPreview };
  readonly "memory.preview": { arguments: MemoryEdit; result: MemoryPreview };
  readonly "memory.python": { arguments: MemoryEdit; result: MemoryCode };
  readonly "panel.report": { arguments: ReportOptions; result: ReportFile };
  readonly "partition.apply": { arguments: PartitionRequest; result: PartitionAnswer };
  readonly "partition.move": { arguments: PartitionMove; result: PartitionMoved };
  readonly "partition.preview": { arguments: PartitionRequest; result: PartitionAnswer };
  readonly "partition.relower": { arguments: PartitionRelower; result: PartitionOutcome };
  readonly "profile.export": { arguments: ExportRequest; result: ExportedFile };
  readonly "profile.peaks": { arguments: PeaksRequest; result: MachinePeaks };
  readonly "profile.start": { arguments: StartRequest; result: ProfileStarted };
  readonly "profile.stop": { arguments: StopRequest; result: StopRequest };
  readonly "quantization.edit": { arguments: QuantizationEdit; result: QuantizationOutcome };
  readonly "quantization.measure": { arguments: QuantizationMeasure; result: QuantizationAccuracy };
  readonly "quantization.move": { arguments: QuantizationMove; result: QuantizationOutcome };
}

export interface Events {
  readonly "profile.batch": ProfileBatch;
  readonly "profile.ended": ProfileEnded;
  readonly "profile.rows": ProfileDocument;
  readonly "profile.started": ProfileStarted;
  readonly "quantization.progress": QuantizationProgress;
}
