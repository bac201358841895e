"""The decomposition table: from exported ATen to core ATen, with the exceptions that the edge dialect makes.

`run_decompositions` traces the program once more, which is the dearest step of all lowering; so everything
that can be said as a decomposition is said here and done in that one trace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from workbench.provenance import META_KEY

__all__ = ["decomposition_table"]

aten = torch.ops.aten

# Operators that core ATen keeps, but that no runtime has a kernel for; each is said in terms of those that
# exist.
_Decomposition = Callable[..., Any]


def _bucketize(values: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Index of the bucket: how many boundaries lie below (`right`: at or below) each value.

    Written with the negated comparison so that NaN, which compares false, lands behind the last boundary as
    in eager.
    """
    columns = values.unsqueeze(-1)
    above = boundaries > columns if right else boundaries >= columns
    return torch.logical_not(above).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    if sorter is not None or sorted_sequence.dim() != 1:
        return NotImplemented
    return _bucketize(values, sorted_sequence, out_int32=out_int32, right=right or side == "right")


def _bucketize_scalar(value: Any, boundaries: Tensor, **options: Any) -> Tensor:
    return _bucketize(torch.scalar_tensor(value, device=boundaries.device), boundaries, **options)


def _renamed(operator: OpOverload) -> _Decomposition:
    def decompose(*args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    return decompose


_EDGE_DECOMPOSITIONS: dict[OpOverload, _Decomposition] = {
    aten.bucketize.Tensor: _bucketize,
    aten.bucketize.Scalar: _bucketize_scalar,
    aten.searchsorted.Tensor: _searchsorted,
    aten.__lshift__.Scalar: _renamed(aten.bitwise_left_shift.Tensor_Scalar),
    aten.__lshift__.Tensor: _renamed(aten.bitwise_left_shift.Tensor),
    aten.__rshift__.Scalar: _renamed(aten.bitwise_right_shift.Tensor_Scalar),
    aten.__rshift__.Tensor: _renamed(aten.bitwise_right_shift.Tensor),
}


_FROM_TORCH = (aten.linalg_vector_norm.default,)
"""Operators that torch can decompose, though its core table does not."""


def decomposition_table(
    preserve: Collection[OpOverload] = (),
    preserve_at: dict[OpOverload, frozenset[int]] | None = None,
) -> dict[Any, _Decomposition]:
    """The table for `ExportedProgram.run_decompositions`.

    Args:
        preserve: Operators that are kept wherever they occur.
        preserve_at: Operators that are kept only where the exported node has one of these source handles;
            elsewhere they are decomposed as ever.

    Returns:
        A new table; the caller may change it.
    """
    table: dict[Any, _Decomposition] = torch.export.default_decompositions()
    for operator, decomposition in _EDGE_DECOMPOSITIONS.items():
        table[operator] = decomposition
    table.update(torch._decomp.get_decompositions(_FROM_TORCH))
    for operator, handles in (preserve_at or {}).items():
        if operator in table and operator not in preserve:
            table[operator] = _conditional(table[operator], handles)
    for operator in preserve:
        table.pop(operator, None)
    return table


def _conditional(decomposition: _Decomposition, kept: frozenset[int]) -> _Decomposition:
    """A decomposition that leaves the operator as it is while one of the `kept` exported nodes is traced."""

    def decompose(*args: Any, **kwargs: Any) -> Any:
        meta = torch.fx.traceback.get_current_meta()
        current = (meta.get("custom") or {}).get(META_KEY, ())
        if kept.intersection(current):
            return NotImplemented
        return decomposition(*args, **kwargs)

    return decompose
