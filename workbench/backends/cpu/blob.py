"""A graph as the bytes of a delegate's blob (`schema/cpu.fbs`), and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import flatbuffers
import torch

from workbench.backends.cpu.graph import (
    Attributes,
    Graph,
    Node,
    Quantization,
    SizeRule,
    Step,
    Value,
    ValueKind,
    WeightOrder,
    Window,
)
from workbench.errors import PartitionError
from workbench.serialize._generated import cpu_generated as fb

__all__ = ["DTYPES", "VERSION", "read", "write"]

VERSION = 1
_IDENTIFIER = b"WC01"

DTYPES: dict[torch.dtype, int] = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
}
_DTYPE_OF = {number: dtype for dtype, number in DTYPES.items()}
_NAMES = [item.name for item in fields(Attributes)]


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


_ADD: dict[str, Callable[[Any, Any], None]] = {
    name: getattr(fb, f"AttributesAdd{_camel(name)}") for name in _NAMES
}
_START_VECTOR: dict[str, Callable[[Any, int], Any]] = {
    name: getattr(fb, f"AttributesStart{_camel(name)}Vector")
    for name in ("permutation", "sizes", "before", "after")
}


# ---- writing -----------------------------------------------------------------------------------------------


def write(graph: Graph) -> bytes:
    """The blob of a graph.

    Args:
        graph: The graph; its constants are named by keys, or hold their few bytes themselves.
    """
    builder = flatbuffers.Builder(1 << 14)
    nodes = [_write_node(builder, node) for node in graph.nodes]
    values = [_write_value(builder, value) for value in graph.values]
    node_vector = _offsets(builder, nodes, fb.GraphStartNodesVector)
    value_vector = _offsets(builder, values, fb.GraphStartValuesVector)
    fb.GraphStart(builder)
    fb.GraphAddVersion(builder, VERSION)
    fb.GraphAddValues(builder, value_vector)
    fb.GraphAddNodes(builder, node_vector)
    fb.GraphAddInputs(builder, graph.inputs)
    fb.GraphAddOutputs(builder, graph.outputs)
    builder.Finish(fb.GraphEnd(builder), file_identifier=_IDENTIFIER)
    return bytes(builder.Output())


def _offsets(builder: Any, items: Sequence[int], start: Callable[[Any, int], Any]) -> int:
    start(builder, len(items))
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return int(builder.EndVector())


def _numbers(builder: Any, items: Sequence[Any], start: Callable[[Any, int], Any], prepend: str) -> int:
    start(builder, len(items))
    add = getattr(builder, prepend)
    for item in reversed(items):
        add(item)
    return int(builder.EndVector())


def _write_value(builder: Any, value: Value) -> int:
    key = None if value.key is None else builder.CreateString(value.key)
    data = None if value.data is None else _aligned_bytes(builder, value.data)
    sizes = _numbers(builder, value.sizes, fb.ValueStartSizesVector, "PrependInt64")
    quantization = None if value.quantization is None else _write_quantization(builder, value.quantization)
    fb.ValueStart(builder)
    fb.ValueAddKind(builder, int(value.kind))
    fb.ValueAddDtype(builder, DTYPES[value.dtype])
    fb.ValueAddSizes(builder, sizes)
    fb.ValueAddDynamic(builder, value.dynamic)
    fb.ValueAddExternal(builder, value.external)
    if key is not None:
        fb.ValueAddKey(builder, key)
    if data is not None:
        fb.ValueAddData(builder, data)
    if quantization is not None:
        fb.ValueAddQuantization(builder, quantization)
    return int(fb.ValueEnd(builder))


def _write_quantization(builder: Any, q: Quantization) -> int:
    key = None if q.scales_key is None else builder.CreateString(q.scales_key)
    scales = zero_points = None
    if q.scales is not None:
        scales = _numbers(builder, q.scales, fb.QuantizationStartScalesVector, "PrependFloat32")
    if q.zero_points is not None:
        zero_points = _numbers(builder, q.zero_points, fb.QuantizationStartZeroPointsVector, "PrependInt32")
    fb.QuantizationStart(builder)
    fb.QuantizationAddKind(builder, int(q.kind))
    fb.QuantizationAddBits(builder, q.bits)
    fb.QuantizationAddAxis(builder, q.axis)
    fb.QuantizationAddGroup(builder, q.group)
    fb.QuantizationAddScale(builder, q.scale)
    fb.QuantizationAddZeroPoint(builder, q.zero_point)
    if scales is not None:
        fb.QuantizationAddScales(builder, scales)
    if zero_points is not None:
        fb.QuantizationAddZeroPoints(builder, zero_points)
    if key is not None:
        fb.QuantizationAddScalesKey(builder, key)
    return int(fb.QuantizationEnd(builder))


def _aligned_bytes(builder: Any, data: bytes) -> int:
    builder.StartVector(1, len(data), 16)
    for byte in reversed(data):
        builder.PrependByte(byte)
    return int(builder.EndVector())


def _write_node(builder: Any, node: Node) -> int:
    attributes = _write_attributes(builder, node.given) if node.given else None
    steps = None
    if node.steps:
        fb.NodeStartStepsVector(builder, len(node.steps))
        for step in reversed(node.steps):
            first, second, third = (*step.operands, 0, 0, 0)[:3]
            fb.CreateStep(builder, int(step.fn), first, second, third, step.a, step.b)
        steps = builder.EndVector()
    inputs = _numbers(builder, node.inputs, fb.NodeStartInputsVector, "PrependUint32")
    outputs = _numbers(builder, node.outputs, fb.NodeStartOutputsVector, "PrependUint32")
    fb.NodeStart(builder)
    fb.NodeAddOp(builder, int(node.op))
    fb.NodeAddInputs(builder, inputs)
    fb.NodeAddOutputs(builder, outputs)
    if attributes is not None:
        fb.NodeAddAttributes(builder, attributes)
    if steps is not None:
        fb.NodeAddSteps(builder, steps)
    fb.NodeAddSource(builder, node.source)
    return int(fb.NodeEnd(builder))


def _write_attributes(builder: Any, given: dict[str, Any]) -> int:
    vectors = {}
    for name, start in _START_VECTOR.items():
        if name in given:
            vectors[name] = _write_list(builder, name, given[name], start)
    fb.AttributesStart(builder)
    for name, value in given.items():
        if name in vectors:
            _ADD[name](builder, vectors[name])
        elif name == "window":
            _ADD[name](builder, _write_window(builder, value))
        elif name == "weight_order":
            _ADD[name](builder, fb.CreateWeightOrder(builder, value.cout, value.cin, value.h, value.w))
        else:
            _ADD[name](builder, value)
    return int(fb.AttributesEnd(builder))


def _write_list(builder: Any, name: str, items: Sequence[Any], start: Callable[[Any, int], Any]) -> int:
    if name == "sizes":
        start(builder, len(items))
        for rule in reversed(items):
            fb.CreateSizeRule(builder, rule.value, rule.from_input)
        return int(builder.EndVector())
    return _numbers(builder, items, start, "PrependUint8" if name == "permutation" else "PrependInt64")


def _write_window(builder: Any, window: Window) -> int:
    return int(
        fb.CreateWindow(
            builder,
            *window.kernel,
            *window.stride,
            *window.dilation,
            window.top,
            window.bottom,
            window.left,
            window.right,
            window.divisor,
            window.ceil_mode,
            window.count_include_pad,
        )
    )


# ---- reading -----------------------------------------------------------------------------------------------


def read(blob: bytes | memoryview) -> Graph:
    """The graph of a blob.

    Raises:
        PartitionError: The blob is no graph of this backend, is of a later version, or is damaged.
    """
    data = bytes(blob)
    if data[4:8] != _IDENTIFIER:
        raise PartitionError(
            "a blob is no graph of CpuBackend",
            expected=f"the identifier {_IDENTIFIER!r}",
            found=repr(data[4:8]),
        )
    try:
        root = fb.Graph.GetRootAs(data, 0)
        version = root.Version()
        graph = Graph(
            [_read_value(root.Values(i)) for i in range(root.ValuesLength())] if version <= VERSION else [],
            [_read_node(root.Nodes(i)) for i in range(root.NodesLength())] if version <= VERSION else [],
            root.Inputs(),
            root.Outputs(),
        )
    except Exception as error:  # whatever the generated classes stumble over
        raise PartitionError(
            "a blob of CpuBackend is damaged", found=f"{type(error).__name__}: {error}"
        ) from error
    if version > VERSION:
        raise PartitionError(
            "a blob of CpuBackend comes from a later version",
            expected=f"version {VERSION} at most",
            found=str(version),
            hint="update this package",
        )
    return graph


def _read_value(value: Any) -> Value:
    key = value.Key()
    return Value(
        ValueKind(value.Kind()),
        _DTYPE_OF[value.Dtype()],
        tuple(value.Sizes(i) for i in range(value.SizesLength())),
        value.Dynamic(),
        value.External(),
        None if key is None else key.decode(),
        None if value.DataIsNone() else bytes(value.DataAsNumpy()),
        _read_quantization(value.Quantization()),
    )


def _read_quantization(found: Any) -> Quantization | None:
    if found is None:
        return None
    key = found.ScalesKey()
    return Quantization(
        found.Kind(),
        found.Bits(),
        found.Axis(),
        found.Group(),
        found.Scale(),
        found.ZeroPoint(),
        None if found.ScalesIsNone() else tuple(found.Scales(i) for i in range(found.ScalesLength())),
        None
        if found.ZeroPointsIsNone()
        else tuple(found.ZeroPoints(i) for i in range(found.ZeroPointsLength())),
        None if key is None else key.decode(),
    )


def _read_node(node: Any) -> Node:
    found = node.Attributes()
    return Node(
        node.Op(),
        tuple(node.Inputs(i) for i in range(node.InputsLength())),
        tuple(node.Outputs(i) for i in range(node.OutputsLength())),
        {} if found is None else _read_attributes(found),
        tuple(_read_step(node.Steps(i)) for i in range(node.StepsLength())),
        node.Source(),
    )


def _read_step(step: Any) -> Step:
    return Step(step.Fn(), (step.Operand0(), step.Operand1(), step.Operand2()), step.A(), step.B())


def _read_attributes(found: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    defaults = Attributes()
    for name in _NAMES:
        camel = _camel(name)
        if name == "window":
            window = found.Window()
            value: Any = None if window is None else _read_window(window)
        elif name == "weight_order":
            order = found.WeightOrder()
            value = None if order is None else WeightOrder(order.Cout(), order.Cin(), order.H(), order.W())
        elif name in _START_VECTOR:
            items = [getattr(found, camel)(i) for i in range(getattr(found, f"{camel}Length")())]
            value = tuple(SizeRule(i.Value(), i.FromInput()) if name == "sizes" else i for i in items)
        else:
            value = getattr(found, camel)()
        if value != getattr(defaults, name):
            given[name] = value
    return given


def _read_window(window: Any) -> Window:
    return Window(
        (window.KernelH(), window.KernelW()),
        (window.StrideH(), window.StrideW()),
        (window.DilationH(), window.DilationW()),
        window.PadTop(),
        window.PadBottom(),
        window.PadLeft(),
        window.PadRight(),
        window.Divisor(),
        window.CeilMode(),
        window.CountIncludePad(),
    )
