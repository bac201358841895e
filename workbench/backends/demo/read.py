"""Blobs of the demo backends (`workbench.backends.demo.bytecode`)."""

from __future__ import annotations

import struct

from workbench.backends.blob import Blob, BlobStep, BlobValue, Section
from workbench.errors import SerializationError

__all__ = ["read"]

_HEADER = struct.Struct("<4sIIIIIQ")
_VALUE = struct.Struct("<BBHIQ8i")
_STEP = struct.Struct("<HHi3IIfI")
_OPCODES = ("copy", "sin", "add", "mul", "mm", "linear")
_ROLES = ("input", "output", "temporary", "constant")


def read(data: memoryview) -> Blob | None:
    """What is in a demo backend's blob; None for another blob.

    Raises:
        SerializationError: It is damaged.
    """
    if bytes(data[:4]) != b"WBDM":
        return None
    if len(data) < _HEADER.size:
        raise SerializationError(
            "the blob ends in its header", expected=f"{_HEADER.size} bytes", found=str(len(data))
        )
    _, version, values, inputs, outputs, steps, size = _HEADER.unpack_from(data)
    ends = [_HEADER.size, _HEADER.size + values * _VALUE.size]
    ends += [ends[1] + steps * _STEP.size]
    ends += [ends[2] + size]
    if version != 1 or ends[3] != len(data):
        raise SerializationError(
            "the blob is no list of the demo backends",
            expected=f"version 1, {len(data)} bytes",
            found=f"version {version}, {ends[3]} bytes",
        )
    names = ("header", "values", "instructions", "data")
    bounds = zip(names, (0, *ends[:3]), ends, strict=True)
    return Blob(
        "demo instruction list",
        {"version": str(version), "inputs": str(inputs), "outputs": str(outputs), "data": f"{size:,} bytes"},
        tuple(Section(name, start, end - start) for name, start, end in bounds),
        tuple(_step(data, ends[1] + index * _STEP.size, values) for index in range(steps)),
        tuple(_value(data, ends[0] + index * _VALUE.size, index) for index in range(values)),
    )


def _value(data: memoryview, place: int, index: int) -> BlobValue:
    role, rank, _, _, offset, *sizes = _VALUE.unpack_from(data, place)
    if role >= len(_ROLES) or rank > 8:
        raise SerializationError(f"value {index} is of an unknown kind", found=f"kind {role}, rank {rank}")
    where = f" at {offset:,} of the data" if _ROLES[role] == "constant" else ""
    return BlobValue(f"%{index}", _ROLES[role], f"float32 {sizes[:rank]}{where}")


def _step(data: memoryview, place: int, values: int) -> BlobStep:
    code, count, identifier, *rest = _STEP.unpack_from(data, place)
    operands, (result, alpha, _) = rest[:3], rest[3:]
    if code >= len(_OPCODES) or count > 3 or max(result, *operands) >= max(values, 1):
        raise SerializationError("an instruction is malformed", found=f"opcode {code}, {count} operands")
    return BlobStep(
        _OPCODES[code],
        tuple(f"%{operand}" for operand in operands[:count]),
        (f"%{result}",),
        f"alpha {alpha:g}" if alpha != 1 else "",
        identifier if identifier >= 0 else None,
    )
