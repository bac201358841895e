"""From an operator to the name of the kernel that computes it: the out-variant's name in a `.pte` file.

A kernel is looked up as `namespace::name.overload` of the variant that writes into tensors given by the
caller. Which variant belongs to a functional operator is not written down in ATen; it is the one with the
same name whose arguments are those of the functional one, followed by `out` arguments.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from workbench.edge.dim_order_ops import NAMESPACE, WIRE_NAMESPACE

__all__ = ["out_variant", "wire_name"]

# Options of a tensor under construction: the out-variant reads them off its out argument.
_TENSOR_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format"})

# PyTorch declares no out-variants of these; the names are those that ExecuTorch's kernels have.
_UNDECLARED = {
    ("quantized_decomposed", "default"): "out",
    ("quantized_decomposed", "tensor"): "Tensor_out",
}


@cache
def out_variant(operator: OpOverload) -> OpOverload | None:
    """The out-variant of a functional operator; itself for an operator that is one; None if there is none."""
    if _outs(operator._schema):
        return operator
    packet = getattr(getattr(torch.ops, operator.namespace), operator._opname)
    candidates = [getattr(packet, name) for name in packet.overloads()]
    wanted = _arguments(operator._schema)
    matches = [item for item in candidates if _outs(item._schema) and _arguments(item._schema) == wanted]
    if len(matches) > 1:
        # `div.out` and `div.out_mode` differ in arguments; equal ones differ in name: the closer one is
        # meant.
        close = [item for item in matches if item._overloadname.startswith(operator._overloadname)]
        matches = close or matches
    return matches[0] if matches else None


@cache
def wire_name(operator: OpOverload) -> str | None:
    """The name under which a runtime looks up the kernel of an operator; None where no out-variant exists."""
    found = operator if operator._schema.is_mutable else out_variant(operator)
    if found is None:
        overload = _UNDECLARED.get((operator.namespace, operator._overloadname))
        return None if overload is None else f"{operator._schema.name}.{overload}"
    name: str = found._schema.name
    if found.namespace == NAMESPACE:
        name = name.replace(NAMESPACE, WIRE_NAMESPACE, 1)
    overload = found._schema.overload_name
    return f"{name}.{overload}" if overload else name


def _outs(schema: Any) -> list[str]:
    return [item.name for item in schema.arguments if item.is_out]


def _arguments(schema: Any) -> tuple[tuple[str, str], ...]:
    return tuple(
        (item.name, _plain(str(item.type)))
        for item in schema.arguments
        if not item.is_out and item.name not in _TENSOR_OPTIONS
    )


def _plain(kind: str) -> str:
    return kind.replace("SymInt", "int").replace("number", "Scalar")
