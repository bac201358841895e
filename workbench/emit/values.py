"""The value table of one method while it is written: constants once each, one value per tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from workbench.emit import ir
from workbench.errors import EmitError
from workbench.passes.spec_propagation import TensorSpec

__all__ = ["ValueTable"]

_MEMORY_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
_INDEX_LISTS: dict[str, Callable[[tuple[int, ...]], ir.Value]] = {
    "int": ir.IntList,
    "Tensor": ir.TensorList,
    "Tensor?": ir.OptionalTensorList,
}
_INT_RANGE = range(-(1 << 63), 1 << 63)


class ValueTable:
    """Values by what they are.

    Numbers, lists and None are written once and shared by all instructions that read them; values that an
    instruction writes (`fresh`) are never shared.

    Attributes:
        values: The table.
        specs: By index of a tensor value, its spec.
    """

    def __init__(self) -> None:
        self.values: list[ir.Value] = []
        self.specs: dict[int, TensorSpec] = {}
        self._known: dict[Any, int] = {}
        self._tensors: dict[TensorSpec, int] = {}

    def fresh(self, value: ir.Value) -> int:
        """Add a value of its own."""
        self.values.append(value)
        return len(self.values) - 1

    def tensor(self, spec: TensorSpec) -> int:
        """The value of a spec; its place and data are filled in when memory is planned."""
        known = self._tensors.get(spec)
        if known is None:
            number = ir.scalar_type(spec.dtype)
            if number is None:
                raise EmitError(f"a tensor of {spec.dtype} can't be written", node=spec.name)
            known = self.fresh(ir.Tensor(number, spec.sizes, spec.dim_order, int(spec.dynamism)))
            self._tensors[spec] = known
            self.specs[known] = spec
        return known

    def empty(self) -> int:
        """The tensor that stands for a missing one where None is not allowed."""
        return self._shared("empty", ir.Tensor(0, (0,), (0,)))

    def none(self) -> int:
        """The value None."""
        return self._shared(None, ir.Null())

    def integer(self, value: int) -> int:
        """An integer."""
        if value not in _INT_RANGE:
            raise EmitError("an integer does not fit 64 bits", found=str(value))
        return self._shared(("i", value), ir.Int(value))

    def boolean(self, value: bool) -> int:
        """A truth value."""
        return self._shared(("b", value), ir.Bool(value))

    def double(self, value: float) -> int:
        """A floating-point number."""
        return self._shared(("d", repr(value)), ir.Double(value))  # by text: 0.0 == -0.0, nan != nan

    def string(self, value: str) -> int:
        """A text."""
        return self._shared(("s", value), ir.String(value))

    def tensor_list(self, items: tuple[int, ...]) -> int:
        """A list of tensors."""
        return self._shared(("T", items), ir.TensorList(items))

    def result(self, value: Any) -> int:
        """A number that an instruction writes, by its symbolic value."""
        if isinstance(value, (bool, torch.SymBool)):
            return self.fresh(ir.Bool(False))
        if isinstance(value, (float, torch.SymFloat)):
            return self.fresh(ir.Double(0.0))
        return self.fresh(ir.Int(0))

    def constant(self, value: Any, node: Node | None = None) -> int:
        """A value of Python, by its own type.

        Raises:
            EmitError: No value of the format holds it.
        """
        if value is None:
            return self.none()
        if isinstance(value, bool):
            return self.boolean(value)
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            return self.double(value)
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, torch.dtype):
            number = ir.scalar_type(value)
            if number is not None:
                return self.integer(number)
        if isinstance(value, torch.layout) and value == torch.strided:
            return self.integer(0)
        if isinstance(value, torch.memory_format):
            return self.integer(_MEMORY_FORMATS[value])
        raise EmitError(
            f"a value of the type `{type(value).__name__}` can't be written",
            node=node.name if node is not None else None,
            found=repr(value),
        )

    def of_kind(self, value: Any, kind: str, optional: bool, env: dict[Node, Any], node: Node) -> int:
        """An argument of a kernel, by the type that the schema gives it."""
        if isinstance(value, Node):
            found = env[value]
            if type(found) is int:
                return found
            value = list(found)
        if value is None:
            return self.none() if optional or kind != "Tensor" else self.empty()
        if kind.endswith("[]"):
            return self._list(value, kind[:-2], env, node)
        if kind == "float" and isinstance(value, (int, float)):
            return self.double(float(value))
        if kind == "int" and isinstance(value, bool):
            return self.integer(int(value))
        if kind == "bool" and isinstance(value, int):
            return self.boolean(bool(value))
        if kind == "Device":
            return self.none()
        return self.constant(value, node)

    def _list(self, value: Any, kind: str, env: dict[Node, Any], node: Node) -> int:
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        if kind in ("int", "Tensor", "Tensor?"):
            indices = tuple(-1 if item is None else _index(item, env, self, kind) for item in items)
            return self._shared((kind, indices), _INDEX_LISTS[kind](indices))
        if any(isinstance(item, Node) for item in items):
            raise EmitError(
                f"a list of `{kind}` that is computed at run time can't be written", node=node.name
            )
        if kind == "float" or (kind == "Scalar" and any(isinstance(item, float) for item in items)):
            floats = tuple(float(item) for item in items)
            return self._shared(("float", tuple(map(repr, floats))), ir.DoubleList(floats))
        if kind == "bool":
            flags = tuple(bool(item) for item in items)
            return self._shared(("bool", flags), ir.BoolList(flags))
        if kind == "Scalar":
            return self._list(items, "int", env, node)
        raise EmitError(f"a list of `{kind}` can't be written", node=node.name, found=repr(value))

    def _shared(self, key: Any, value: ir.Value) -> int:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.fresh(value)
        return known


def _index(item: Any, env: dict[Node, Any], table: ValueTable, kind: str) -> int:
    if isinstance(item, Node):
        found: int = env[item]
        return found
    if type(item) is int and kind != "int":
        return item  # Already a value: one of several results.
    return table.integer(int(item))
