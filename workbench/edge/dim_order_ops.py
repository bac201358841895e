"""Operators that name the dim order of their result, in place of PyTorch's `memory_format`.

A dim order lists the dimensions from the outermost in memory to the innermost: `(0, 1, 2, 3)` is contiguous,
`(0, 2, 3, 1)` is channels-last. The operators stand in torch's namespace `workbench`, so that a process may
import executorch beside this package; in a `.pte` they are called `dim_order_ops::...`, which is what the
runtimes know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import Library

__all__ = [
    "CLONE",
    "DIM_ORDER_OPS",
    "EMPTY",
    "NAMESPACE",
    "TO_COPY",
    "WIRE_NAMESPACE",
    "dim_order_of_format",
]

NAMESPACE = "workbench"
WIRE_NAMESPACE = "dim_order_ops"

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_library: Any = Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
_library.define(
    f"_to_dim_order_copy(Tensor self, *, {_OPTIONS}, bool non_blocking=False, int[]? dim_order=None)"
    " -> Tensor"
)
_library.define(
    "_to_dim_order_copy.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out)"
    " -> Tensor(a!)"
)
_library.define("_clone_dim_order(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor")
_library.define(
    "_clone_dim_order.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out)"
    " -> Tensor(a!)"
)
_library.define(f"_empty_dim_order(SymInt[] size, *, {_OPTIONS}, int[]? dim_order=None) -> Tensor")
_library.define("_empty_dim_order.out(SymInt[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)")


def dim_order_of_format(memory_format: torch.memory_format, rank: int) -> tuple[int, ...]:
    """The dim order of a memory format for tensors of `rank` dimensions; `preserve_format` has none.

    Raises:
        ValueError: For a format that does not fix the order, or does not exist for this rank.
    """
    if memory_format == torch.contiguous_format:
        return tuple(range(rank))
    if (memory_format, rank) in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
        return (0, *range(2, rank), 1)
    raise ValueError(f"no dim order for {memory_format} and {rank} dimensions")


def _empty(
    size: Sequence[Any], order: Sequence[int] | None, dtype: torch.dtype | None, device: Any
) -> Tensor:
    physical = tuple(order) if order is not None else tuple(range(len(size)))
    return torch.empty_permuted(tuple(size), physical, dtype=dtype, device=device)


def _to_dim_order_copy(
    self: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
) -> Tensor:
    if dim_order is None:
        copied: Tensor = torch.ops.aten._to_copy.default(self, dtype=dtype, device=device)
        return copied
    out = _empty(self.shape, dim_order, dtype or self.dtype, device or self.device)
    torch.ops.aten.copy_.default(out, self)
    return out


def _clone_dim_order(
    self: Tensor, *, non_blocking: bool = False, dim_order: Sequence[int] | None = None
) -> Tensor:
    return _to_dim_order_copy(self, dim_order=dim_order)


def _empty_dim_order(
    size: Sequence[Any],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    dim_order: Sequence[int] | None = None,
) -> Tensor:
    return _empty(size, dim_order, dtype, device)


def _copy_out(
    self: Tensor, *, non_blocking: bool = False, dim_order: Sequence[int] | None = None, out: Tensor
) -> Tensor:
    torch.ops.aten.copy_.default(out, self)
    return out


def _empty_out(size: Sequence[Any], *, dim_order: Sequence[int] | None = None, out: Tensor) -> Tensor:
    return out


for _name, _function in {
    "_to_dim_order_copy": _to_dim_order_copy,
    "_to_dim_order_copy.out": _copy_out,
    "_clone_dim_order": _clone_dim_order,
    "_clone_dim_order.out": _copy_out,
    "_empty_dim_order": _empty_dim_order,
    "_empty_dim_order.out": _empty_out,
}.items():
    _library.impl(_name, _function, "CompositeExplicitAutograd")

TO_COPY: torch._ops.OpOverload = torch.ops.workbench._to_dim_order_copy.default
CLONE: torch._ops.OpOverload = torch.ops.workbench._clone_dim_order.default
EMPTY: torch._ops.OpOverload = torch.ops.workbench._empty_dim_order.default

DIM_ORDER_OPS: dict[torch._ops.OpOverload, torch._ops.OpOverload] = {
    torch.ops.aten._to_copy.default: TO_COPY,
    torch.ops.aten.clone.default: CLONE,
    torch.ops.aten.empty.memory_format: EMPTY,
}
"""From the operator with `memory_format` to the one with `dim_order`."""
