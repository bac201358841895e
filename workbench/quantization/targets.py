"""What `set_object_type` means: from modules and functions to operators of the graph."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node
from torch.nn import functional

from workbench import provenance
from workbench.errors import QuantizationError

__all__ = ["module_path_of", "module_types_of", "operators_of", "type_name"]

_BY_FUNCTION: dict[Any, tuple[str, ...]] = {
    functional.linear: ("linear",),
    functional.conv1d: ("conv1d",),
    functional.conv2d: ("conv2d",),
    functional.conv3d: ("conv3d",),
    functional.conv_transpose1d: ("conv_transpose1d",),
    functional.conv_transpose2d: ("conv_transpose2d",),
    functional.adaptive_avg_pool2d: ("adaptive_avg_pool2d",),
    functional.avg_pool2d: ("avg_pool2d",),
    functional.max_pool2d: ("max_pool2d",),
    functional.embedding: ("embedding",),
    functional.relu: ("relu", "relu_"),
    functional.relu6: ("relu6", "hardtanh"),
    functional.hardtanh: ("hardtanh", "hardtanh_"),
    functional.hardswish: ("hardswish", "hardswish_"),
    functional.hardsigmoid: ("hardsigmoid", "hardsigmoid_"),
    functional.gelu: ("gelu",),
    functional.silu: ("silu", "silu_"),
    functional.softmax: ("softmax", "_softmax"),
    functional.layer_norm: ("layer_norm",),
    functional.scaled_dot_product_attention: ("scaled_dot_product_attention",),
}


def operators_of(given: Any) -> tuple[str, ...]:
    """The names that settings of a module type, a function or an operator go by.

    Raises:
        QuantizationError: It is none of them.
    """
    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        return (type_name(given),)
    if isinstance(given, torch._ops.OpOverload):
        return (str(given),)
    if isinstance(given, torch._ops.OpOverloadPacket):
        return _overloads(given)
    names: tuple[str, ...] = _BY_FUNCTION.get(given, ()) if callable(given) else ()
    if not names and callable(given):
        name = getattr(given, "__name__", "")
        same = getattr(torch, name, None) is given or getattr(torch.Tensor, name, None) is given
        if same and hasattr(torch.ops.aten, name):
            names = (name, f"{name}_")
    packets = [getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)]
    if not packets:
        raise QuantizationError(
            "that is no type of operator",
            expected="a module type, a function of torch or torch.nn.functional, or an operator of torch.ops",
            found=repr(given),
        )
    return tuple(name for packet in packets for name in _overloads(packet))


def _overloads(packet: Any) -> tuple[str, ...]:
    return tuple(f"{packet}.{overload}" for overload in packet.overloads())


def type_name(kind: type) -> str:
    """The name of a class as exported graphs write it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def module_path_of(node: Node) -> str:
    """The qualified name of the innermost module that a node was traced in."""
    return provenance.module_path(node)[0]


def module_types_of(node: Node) -> tuple[str, ...]:
    """The types of the modules that a node was traced in, innermost first."""
    stack = node.meta.get("nn_module_stack") or {}
    kinds = [kind if isinstance(kind, str) else type_name(kind) for _, kind in stack.values()]
    return tuple(reversed(kinds))
