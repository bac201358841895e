"""Values and instructions as runs of bytes: the tables of `schema/program.fbs` that occur by the thousand.

Each function packs an `EValue` (or `Instruction`) together with the table it holds. The numbers in the
formats are the layouts that `_LAYOUTS` lists; both must agree, and the tests read every kind back with the
classes that flatc generates.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from workbench.emit import ir
from workbench.serialize.forward import Forward

__all__ = ["Encoder"]

_LAYOUTS: dict[str, tuple[int, tuple[int, ...]]] = {
    # name: size of the table, and where each field of the schema lies in it
    "union": (12, (8, 4)),  # EValue, Instruction: type, table
    "empty": (4, ()),
    "eight": (16, (8,)),  # Int, Double; behind 4 bytes of padding
    "one": (5, (4,)),  # Bool
    "ref": (8, (4,)),  # String and the lists
    "pair": (12, (4, 8)),  # KernelCall, DelegateCall, MoveCall, JumpFalseCall
    "single": (8, (4,)),  # FreeCall
    "allocation": (16, (4, 8, 12)),
    # scalar_type, storage_offset, sizes, dim_order, requires_grad, data_buffer_idx, allocation_info, layout,
    # shape_dynamism, extra_tensor_info
    "tensor": (28, (24, 0, 4, 8, 26, 12, 0, 0, 25, 0)),
    "tensor+a": (28, (24, 0, 4, 8, 26, 12, 16, 0, 25, 0)),
    "tensor+e": (28, (24, 0, 4, 8, 26, 12, 0, 0, 25, 20)),
    "tensor+ae": (28, (24, 0, 4, 8, 26, 12, 16, 0, 25, 20)),
    "extra": (24, (8, 4, 16, 0, 0)),  # mutable_data_segments_idx, fully_qualified_name, location
    "extra-unnamed": (24, (8, 0, 16, 0, 0)),
}
_TAGS = {
    ir.Null: 1, ir.Int: 2, ir.Bool: 3, ir.Double: 4, ir.Tensor: 5, ir.String: 6, ir.IntList: 7,
    ir.DoubleList: 8, ir.BoolList: 9, ir.TensorList: 10, ir.OptionalTensorList: 11,
}  # fmt: skip
_LISTS = {
    ir.IntList: "q",
    ir.DoubleList: "d",
    ir.BoolList: "?",
    ir.TensorList: "i",
    ir.OptionalTensorList: "i",
}
_LARGEST = (1 << 32) - 1


@cache
def _list_format(kind: str, count: int) -> struct.Struct:
    return struct.Struct(f"<iIB3xiII{count}{kind}")


@cache
def _tensor_format(rank: int, allocated: bool) -> struct.Struct:
    order = f"I{rank}B{-rank % 4}x"
    place = "iIII" if allocated else ""
    return struct.Struct(f"<iIB3xiIIIIIBBBxI{rank}i{order}{place}")


@cache
def _call_format(count: int) -> struct.Struct:
    return struct.Struct(f"<iIB3xiiII{count}i")


_EMPTY = struct.Struct("<iIB3xi")
_INT = struct.Struct("<iIB7xi4xq")
_DOUBLE = struct.Struct("<iIB7xi4xd")
_BOOL = struct.Struct("<iIB3xi?")
_PAIR = struct.Struct("<iIB3xiii")
_SINGLE = struct.Struct("<iIB3xii")


class Encoder:
    """Writes values and instructions into a flatbuffer.

    Args:
        buffer: Where to; the vtables are added at once.
    """

    def __init__(self, buffer: Forward) -> None:
        self.buffer = buffer
        self.at = {name: buffer.vtable(size, fields) for name, (size, fields) in _LAYOUTS.items()}

    def value(self, value: ir.Value) -> int:
        """Add a value; returns where its `EValue` lies."""
        buffer, at = self.buffer, self.at
        here = len(buffer.out)
        union = here - at["union"]
        kind = type(value)
        tag = _TAGS[kind]
        if kind is ir.Tensor:
            return self._tensor(value, here, union)  # type: ignore[arg-type]
        if kind is ir.Int:
            return buffer.append(_INT.pack(union, 12, tag, here + 16 - at["eight"], value.value))  # type: ignore[union-attr]
        if kind is ir.Null:
            return buffer.append(_EMPTY.pack(union, 8, tag, here + 12 - at["empty"]))
        if kind is ir.Bool:
            return buffer.append(_BOOL.pack(union, 8, tag, here + 12 - at["one"], value.value))  # type: ignore[union-attr]
        if kind is ir.Double:
            return buffer.append(_DOUBLE.pack(union, 12, tag, here + 16 - at["eight"], value.value))  # type: ignore[union-attr]
        table = here + 12 - at["ref"]
        if kind is ir.String:
            data = value.value.encode()  # type: ignore[union-attr]
            return buffer.append(
                struct.pack(f"<iIB3xiII{len(data)}sx", union, 8, tag, table, 4, len(data), data)
            )
        items: Any = value.items  # type: ignore[union-attr]
        packed = _list_format(_LISTS[kind], len(items)).pack(union, 8, tag, table, 4, len(items), *items)
        return buffer.append(packed)

    def _tensor(self, value: ir.Tensor, here: int, union: int) -> int:
        rank = len(value.sizes)
        extra = value.fqn is not None or value.external or value.segment
        allocation = value.allocation
        name = (
            "tensor"
            + ("+" if allocation or extra else "")
            + ("a" if allocation else "")
            + ("e" if extra else "")
        )
        order_at = 44 + 4 * rank  # from the start of the run; the table lies at 12, the sizes' length at 40
        place_at = order_at + 4 + rank + (-rank % 4)
        fields: list[int] = [
            union, 8, 5, here + 12 - self.at[name],
            24, order_at - 20, value.buffer, place_at - 28, 0,
            value.scalar_type, value.dynamism, value.requires_grad,
            rank, *value.sizes, rank, *value.dim_order,
        ]  # fmt: skip
        if allocation:
            arena, offset = allocation
            fields += (here + place_at - self.at["allocation"], arena, offset & _LARGEST, offset >> 32)
        position = self.buffer.append(_tensor_format(rank, allocation is not None).pack(*fields))
        if extra:
            self.buffer.point(position + 12 + 20, self._extra(value))
        return position

    def _extra(self, value: ir.Tensor) -> int:
        here = len(self.buffer.out)
        name = "extra" if value.fqn is not None else "extra-unnamed"
        position = self.buffer.append(
            struct.pack("<iIQB7x", here - self.at[name], 0, value.segment, value.external)
        )
        if value.fqn is not None:
            self.buffer.point(position + 4, self.buffer.string(value.fqn))
        return position

    def instruction(self, item: ir.Instruction) -> int:
        """Add an instruction; returns where its `Instruction` lies."""
        buffer, at = self.buffer, self.at
        here = len(buffer.out)
        union = here - at["union"]
        pair = here + 12 - at["pair"]
        if isinstance(item, ir.KernelCall):
            args = item.args
            return buffer.append(
                _call_format(len(args)).pack(union, 8, 1, pair, item.operator, 4, len(args), *args)
            )
        if isinstance(item, ir.DelegateCall):
            args = item.args
            return buffer.append(
                _call_format(len(args)).pack(union, 8, 2, pair, item.delegate, 4, len(args), *args)
            )
        if isinstance(item, ir.Move):
            return buffer.append(_PAIR.pack(union, 8, 3, pair, item.source, item.target))
        if isinstance(item, ir.JumpFalse):
            return buffer.append(_PAIR.pack(union, 8, 4, pair, item.condition, item.destination))
        return buffer.append(_SINGLE.pack(union, 8, 5, here + 12 - at["single"], item.value))
