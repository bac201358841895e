"""Which operators the edge dialect has: core ATen, arithmetic on symbols, and which operands share a type."""

from __future__ import annotations

import builtins
import math
import operator
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

__all__ = ["EXCEPTIONS", "SYMBOLIC", "is_core", "is_symbolic", "needs_one_dtype"]

aten = torch.ops.aten

SYMBOLIC: frozenset[Any] = frozenset(
    {
        *(
            getattr(operator, name)
            for name in ["add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "pow", "abs"]
        ),
        *(getattr(operator, name) for name in ["eq", "ne", "lt", "le", "gt", "ge", "not_", "and_", "or_"]),
        operator.getitem,
        builtins.round,
        builtins.max,
        builtins.min,
        math.ceil,
        math.floor,
        math.trunc,
        torch.sym_float,
        torch.sym_int,
        torch.sym_max,
        torch.sym_min,
        torch.sym_not,
        torch.sym_ite,
        torch.sym_sqrt,
    }
)
"""Functions on symbols that a graph may call beside operators."""

EXCEPTIONS: frozenset[OpOverload] = frozenset(
    {
        # Not tagged `core`, but left over by the core decompositions, and every runtime has kernels for them.
        aten.full_like.default,
        aten.max.default,
        aten.min.default,
        aten.scalar_tensor.default,
        aten.bitwise_left_shift.Tensor,
        aten.bitwise_left_shift.Tensor_Scalar,
        aten.bitwise_right_shift.Tensor,
        aten.bitwise_right_shift.Tensor_Scalar,
        aten.sym_size.int,
        aten.sym_stride.int,
        aten.sym_numel.default,
        aten._local_scalar_dense.default,
        aten._assert_async.msg,
        aten._assert_scalar.default,
        aten.sym_constrain_range.default,
        aten.sym_constrain_range_for_size.default,
        aten._upsample_bilinear2d_aa.default,
    }
)
_SCHEMA_ONE_TYPE = [
    "add",
    "sub",
    "mul",
    "div",
    "minimum",
    "maximum",
    "fmod",
    "remainder",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "bitwise_and",
    "bitwise_or",
]


@cache
def is_core(target: OpOverload) -> bool:
    """Whether an operator belongs to the dialect: core ATen, its copying views, or another namespace's."""
    if target.namespace != "aten" or target in EXCEPTIONS:
        return True
    return torch.Tag.core in target.tags or torch.Tag.view_copy in target.tags


def is_symbolic(target: Any) -> bool:
    """Whether a function of Python stands for arithmetic on symbols (or takes one of several results)."""
    return target in SYMBOLIC


@cache
def needs_one_dtype(target: Any) -> slice | None:
    """The positions of the operands that must have one type; None for operators without that rule."""
    if target is aten.where.self:
        return slice(1, 3)
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return None
    if target._opname in _SCHEMA_ONE_TYPE and target._overloadname in ("Tensor", "default", "Tensor_mode"):
        return slice(0, 2)
    return None
