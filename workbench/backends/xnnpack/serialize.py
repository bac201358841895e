"""From a graph to the bytes of a blob: a header, and the flatbuffer of `schema/xnnpack.fbs` behind it.

Constants do not stand in the blob. They go to the program's named data, called by the SHA-256 of their bytes,
so that delegates of all methods that read the same weights share them.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flatbuffers
import torch

from workbench.backends.named_data import NamedDataStore, tensor_bytes
from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.kinds import KINDS
from workbench.backends.xnnpack.quantization import PerChannel, PerGroup, PerRow, PerTensor
from workbench.errors import PartitionError
from workbench.serialize._generated import xnnpack_generated as fb

__all__ = ["CONSTANT_ALIGNMENT", "NONE", "Constants", "serialize"]

NONE = 0xFFFFFFFF  # "no value" where a field names one
CONSTANT_ALIGNMENT = 16
_IN_NAMED_DATA = 0xFFFFFFFFFFFFFFFF
_HEADER = struct.Struct(
    "<4x4sHIIIQ"
)  # magic, its size, flatbuffer's offset and size, constants' offset, size
_HEADER_SIZE = 32
_INPUT, _OUTPUT = 1, 2
# By element type and kind of quantization; constants of 4 bits are int8 until they are written.
_DATA_TYPES: Mapping[tuple[torch.dtype, type], int] = {
    (torch.float32, type(None)): fb.DataType.FP32,
    (torch.float16, type(None)): fb.DataType.FP16,
    (torch.int32, type(None)): fb.DataType.INT32,
    (torch.int8, PerTensor): fb.DataType.QINT8,
    (torch.int8, PerChannel): fb.DataType.QCINT8,
    (torch.int8, PerGroup): fb.DataType.QBINT4,
    (torch.int8, PerRow): fb.DataType.QDINT8,
    (torch.int32, PerTensor): fb.DataType.QINT32,
    (torch.int32, PerChannel): fb.DataType.QCINT32,
}
_SCALE = "scale_"  # before the hash, in the names of scales
# The tables' vectors of numbers; all other fields but floats are unsigned.
_VECTORS = {"perm", "new_shape", "offsets", "sizes", "pre_paddings", "post_paddings"}


class Constants:
    """The constants of all delegates of a program, each hashed once."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[str, memoryview, torch.Tensor]] = {}

    def entry(self, tensor: torch.Tensor, prefix: str = "") -> tuple[str, memoryview]:
        """The name and the bytes of a tensor, in row-major order."""
        return self._entry(tensor, prefix, tensor_bytes)

    def packed(self, tensor: torch.Tensor) -> tuple[str, memoryview]:
        """The name and the bytes of a matrix of 4-bit integers, two in a byte."""
        return self._entry(tensor, "", lambda integers: tensor_bytes(nibbles(integers)))

    def _entry(
        self, tensor: torch.Tensor, prefix: str, read: Callable[[torch.Tensor], memoryview]
    ) -> tuple[str, memoryview]:
        key = (
            tensor.data_ptr(),
            tensor.dtype,
            tuple(tensor.shape),
            tensor.stride(),
            prefix,
            read is tensor_bytes,
        )
        if key not in self._known:
            data = read(tensor)
            # The tensor is kept: an address stands for it only while it lives.
            self._known[key] = (prefix + hashlib.sha256(data).hexdigest(), data, tensor)
        name, data, _ = self._known[key]
        return name, data


def nibbles(integers: torch.Tensor) -> torch.Tensor:
    """Integers from -8 to 7, plus 8, two in a byte, the first in its low half; each row begins a byte.

    Args:
        integers: int8, (rows, columns).

    Returns:
        uint8, (rows, ceil(columns / 2)).
    """
    shifted = (integers + 8).to(torch.uint8)
    if shifted.shape[1] % 2:
        shifted = torch.nn.functional.pad(shifted, (0, 1))
    return shifted[:, ::2] | (shifted[:, 1::2] << 4)


def _is_four_bits(value: Value) -> bool:
    return isinstance(value.quantization, PerGroup) or (
        isinstance(value.quantization, PerChannel) and value.quantization.bits == 4
    )


def _data_type(value: Value) -> int:
    found = _DATA_TYPES.get((value.dtype, type(value.quantization)))
    if found is None:
        raise PartitionError(
            "XNNPACK has no such tensors",
            stage="lower",
            expected=", ".join(str(dtype) for dtype, kind in _DATA_TYPES if kind is type(None)),
            found=str(value.dtype),
        )
    return fb.DataType.QCINT4 if found == fb.DataType.QCINT8 and _is_four_bits(value) else found


def serialize(graph: Graph, store: NamedDataStore, constants: Constants, identifiers: Sequence[int]) -> bytes:
    """Write a graph.

    Args:
        graph: After the passes: shapes are in the order of memory.
        store: Takes the constants.
        constants: Names of constants, shared between the delegates of a program.
        identifiers: For each call the number by which the runtime's events know it.

    Returns:
        The blob.
    """
    writer = _Writer(graph, store, constants)
    return writer.blob(identifiers)


class _Writer:
    def __init__(self, graph: Graph, store: NamedDataStore, constants: Constants) -> None:
        self._graph = graph
        self._store = store
        self._constants = constants
        self._builder = flatbuffers.Builder(1 << 16)
        self._ids: dict[Value, int] = {}
        self._named: dict[str, int] = {}
        self._named_sizes: list[int] = []
        self._values: list[int] = []

    def blob(self, identifiers: Sequence[int]) -> bytes:
        graph, builder = self._graph, self._builder
        for index, value in enumerate(graph.inputs):
            self._define(value, _INPUT, index)
        for index, value in enumerate(graph.outputs, len(graph.inputs)):
            self._define(value, _OUTPUT, index)
        for call in graph.calls:
            for value in (*call.given, call.output):
                if value not in self._ids:
                    self._define(value, 0, NONE)
        nodes = [self._node(call, number) for call, number in zip(graph.calls, identifiers, strict=True)]
        data = [self._constant_data(0, 0, None)]
        data += [
            self._constant_data(_IN_NAMED_DATA, size, name)
            for name, size in zip(self._named, self._named_sizes, strict=True)
        ]
        version = builder.CreateString("0")
        vectors = [self._offsets(list_) for list_ in (nodes, self._values, data)]
        inputs = self._numbers(range(len(graph.inputs)))
        externals = len(graph.inputs) + len(graph.outputs)
        outputs = self._numbers(range(len(graph.inputs), externals))
        fb.GraphStart(builder)
        fb.GraphAddVersion(builder, version)
        fb.GraphAddXnodes(builder, vectors[0])
        fb.GraphAddXvalues(builder, vectors[1])
        fb.GraphAddConstantData(builder, vectors[2])
        fb.GraphAddInputIds(builder, inputs)
        fb.GraphAddOutputIds(builder, outputs)
        fb.GraphAddNumExterns(builder, externals)
        builder.Finish(fb.GraphEnd(builder), file_identifier=b"XN01")
        return _with_header(bytes(builder.Output()))

    def _define(self, value: Value, flag: int, external: int) -> None:
        number = len(self._values)
        self._ids[value] = number
        builder = self._builder
        dims = self._numbers(value.shape)
        fb.TensorStart(builder)
        fb.TensorAddDatatype(builder, _data_type(value))
        fb.TensorAddNumDims(builder, value.rank)
        fb.TensorAddDims(builder, dims)
        fb.TensorAddConstantBufferIdx(builder, self._constant_index(value))
        fb.TensorAddExternalId(builder, external)
        fb.TensorAddFlags(builder, flag)
        fb.TensorAddIdOut(builder, number)
        tensor = fb.TensorEnd(builder)
        kind = fb.AnyTensor.Tensor
        if value.quantization is not None:
            tensor, kind = self._quantized(value, tensor), fb.AnyTensor.QuantizedTensor
        fb.ValueStart(builder)
        fb.ValueAddXvalueUnionType(builder, kind)
        fb.ValueAddXvalueUnion(builder, tensor)
        self._values.append(fb.ValueEnd(builder))

    def _quantized(self, value: Value, tensor: int) -> int:
        """The table of a tensor with its quantization."""
        builder = self._builder
        kind, parameters = self._parameters(value)
        fb.QuantizedTensorStart(builder)
        fb.QuantizedTensorAddTensorValue(builder, tensor)
        fb.QuantizedTensorAddQuantParamsType(builder, kind)
        fb.QuantizedTensorAddQuantParams(builder, parameters)
        return fb.QuantizedTensorEnd(builder)  # type: ignore[no-any-return]

    def _parameters(self, value: Value) -> tuple[int, int]:
        """The union's number and the table of a quantization."""
        builder, quantization = self._builder, value.quantization
        if isinstance(quantization, PerTensor):
            fb.PerTensorQuantStart(builder)
            fb.PerTensorQuantAddScale(builder, quantization.scale)
            fb.PerTensorQuantAddZeroPoint(builder, quantization.zero_point)
            return fb.QuantParams.PerTensorQuant, fb.PerTensorQuantEnd(builder)
        if isinstance(quantization, PerRow):
            fb.PerTokenDynamicQuantStart(builder)
            fb.PerTokenDynamicQuantAddNumNonbatchDims(builder, quantization.dims)
            return fb.QuantParams.PerTokenDynamicQuant, fb.PerTokenDynamicQuantEnd(builder)
        assert quantization is not None
        grouped = isinstance(quantization, PerGroup)
        scales = quantization.scales.bfloat16() if grouped else quantization.scales
        place = self._stored(*self._constants.entry(scales, _SCALE))
        table = _table("PerChannelGroupQuant" if grouped else "PerChannelQuant")
        # The runtime of ExecuTorch 1.5.1 asks for the list even where the scales stand elsewhere.
        nothing = self._numbers(())
        table.start(builder)
        table.add["scale"](builder, nothing)
        table.add["channel_dim"](builder, quantization.axis)
        table.add["scale_buffer_idx"](builder, place)
        table.add["num_scales"](builder, scales.numel())
        if isinstance(quantization, PerGroup):
            table.add["group_size"](builder, quantization.size)
            return fb.QuantParams.PerChannelGroupQuant, table.end(builder)
        return fb.QuantParams.PerChannelQuant, table.end(builder)

    def _constant_index(self, value: Value) -> int:
        if value.data is None:
            return 0
        if _is_four_bits(value):
            return self._stored(*self._constants.packed(value.data))
        return self._stored(*self._constants.entry(value.data))

    def _stored(self, name: str, data: memoryview) -> int:
        """The index of a constant of the program."""
        if name not in self._named:
            self._named[name] = len(self._named) + 1
            self._named_sizes.append(data.nbytes)
            self._store.add_named_data(name, data, alignment=CONSTANT_ALIGNMENT)
        return self._named[name]

    def _node(self, call: Call, identifier: int) -> int:
        builder = self._builder
        kind = KINDS[call.kind]
        fields: dict[str, Any] = {"flags": 0, **call.fields, "output_id": self._ids[call.output]}
        if kind.table == "Concatenate":
            fields.update(dict.fromkeys(("input3_id", "input4_id", "input5_id"), NONE))
        for name, value in zip(kind.inputs, call.inputs, strict=True):
            fields[name] = NONE if value is None else self._ids[value]
        fields = {k: self._numbers(v) if k in _VECTORS else v for k, v in fields.items()}
        table = _table(kind.table)
        table.start(builder)
        for name, item in fields.items():
            table.add[name](builder, item)
        operator = table.end(builder)
        bounds = None
        if call.bounds is not None:
            fb.OutputMinMaxStart(builder)
            # A float of infinity is not the default, so that it is written.
            fb.OutputMinMaxAddOutputMin(builder, call.bounds[0])
            fb.OutputMinMaxAddOutputMax(builder, call.bounds[1])
            bounds = fb.OutputMinMaxEnd(builder)
        fb.NodeStart(builder)
        fb.NodeAddXnodeUnionType(builder, getattr(fb.Operator, call.kind))
        fb.NodeAddXnodeUnion(builder, operator)
        fb.NodeAddDebugHandle(builder, identifier)
        if bounds is not None:
            fb.NodeAddOutputMinMax(builder, bounds)
        return fb.NodeEnd(builder)  # type: ignore[no-any-return]

    def _constant_data(self, offset: int, size: int, name: str | None) -> int:
        builder = self._builder
        key = builder.CreateString(name) if name is not None else None
        fb.ConstantDataOffsetStart(builder)
        fb.ConstantDataOffsetAddOffset(builder, offset)
        fb.ConstantDataOffsetAddSize(builder, size)
        if key is not None:
            fb.ConstantDataOffsetAddNamedKey(builder, key)
        return fb.ConstantDataOffsetEnd(builder)  # type: ignore[no-any-return]

    def _numbers(self, numbers: Sequence[int]) -> int:
        builder = self._builder
        builder.StartVector(4, len(numbers), 4)
        for number in reversed(numbers):
            builder.PrependUint32(number)
        return builder.EndVector()  # type: ignore[no-any-return]

    def _offsets(self, tables: Sequence[int]) -> int:
        builder = self._builder
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
        return builder.EndVector()  # type: ignore[no-any-return]


class _Table:
    """The generated functions of one table, by the names of its fields."""

    def __init__(self, name: str) -> None:
        self.start: Callable[[Any], None] = getattr(fb, f"{name}Start")
        self.end: Callable[[Any], int] = getattr(fb, f"{name}End")
        prefix = f"{name}Add"
        fields = {key[len(prefix) :]: getattr(fb, key) for key in dir(fb) if key.startswith(prefix)}
        self.add: Mapping[str, Callable[[Any, Any], None]] = {_snake(key): f for key, f in fields.items()}


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


_tables: dict[str, _Table] = {}


def _table(name: str) -> _Table:
    if name not in _tables:
        _tables[name] = _Table(name)
    return _tables[name]


def _with_header(flatbuffer: bytes) -> bytes:
    padded = -(-len(flatbuffer) // CONSTANT_ALIGNMENT) * CONSTANT_ALIGNMENT
    header = _HEADER.pack(b"XH00", _HEADER.size, _HEADER_SIZE, len(flatbuffer), _HEADER_SIZE + padded, 0)
    return header.ljust(_HEADER_SIZE, b"\0") + flatbuffer.ljust(padded, b"\0")
