"""Blobs of ExecuTorch's XNNPACK backend: a header, a flatbuffer with the subgraph, constant data."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from workbench.backends.blob import Blob, BlobStep, BlobValue, Section
from workbench.errors import SerializationError
from workbench.serialize.reading import Table, root_table

__all__ = ["read"]

_HEADER = struct.Struct("<4s4sHIIIQ")
_INVALID = 0xFFFFFFFF
_INPUT, _OUTPUT = 1, 2
_TYPES = (
    "invalid", "fp32", "fp16", "qint8", "quint8", "qint32", "qcint8", "qcint32", "qcint4", "qdint8", "qbint4",
    "qpint8", "int32", "pfp32", "bf16",
)  # fmt: skip
_PER_CHANNEL, _PER_TENSOR, _PER_ROW, _PER_GROUP = 1, 2, 3, 4
_UNARY = ("input", "output")
_BINARY = ("input", "input", "output")
_CONV = ("",) * 15 + ("input", "filter", "bias", "output")
_POOL = ("",) * 10 + ("input", "output")

# By the number of the union: what it computes, and which fields of its table are values. Fields without a
# name are options.
_NODES: dict[int, tuple[str, tuple[str, ...]]] = {
    1: ("add", _BINARY),
    2: ("fully connected", ("input", "filter", "bias", "output")),
    3: ("softmax", _UNARY),
    4: ("sigmoid", _UNARY),
    5: ("transpose", ("", "", "input", "output")),
    6: ("clamp", _UNARY),
    7: ("convolution 2d", _CONV),
    8: ("divide", _BINARY),
    9: ("resize bilinear 2d", ("", "", "input", "output")),
    10: ("constant pad", ("", "", "", "input", "output")),
    11: ("average pooling 2d", _POOL),
    12: ("minimum", _BINARY),
    13: ("depthwise convolution 2d", _CONV),
    14: ("max pooling 2d", _POOL),
    15: ("multiply", _BINARY),
    16: ("subtract", _BINARY),
    17: ("floor", _UNARY),
    18: ("convert", _UNARY),
    19: ("global average pooling 2d", _UNARY),
    20: ("reshape", ("", "", "input", "output")),
    21: ("argmax pooling 2d", ("",) * 6 + ("input", "output", "output")),
    22: ("square root", _UNARY),
    23: ("ceiling", _UNARY),
    24: ("hard swish", _UNARY),
    25: ("leaky ReLU", ("", "input", "output")),
    26: ("maximum", _BINARY),
    27: ("negate", _UNARY),
    28: ("square", _UNARY),
    29: ("ELU", ("", "input", "output")),
    30: ("abs", _UNARY),
    31: ("PReLU", _BINARY),
    32: ("concatenate 2", ("", "input", "input", "-", "-", "output", "", "-")),
    33: ("concatenate 3", ("", "input", "input", "input", "-", "output", "", "-")),
    34: ("concatenate 4", ("", "input", "input", "input", "input", "output", "", "-")),
    35: ("slice", ("", "", "", "input", "output")),
    36: ("scaled dot product attention", ("query", "key", "value", "scale", "mask", "output")),
    37: ("batch matrix multiply", _BINARY),
    38: ("concatenate 5", ("", "input", "input", "input", "input", "output", "", "input")),
    39: ("transposed convolution 2d", _CONV),
    40: ("reciprocal square root", _UNARY),
    41: ("log", _UNARY),
    42: ("GELU", _UNARY),
    43: ("tanh", _UNARY),
    44: ("exp", _UNARY),
    45: ("sin", _UNARY),
    46: ("copy", _UNARY),
    47: ("cos", _UNARY),
}


def read(data: memoryview) -> Blob | None:
    """What is in an XNNPACK blob; None for another blob.

    Raises:
        SerializationError: It is damaged.
    """
    if len(data) >= _HEADER.size and bytes(data[4:8]) == b"XH00":
        _, _, length, start, size, base, constants = _HEADER.unpack_from(data)
    elif bytes(data[4:8]) in (b"XN00", b"XN01"):
        # From before there was a header.
        length, start, size, base, constants = 0, 0, len(data), len(data), 0
    else:
        return None
    if start + size > len(data) or (constants and base + constants > len(data)):
        raise SerializationError(
            "the parts of the XNNPACK blob lie outside of it",
            expected=f"inside {len(data):,} bytes",
            found=f"flatbuffer of {size:,} at {start:,}, constants of {constants:,} at {base:,}",
        )
    graph = data[start : start + size]
    identifier = bytes(graph[4:8])
    if identifier not in (b"XN00", b"XN01"):
        raise SerializationError("the blob holds no XNNPACK graph", expected="XN01", found=repr(identifier))
    root = root_table(graph, identifier, "XNNPACK graph")
    sections = [Section("header", 0, min(start, length or start))] if start else []
    sections.append(Section("flatbuffer", start, size))
    if constants:
        sections.append(Section("constants", base, constants))
    data_keys = root.tables(8, "constant_data", _constant)
    values = root.tables(2, "xvalues", lambda table: _value(table, data_keys))
    steps = root.tables(1, "xnodes", _step)
    facts = {
        "identifier": identifier.decode(),
        "version": root.text(0, "version"),
        "header": f"XH00, {length} bytes" if start else "none",
        "external values": str(root.number(3, "I")),
        "constants": f"{max(len(data_keys) - 1, 0)}, of which {sum(bool(key) for _, _, key in data_keys)} "
        "are named data of the program",
    }
    return Blob("XNNPACK subgraph", facts, tuple(sections), tuple(steps), tuple(values))


def _constant(table: Table) -> tuple[int, int, str]:
    return table.number(0, "Q"), table.number(1, "Q"), table.text(2, "named_key")


def _value(table: Table, constants: list[tuple[int, int, str]]) -> BlobValue:
    value = table.need_table(1, "xvalue_union")
    how = ""
    if table.number(0, "B") == 2:
        how = _quantization(value)
        value = value.need_table(0, "tensor_value")
    number, flags, buffer = value.number(6, "I"), value.number(5, "I"), value.number(3, "I")
    kind = value.number(0, "h")
    role = "input" if flags & _INPUT else "output" if flags & _OUTPUT else "temporary"
    if not buffer:
        return _made(number, role, kind, value, how)
    key = constants[buffer][2] if buffer < len(constants) else ""
    return _made(number, "constant", kind, value, how + ("" if key else f", constant {buffer}"), key)


def _quantization(value: Table) -> str:
    """What the integers of a tensor stand for."""
    kind = value.number(1, "B")
    parameters = value.need_table(2, "quant_params")
    number: Callable[[int], int] = lambda field: parameters.number(field, "I")  # noqa: E731
    if kind == _PER_TENSOR:
        return f", scale {parameters.number(0, 'f', 0.0):g}, zero point {parameters.number(1, 'i')}"
    if kind == _PER_ROW:
        return f", scales found at run time, shared along the last {number(0)} dimensions"
    if kind == _PER_CHANNEL:
        scales = number(3) or len(parameters.numbers(0, "f", "scale"))
        return f", {scales} scales along dimension {number(1)}"
    if kind == _PER_GROUP:
        scales = number(5) or len(parameters.numbers(0, "f", "scale"))
        return f", {scales} scales, each for {number(2)} neighbours"
    return f", quantized in the way {kind}"


def _made(number: int, role: str, kind: int, value: Table, where: str = "", key: str = "") -> BlobValue:
    name = _TYPES[kind] if 0 <= kind < len(_TYPES) else f"type {kind}"
    return BlobValue(f"%{number}", role, f"{name} {list(value.numbers(2, 'I', 'dims'))}{where}", key)


def _step(table: Table) -> BlobStep:
    kind = table.number(0, "B")
    name, fields = _NODES.get(kind, (f"node of kind {kind}", ()))
    inner = table.need_table(1, "xnode_union")
    inputs: list[str] = []
    outputs: list[str] = []
    for number, field in enumerate(fields):
        if field in ("", "-"):
            continue
        value = inner.number(number, "I")
        if value == _INVALID:
            continue
        plain = field in ("input", "output")
        (outputs if field == "output" else inputs).append(f"%{value}" if plain else f"{field} %{value}")
    limits = table.table(3, "output_min_max")
    detail = [_options(kind, inner)]
    if limits is not None:
        low, high = limits.number(0, "f", 0.0), limits.number(1, "f", 0.0)
        if (low, high) != (float("-inf"), float("inf")):
            detail.append(f"clamp {low:g} to {high:g}")
    handle = table.number(2, "I")
    return BlobStep(
        name, tuple(inputs), tuple(outputs), ", ".join(item for item in detail if item), handle or None
    )


def _options(kind: int, table: Table) -> str:
    number: Callable[[int], Any] = lambda field: table.number(field, "I")  # noqa: E731
    if kind in (7, 13, 39):
        padding = [number(field) for field in range(4)]
        pairs = [f"{number(field)}x{number(field + 1)}" for field in (4, 6, 8)]
        groups = f", groups {number(12)}" if number(12) > 1 else ""
        return f"kernel {pairs[0]}, stride {pairs[1]}, dilation {pairs[2]}, padding {padding}{groups}"
    if kind in (11, 14):
        return f"kernel {number(4)}x{number(5)}, stride {number(6)}x{number(7)}"
    if kind == 5:
        return f"perm {list(table.numbers(1, 'I', 'perm'))}"
    if kind == 20:
        return f"to {list(table.numbers(1, 'I', 'new_shape'))}"
    return ""
