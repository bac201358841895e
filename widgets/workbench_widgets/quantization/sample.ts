// A quantized method for tests: four operators, three observers.
import type { QuantizationAccuracy, QuantizationDocument, QuantizationObservers } from "../contract.ts";
import { StringColumn } from "../common/unpack.ts";

const text = (...items: string[]) => StringColumn.from(items);

export function observers(changes: Partial<QuantizationObservers> = {}): QuantizationObservers {
  return {
    name: text("x -> conv", "w -> conv", "relu"),
    kind: text("percentile", "weights", "mse"),
    spec: text("int8 per tensor", "int8 per channel (axis 0)", "int8 per tensor"),
    values: text("x", "w", "relu"),
    readers: text("conv", "conv", ""),
    constant: Uint8Array.of(0, 1, 0),
    tensors: Float64Array.of(4, 1, 4),
    elements: Float64Array.of(100, 12, 100),
    min: Float64Array.of(-4, -1, 0),
    max: Float64Array.of(4, 1, 3),
    low: Float64Array.of(-2.56, -1, 0),
    high: Float64Array.of(2.54, 1, 2.55),
    scale: Float64Array.of(0.02, 0.008, 0.01),
    scale_min: Float64Array.of(0.02, 0.002, 0.01),
    scales: Int32Array.of(1, 4, 1),
    zero_point: Int32Array.of(0, 0, -128),
    quant_min: Int32Array.of(-128, -127, -128),
    quant_max: Int32Array.of(127, 127, 127),
    clipped: Float64Array.of(0.1, 0, 0.2),
    bins_start: Int32Array.of(0, 8, 8, 11),
    counts: Float64Array.of(5, 0, 20, 30, 30, 10, 0, 5, 50, 30, 20),
    bins_low: Float64Array.of(-4, 0, 0),
    bins_high: Float64Array.of(4, 0, 3),
    channel_start: Int32Array.of(0, 0, 4, 4),
    channel_min: Float32Array.of(-0.25, -0.25, -1, -0.25),
    channel_max: Float32Array.of(0.25, 0.25, 1, 0.25),
    channel_scale: Float32Array.of(0.002, 0.002, 0.008, 0.002),
    channels: Int32Array.of(0, 4, 0),
    worst: Int32Array.of(-1, 2, -1),
    worst_why: text("", "its scale is 4 times the median of all", ""),
    per_channel: Uint8Array.of(0, 1, 0),
    handle_start: Int32Array.of(0, 1, 2, 3),
    handles: Int32Array.of(1, 2, 11),
    ...changes,
  };
}

/** conv and relu are one layer; add is quantized, but not fused; softmax stays in floats. */
export function sample(changes: Partial<QuantizationDocument> = {}): QuantizationDocument {
  return {
    method: "forward",
    by: "XNNPACKQuantizer",
    stage: "calibrated",
    samples: 4,
    backend: "XnnpackPartitioner",
    editable: true,
    why_not: "",
    configurable: true,
    node: text("conv", "relu", "add", "softmax"),
    op: text("aten.conv2d.default", "aten.relu.default", "aten.add.Tensor", "aten.softmax.int"),
    module: text("body.conv", "body.act", "", "head"),
    source: text("/net.py:3", "/net.py:4", "", ""),
    layer: text("conv", "conv", "add", "softmax"),
    state: text("quantized", "quantized", "quantized, not fused", "float"),
    how: text("int8 activations", "computed along with conv", "int8 activations", ""),
    why: text("", "", "", "there is no integer kernel"),
    backend_why: text("", "", "its inputs differ", ""),
    edited: Uint8Array.of(0, 0, 0, 0),
    choice: Int32Array.of(0, 0, 0, 1),
    choices: [
      { dtype: "int8", observer: "mse", granularity: "channel" },
      { dtype: "float", observer: "", granularity: "" },
    ],
    observer: Int32Array.of(1, 2, 0, -1),
    use_start: Int32Array.of(0, 2, 3, 4, 4),
    use: Int32Array.of(1, 0, 2, 0),
    role: text("weight w", "input x", "result", "input x"),
    handle_start: Int32Array.of(0, 1, 2, 3, 4),
    handles: Int32Array.of(10, 11, 12, 13),
    observers: observers(),
    observer_names: ["min_max", "percentile", "mse"],
    history: [],
    undo: "",
    redo: "",
    python: "import workbench as wb\n",
    ...changes,
  };
}

export function accuracy(changes: Partial<QuantizationAccuracy> = {}): QuantizationAccuracy {
  return {
    method: "forward",
    measured: true,
    samples: 4,
    available: 8,
    sqnr_db: 31.25,
    seconds: 0.5,
    affected: 4,
    total: Float64Array.of(40, 35, 30, 31.25),
    own: Float64Array.of(40, 38, 33, Infinity),
    inherited: Float64Array.of(Infinity, 45, 34, 31.25),
    saturation: Float64Array.of(NaN, 0.2, 0, NaN),
    ...changes,
  };
}

export const unmeasured = (): QuantizationAccuracy =>
  accuracy({
    measured: false,
    samples: 0,
    sqnr_db: null,
    total: new Float64Array(),
    own: new Float64Array(),
    inherited: new Float64Array(),
    saturation: new Float64Array(),
  });
