"""The runtime's XNNPACK delegate on blobs put together by hand: what it reads, what it refuses, and why."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import pytest
import torch

from workbench.emit import ir
from workbench.errors import ExecutionError
from workbench.runtime import Runtime
from workbench.serialize import write_program
from workbench.serialize._generated import xnnpack_generated as fb

NONE = 0xFFFFFFFF
IN_NAMED_DATA = 0xFFFFFFFFFFFFFFFF
INPUT, OUTPUT = 1, 2
F32, F16, QINT8 = 1, 2, 3
INFINITY = float("inf")


@dataclass
class Blob:
    """A graph, value by value, and the program around it."""

    graph: fb.GraphT = field(default_factory=fb.GraphT)
    named: dict[str, bytes] = field(default_factory=dict)
    region: bytes = b""
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    outputs: list[tuple[int, ...]] = field(default_factory=list)
    identifier: bytes = b"XN01"
    dtype: int = 6  # of the arguments
    dynamism: int = 0

    def __post_init__(self) -> None:
        self.graph.version = "0"
        self.graph.numExterns = 0
        self.graph.xvalues, self.graph.xnodes = [], []
        self.graph.constantData = [self._place(0, 0, None)]

    def _place(self, offset: int, size: int, key: str | None) -> fb.ConstantDataOffsetT:
        place = fb.ConstantDataOffsetT()
        place.offset, place.size, place.namedKey = offset, size, key
        return place

    def value(self, *sizes: int, flags: int = 0, constant: int = 0, dtype: int = F32) -> int:
        tensor = fb.TensorT()
        tensor.datatype, tensor.numDims, tensor.dims = dtype, len(sizes), list(sizes)
        tensor.constantBufferIdx, tensor.flags = constant, flags
        tensor.externalId, tensor.idOut = NONE, len(self.graph.xvalues)
        if flags:
            tensor.externalId = self.graph.numExterns
            self.graph.numExterns += 1
            (self.inputs if flags == INPUT else self.outputs).append(sizes)
        value = fb.ValueT()
        value.xvalueUnionType, value.xvalueUnion = fb.AnyTensor.Tensor, tensor
        self.graph.xvalues.append(value)
        return tensor.idOut

    def constant(self, data: torch.Tensor, *sizes: int, where: str = "named") -> int:
        raw = data.contiguous().numpy().tobytes()
        if where == "named":
            self.named[f"key{len(self.named)}"] = raw
            place = self._place(IN_NAMED_DATA, len(raw), f"key{len(self.named) - 1}")
        elif where == "region":
            place = self._place(len(self.region), len(raw), None)
            self.region += raw + bytes(-len(raw) % 16)
        else:
            buffer = fb.BufferT()
            buffer.storage = list(raw)
            self.graph.constantBuffer = [*(self.graph.constantBuffer or [fb.BufferT()]), buffer]
            place = self._place(0, 0, None)
        self.graph.constantData.append(place)
        dtype = F16 if data.dtype == torch.float16 else F32
        return self.value(*(sizes or data.shape), constant=len(self.graph.constantData) - 1, dtype=dtype)

    def node(
        self, kind: str, table: Any = None, bounds: tuple[float, float] | None = None, **fields: Any
    ) -> Any:
        node = fb.NodeT()
        node.xnodeUnionType = getattr(fb.Operator, kind)
        node.xnodeUnion = fb.OperatorCreator(node.xnodeUnionType, None) if table is None else table
        node.debugHandle = len(self.graph.xnodes)
        for name, value in fields.items():
            assert hasattr(node.xnodeUnion, name), name
            setattr(node.xnodeUnion, name, value)
        if bounds is not None:
            node.outputMinMax = fb.OutputMinMaxT()
            node.outputMinMax.outputMin, node.outputMinMax.outputMax = bounds
        self.graph.xnodes.append(node)
        return node.xnodeUnion

    def unary(self, kind: str, source: int, target: int, **options: Any) -> Any:
        return self.node(kind, fb.UnaryT(), inputId=source, outputId=target, flags=0, **options)

    def binary(self, kind: str, a: int, b: int, target: int, **options: Any) -> Any:
        return self.node(kind, fb.BinaryT(), input1Id=a, input2Id=b, outputId=target, flags=0, **options)

    def tensor(self, index: int) -> fb.TensorT:
        return self.graph.xvalues[index].xvalueUnion

    def blob(self, header: bool = True) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.graph.Pack(builder), file_identifier=self.identifier)
        graph = bytes(builder.Output())
        if not header:
            return graph
        graph += bytes(-len(graph) % 16)
        start = 32
        fields = struct.pack(
            "<4s4sHIIIQ", b"", b"XH00", 30, start, len(graph), start + len(graph), len(self.region)
        )
        return fields + bytes(start - len(fields)) + graph + self.region

    def program(self, blob: bytes | None = None) -> bytes:
        method = ir.Method(name="forward", arena_sizes=[0, 0])
        args = []
        for shape in (*self.inputs, *self.outputs):
            tensor = ir.Tensor(self.dtype, shape, tuple(range(len(shape))), self.dynamism)
            tensor.allocation = (1, method.arena_sizes[1])
            method.arena_sizes[1] += -(-tensor.nbytes // 16) * 16
            method.values.append(tensor)
            args.append(len(method.values) - 1)
        method.inputs, method.outputs = args[: len(self.inputs)], args[len(self.inputs) :]
        method.delegates.append(ir.Delegate("XnnpackBackend", 0))
        method.instructions.append(ir.DelegateCall(0, tuple(args)))
        program = ir.Program(methods=[method], delegate_data=[memoryview(blob or self.blob())])
        program.named_data = {key: ir.NamedBytes(memoryview(data), 16) for key, data in self.named.items()}
        return bytes(write_program(program).buffer)

    def load(self, blob: bytes | None = None) -> Any:
        return Runtime.get().load_program(self.program(blob)).load_method("forward")

    def refuse(self, text: str, code: str = "InvalidProgram", blob: bytes | None = None) -> None:
        with pytest.raises(ExecutionError, match=text) as caught:
            self.load(blob)
        assert caught.value.code == code, caught.value


def chain() -> tuple[Blob, Any, Any]:
    """abs, then a product with a constant: the blob and both nodes' tables."""
    blob = Blob()
    x, y = blob.value(2, 3, flags=INPUT), blob.value(2, 3, flags=OUTPUT)
    weight, between = blob.constant(torch.tensor([1.0, 2.0, -3.0])), blob.value(2, 3)
    first = blob.unary("Abs", x, between)
    second = blob.binary("Multiply", between, weight, y)
    return blob, first, second


X = torch.tensor([[-1.0, 2.0, 3.0], [4.0, -5.0, 0.5]])
EXPECTED = X.abs() * torch.tensor([1.0, 2.0, -3.0])


def linear(where: str) -> Blob:
    blob = Blob()
    x, y = blob.value(2, 3, flags=INPUT), blob.value(2, 4, flags=OUTPUT)
    weight = blob.constant(torch.arange(12.0).view(4, 3), where=where)
    bias = blob.constant(torch.tensor([1.0, -1.0, 0.0, 2.0]), where=where)
    blob.node(
        "FullyConnected",
        fb.FullyConnectedT(),
        (0.0, 20.0),
        input1Id=x,
        filterId=weight,
        biasId=bias,
        outputId=y,
    )
    return blob


def test_chain_of_nodes_runs() -> None:
    blob, _, _ = chain()
    assert torch.equal(blob.load().execute([X])[0], EXPECTED)


@pytest.mark.parametrize("where", ["named", "region", "flatbuffer"])
def test_constants_are_found_where_each_version_keeps_them(where: str) -> None:
    blob = linear(where)
    blob.identifier = b"XN01" if where == "named" else b"XN00"
    weight, bias = torch.arange(12.0).view(4, 3), torch.tensor([1.0, -1.0, 0.0, 2.0])
    expected = (X @ weight.T + bias).clamp(0, 20)
    method = blob.load(blob.blob(header=where != "flatbuffer"))
    assert torch.allclose(method.execute([X])[0], expected)
    assert torch.allclose(method.execute([X.flip(0)])[0], expected.flip(0))


def test_blob_that_is_not_aligned_is_read() -> None:
    blob, _, _ = chain()
    whole = blob.blob()
    graph = whole[32:]
    for shift in (1, 2, 4):
        start = 32 + shift
        fields = struct.pack("<4s4sHIIIQ", b"", b"XH00", 30, start, len(graph), start + len(graph), 0)
        method = blob.load(fields + bytes(start - len(fields)) + graph)
        assert torch.equal(method.execute([X])[0], EXPECTED)


def test_bounds_apply_to_the_kinds_that_have_them() -> None:
    for kind, expected in (("Add", (X + X).clamp(-1, 4)), ("Maximum", X), ("Clamp", X.clamp(-1, 4))):
        blob = Blob()
        x, y = blob.value(2, 3, flags=INPUT), blob.value(2, 3, flags=OUTPUT)
        if kind == "Clamp":
            blob.unary(kind, x, y, bounds=(-1.0, 4.0))
        else:
            blob.binary(kind, x, x, y, bounds=(-1.0, 4.0))
        assert torch.equal(blob.load().execute([X])[0], expected), kind


def test_scalar_arguments_stand_for_values_of_one_element() -> None:
    blob = Blob()
    x, scale, y = blob.value(1, flags=INPUT), blob.constant(torch.tensor([3.0])), blob.value(1, flags=OUTPUT)
    blob.binary("Multiply", x, scale, y)
    blob.inputs, blob.outputs = [()], [()]
    [found] = blob.load().execute([torch.tensor(2.0)])
    assert found.shape == () and found.item() == 6.0


def test_arguments_may_stand_in_any_order() -> None:
    blob = Blob()
    y = blob.value(2, 3, flags=OUTPUT)
    a, unused, b = (blob.value(2, 3, flags=INPUT) for _ in range(3))
    blob.binary("Subtract", a, b, y)
    # Delegate calls have inputs first; the values may be listed in any order, and an input needs no reader.
    for value, place in ((a, 2), (unused, 1), (b, 0), (y, 3)):
        blob.tensor(value).externalId = place
    values = [torch.full((2, 3), float(i)) for i in range(3)]
    assert torch.equal(blob.load().execute(values)[0], values[2] - values[0])


def test_smaller_sizes_run_where_the_program_says_that_they_may() -> None:
    blob, _, _ = chain()
    blob.dynamism = 1
    method = blob.load()
    assert torch.equal(method.execute([X[:1]])[0], EXPECTED[:1])
    assert torch.equal(method.execute([X])[0], EXPECTED)
    with pytest.raises(ExecutionError):
        method.execute([torch.zeros(3, 3)])
    with pytest.raises(ExecutionError):  # the constant has three
        method.execute([torch.zeros(2, 2)])
    assert torch.equal(method.execute([X])[0], EXPECTED)


# ---- values that are refused -------------------------------------------------------------------------------


def _set(target: Callable[[Blob], Any], **fields: Any) -> Callable[[Blob], None]:
    def change(blob: Blob) -> None:
        for name, value in fields.items():
            setattr(target(blob), name, value)

    return change


def _value(index: int, **fields: Any) -> Callable[[Blob], None]:
    return _set(lambda blob: blob.tensor(index), **fields)


def _node(index: int, **fields: Any) -> Callable[[Blob], None]:
    return _set(lambda blob: blob.graph.xnodes[index].xnodeUnion, **fields)


def _constant(**fields: Any) -> Callable[[Blob], None]:
    return _set(lambda blob: blob.graph.constantData[1], **fields)


# In the chain: values 0 input, 1 output, 2 constant, 3 between; nodes 0 Abs, 1 Multiply.
BROKEN: dict[str, tuple[Callable[[Blob], None], str, str]] = {
    "unknown_type": (
        _value(3, datatype=77),
        "value 3: expected FP32, FP16 or a quantized type, found type 77",
        "NotSupported",
    ),
    "integers": (_value(0, datatype=12), "value 0: .*INT32", "NotSupported"),
    "bfloat16": (_value(0, datatype=14), "value 0: .*BF16", "NotSupported"),
    "quantized": (_value(3, datatype=QINT8), "value 3: type QINT8 without a quantization", "InvalidProgram"),
    "quantized_later": (
        _value(0, dqDatatype=QINT8),
        "value 0 is to be quantized to QINT8 when it comes in",
        "NotSupported",
    ),
    "flags": (_value(3, flags=8), "value 3: flags 0x8", "InvalidProgram"),
    "input_and_output": (_value(0, flags=3), "value 0: flags 0x3", "InvalidProgram"),
    "no_id": (_value(3, idOut=NONE), "value 3 of the list has no id", "InvalidProgram"),
    "same_id": (_value(3, idOut=0), "two values have the id 0", "InvalidProgram"),
    "same_argument": (_value(1, externalId=0), "two values are argument 0", "InvalidProgram"),
    "argument_out_of_range": (_value(1, externalId=2), "value 1: argument 2 of 2", "InvalidProgram"),
    "rank": (_value(3, numDims=3), "value 3: 2 sizes, 3 dimensions", "InvalidProgram"),
    "many_dims": (
        _value(3, dims=[1] * 9, numDims=9),
        "value 3: 9 sizes, 9 dimensions: expected the same, at most 8",
        "InvalidProgram",
    ),
    "huge": (_value(3, dims=[NONE, NONE]), "value 3: size 4294967295 .* too large", "InvalidProgram"),
    "other_sizes": (
        _value(3, dims=[2, 4]),
        r"node 0 \(Abs\): output_id: value 3: expected the sizes \[2, 3\].*found \[2, 4\]",
        "InvalidProgram",
    ),
    "other_type": (
        _value(3, datatype=F16),
        r"node 0 \(Abs\): output_id: value 3: expected float32, found float16",
        "InvalidProgram",
    ),
    "constant_argument": (
        _value(0, constantBufferIdx=1),
        "value 0 is a constant and an arg",
        "InvalidProgram",
    ),
    "constant_index": (
        _value(2, constantBufferIdx=9),
        "constant 9: the graph has 2 constants",
        "InvalidProgram",
    ),
    "constant_too_small": (
        _constant(size=8),
        "constant 1: its value takes 12 bytes, found 8",
        "InvalidProgram",
    ),
    "named_too_small": (
        _constant(size=16),
        "constant 1: expected 16 bytes named key0, found 12",
        "InvalidProgram",
    ),
    "key_missing": (_constant(namedKey="nothing"), "constant 1: no data named nothing", "NotFound"),
    "neither": (_constant(namedKey=None), "constant 1: it has neither an offset nor a key", "InvalidProgram"),
    "outside": (_constant(namedKey=None, offset=4), "constant 1: 12 bytes at 4 of 0", "InvalidProgram"),
    "externals": (
        _set(lambda b: b.graph, numExterns=5000),
        "4 values, 5000 of them external",
        "InvalidProgram",
    ),
    "version": (_set(lambda b: b.graph, version="7"), "version 0, found '7'", "DelegateInvalidCompatibility"),
    # nodes
    "no_such_value": (_node(0, inputId=44), r"node 0 \(Abs\): input_id: there is no value", "InvalidProgram"),
    "no_such_output": (
        _node(1, outputId=NONE),
        r"node 1 \(Multiply\): output_id: there is no",
        "InvalidProgram",
    ),
    "cycle": (_node(0, inputId=3), r"node 0 \(Abs\): input_id: value 3 is read before", "InvalidProgram"),
    "written_twice": (
        _node(1, outputId=3),
        r"node 1 \(Multiply\): output_id: value 3 is an in",
        "InvalidProgram",
    ),
    "input_written": (
        _node(0, outputId=0),
        r"node 0 \(Abs\): output_id: value 0 is an input",
        "InvalidProgram",
    ),
    "constant_written": (
        _node(0, outputId=2),
        r"node 0 \(Abs\): output_id: value 2 is an in",
        "InvalidProgram",
    ),
    "node_flags": (_node(0, flags=4), r"node 0 \(Abs\): flags 0x4", "NotSupported"),
    "unwritten": (
        lambda b: b.graph.xnodes.pop(),
        "value 1 is an output, and no node writes it",
        "InvalidProgram",
    ),
    "empty": (lambda b: b.graph.xnodes.clear(), "value 1 is an output", "InvalidProgram"),
    "unknown_kind": (
        _set(lambda b: b.graph.xnodes[0], xnodeUnionType=fb.Operator.ArgMaxPooling2d),
        "nodes of kind 21 are not read",
        "NotSupported",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_graph_is_refused_with_its_place(name: str) -> None:
    blob, _, _ = chain()
    change, text, code = BROKEN[name]
    change(blob)
    blob.refuse(text, code)


def test_values_that_do_not_broadcast_are_refused() -> None:
    blob = Blob()
    a, b, y = blob.value(2, 3, flags=INPUT), blob.value(2, 4, flags=INPUT), blob.value(2, 3, flags=OUTPUT)
    blob.binary("Add", a, b, y)
    blob.refuse(r"node 0 \(Add\): inputs of sizes \[2, 3\] and \[2, 4\] don't broadcast")


@pytest.mark.parametrize("bounds", [(float("nan"), 1.0), (0.0, float("nan"))])
def test_bounds_that_are_no_numbers_are_refused(bounds: tuple[float, float]) -> None:
    blob = Blob()
    x, y = blob.value(2, flags=INPUT), blob.value(2, flags=OUTPUT)
    blob.binary("Add", x, x, y, bounds=bounds)
    blob.refuse(r"node 0 \(Add\): the bounds of its result are")


# ---- nodes with attributes ---------------------------------------------------------------------------------


def convolution(**changes: Any) -> Blob:
    blob = Blob()
    x, y = blob.value(1, 5, 5, 2, flags=INPUT), blob.value(1, 3, 3, 4, flags=OUTPUT)
    weight, bias = blob.constant(torch.ones(4, 3, 3, 2)), blob.constant(torch.zeros(4))
    fields = {f"padding{side}": 0 for side in ("Top", "Right", "Bottom", "Left")}
    fields |= {f"{name}{axis}": 1 for name in ("subsampling", "dilation") for axis in ("Height", "Width")}
    fields |= {"kernelHeight": 3, "kernelWidth": 3, "groups": 1, "groupInputChannels": 2}
    fields |= {"groupOutputChannels": 4, "input1Id": x, "filterId": weight, "biasId": bias, "outputId": y}
    blob.node(changes.pop("kind", "Conv2d"), fb.ConvT(), **{**fields, **changes})
    return blob


def test_convolution_runs() -> None:
    x = torch.arange(50.0).view(1, 5, 5, 2)
    expected = torch.conv2d(x.permute(0, 3, 1, 2), torch.ones(4, 2, 3, 3)).permute(0, 2, 3, 1)
    assert torch.allclose(convolution().load().execute([x])[0], expected)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"subsamplingHeight": 0}, "subsampling_height: expected 1 to"),
        ({"dilationWidth": NONE}, "dilation_width: expected 1 to"),
        ({"paddingTop": NONE}, "padding_top: expected 0 to"),
        ({"groups": 0}, "groups: expected 1 to"),
        ({"groups": 2}, r"filter_id: expected the sizes \[8, 3, 3, 2\], found \[4, 3, 3, 2\]"),
        ({"kernelWidth": 2}, r"filter_id: expected the sizes \[4, 3, 2, 2\]"),
        ({"groupOutputChannels": 1 << 20}, r"filter_id: expected the sizes \[1048576"),
        ({"dilationHeight": 3}, r"an image of sizes \[1, 5, 5, 2\] gives a result of 0 x 3 pixels"),
        ({"paddingTop": 1}, r"output_id: value 1: expected the sizes \[1, 4, 3, 4\].*found \[1, 3, 3, 4\]"),
        ({"paddingTop": 1 << 28, "paddingLeft": 1 << 28}, "output_id: value 1 of sizes .* is too large"),
        ({"input1Id": 3}, r"input1_id: expected 4 dimensions, found \[4\]"),
        ({"biasId": 2}, r"bias_id: expected a constant of 4 elements, found sizes \[4, 3, 3, 2\]"),
        ({"filterId": 0}, "filter_id: expected a constant"),
        ({"kind": "ConvTranspose2d", "paddingTop": 9}, "gives a result of -2 x 7 pixels"),
        ({"kind": "DepthwiseConv2d"}, r"filter_id: expected the sizes \[1, 3, 3, 4\]"),
    ],
)
def test_convolution_that_does_not_fit_is_refused(changes: dict[str, Any], text: str) -> None:
    code = "NotSupported" if changes.get("filterId") == 0 else "InvalidProgram"
    convolution(**changes).refuse(text, code)


def _one(kind: str, table: Any, given: tuple[int, ...], result: tuple[int, ...], **fields: Any) -> Blob:
    blob = Blob()
    x, y = blob.value(*given, flags=INPUT), blob.value(*result, flags=OUTPUT)
    blob.node(kind, table, inputId=x, outputId=y, **fields)
    return blob


def _pool(**changes: Any) -> Blob:
    fields = {f"{name}{axis}": 1 for name in ("stride", "dilation") for axis in ("Height", "Width")}
    fields |= {"poolingHeight": 2, "poolingWidth": 2, **changes}
    return _one("MaxPooling2d", fb.Pooling2DT(), (1, 4, 4, 2), (1, 3, 3, 2), **fields)


IMAGE = (1, 4, 4, 2)
MISFITS: dict[str, tuple[Callable[[], Blob], str]] = {
    "pool_size": (lambda: _pool(poolingHeight=0), "pooling_height: expected 1 to"),
    "pool_stride": (lambda: _pool(strideWidth=0), "stride_width: expected 1 to"),
    "pool_padding": (lambda: _pool(paddingLeft=2), "padding_left: expected 0 to 1, found 2"),
    "pool_too_large": (lambda: _pool(poolingHeight=5), "windows of 5 x 2 don't fit into an image"),
    "perm_short": (
        lambda: _one("StaticTranspose", fb.TransposeT(), (2, 3), (3, 2), perm=[1]),
        "perm: expected 2 numbers, found 1",
    ),
    "perm_missing": (
        lambda: _one("StaticTranspose", fb.TransposeT(), (2, 3), (3, 2)),
        "perm: expected 2 numbers, found 0",
    ),
    "perm_twice": (
        lambda: _one("StaticTranspose", fb.TransposeT(), (2, 3), (3, 2), perm=[1, 1]),
        "perm: 1 at place 1 is out of range or there twice",
    ),
    "perm_outside": (
        lambda: _one("StaticTranspose", fb.TransposeT(), (2, 3), (3, 2), perm=[1, NONE]),
        "perm: 4294967295 at place 1",
    ),
    "reshape_numel": (
        lambda: _one("StaticReshape", fb.ReshapeT(), (2, 3), (7,), newShape=[7]),
        r"sizes \[2, 3\] can't become new_shape \[7\]",
    ),
    "reshape_two_inferred": (
        lambda: _one("StaticReshape", fb.ReshapeT(), (2, 3), (2, 3), newShape=[0, 0]),
        "dimensions 0 and 1 are to be inferred",
    ),
    "reshape_inferred": (
        lambda: _one("StaticReshape", fb.ReshapeT(), (2, 3), (4, 1), newShape=[4, 0]),
        r"sizes \[2, 3\] can't become new_shape",
    ),
    "reshape_huge": (
        lambda: _one("StaticReshape", fb.ReshapeT(), (2, 3), (6,), newShape=[NONE, NONE]),
        "size 4294967295 of dimension 1 is too large",
    ),
    "reshape_rank": (
        lambda: _one("StaticReshape", fb.ReshapeT(), (2, 3), (6,), newShape=[1] * 9),
        "new_shape: expected at most 8 sizes, found 9",
    ),
    "slice_outside": (
        lambda: _one("StaticSlice", fb.SliceT(), (2, 3), (2, 2), offsets=[0, 2], sizes=[2, 2]),
        "2 elements from 2 on of dimension 1",
    ),
    "slice_far": (
        lambda: _one("StaticSlice", fb.SliceT(), (2, 3), (2, 2), offsets=[0, NONE], sizes=[2, 2]),
        "2 elements from 4294967295 on",
    ),
    "slice_short": (
        lambda: _one("StaticSlice", fb.SliceT(), (2, 3), (2, 2), offsets=[0], sizes=[2, 2]),
        "offsets: expected 2 numbers",
    ),
    "pad_huge": (
        lambda: _one(
            "StaticConstantPad", fb.ConstantPadT(), (2,), (2,), prePaddings=[NONE], postPaddings=[0]
        ),
        "pre_paddings: expected 0 to",
    ),
    "pad_short": (
        lambda: _one("StaticConstantPad", fb.ConstantPadT(), (2,), (2,), prePaddings=[0]),
        "post_paddings: expected 1 numbers, found 0",
    ),
    "resize_nothing": (
        lambda: _one("StaticResizeBilinear2D", fb.ResizeBilinear2DT(), IMAGE, IMAGE, newHeight=0, newWidth=4),
        "new_height: expected 1 to",
    ),
    "mean_rank": (
        lambda: _one("GlobalAvgPooling2d", fb.UnaryT(), (2, 3), (1, 1), flags=64),
        "input_id: expected an image",
    ),
    "alpha": (
        lambda: _one("LeakyReLU", fb.LeakyReLUT(), (2, 3), (2, 3), negativeSlope=INFINITY),
        "negative_slope is inf",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_node_that_does_not_fit_is_refused(name: str) -> None:
    make, text = MISFITS[name]
    make().refuse(text)


@pytest.mark.parametrize("axis", [2, NONE])
def test_axis_out_of_range_is_refused(axis: int) -> None:
    blob = Blob()
    a, b, y = blob.value(2, 3, flags=INPUT), blob.value(2, 3, flags=INPUT), blob.value(2, 6, flags=OUTPUT)
    ids = {"input1Id": a, "input2Id": b, "outputId": y}
    blob.node("Concatenate2", fb.ConcatenateT(), axis=axis, **ids)
    blob.refuse(f"axis {axis} of values of sizes")


# ---- the blob around the graph -----------------------------------------------------------------------------


def test_every_truncation_is_refused() -> None:
    blob, _, _ = chain()
    whole = blob.blob()
    for length in range(1, len(whole), 3):
        with pytest.raises(ExecutionError) as caught:
            blob.load(whole[:length])
        assert caught.value.code in {"InvalidProgram", "DelegateInvalidCompatibility"}, length


@pytest.mark.parametrize(
    ("offset", "field", "text"),
    [
        (8, struct.pack("<H", 20), "expected a length of at least 30, found 20"),
        (10, struct.pack("<I", NONE), "a graph of .* at 4294967295"),
        (14, struct.pack("<I", 1 << 30), "a graph of 1073741824 bytes"),
        (18, struct.pack("<I", 40), "bytes of constants at 40, behind a graph"),
        (22, struct.pack("<Q", (1 << 64) - 1), "18446744073709551615 bytes of constants"),
        (32, struct.pack("<I", NONE), "flatbuffer of .* bytes is damaged"),
    ],
)
def test_damaged_header_is_refused(offset: int, field: bytes, text: str) -> None:
    blob, _, _ = chain()
    whole = bytearray(blob.blob())
    whole[offset : offset + len(field)] = field
    blob.refuse(text, blob=bytes(whole))


def test_other_identifier_is_refused() -> None:
    blob, _, _ = chain()
    blob.identifier = b"XN9\x07"
    blob.refuse(r"XN01 or XN00, found 'XN9\?'", "DelegateInvalidCompatibility")


def test_wrong_arguments_are_refused() -> None:
    blob, _, _ = chain()
    blob.inputs[0] = (2, 4)
    method = blob.load()
    with pytest.raises(ExecutionError, match="expected size 3, found 4"):
        method.execute([torch.zeros(2, 4)])
    blob, _, _ = chain()
    blob.dtype = 7
    with pytest.raises(ExecutionError, match="float32"):
        blob.load().execute([X.double()])
