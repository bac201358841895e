"""The operators of TorchScript that work on numbers, lists and tuples, as functions of Python.

They run while the model is captured and leave no node; with symbolic sizes they compute on symbols.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["ALWAYS", "PYTHON_OPS", "converted", "is_container", "is_plain"]

_DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    11: torch.bool,
    15: torch.bfloat16,
}
_MEMORY_FORMATS = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}
_LAYOUTS = {0: torch.strided}
_ENUMS: dict[str, dict[int, Any]] = {
    "ScalarType": _DTYPES,
    "MemoryFormat": _MEMORY_FORMATS,
    "Layout": _LAYOUTS,
}


def converted(argument: Any, value: Any) -> Any:
    """A value as Python's binding of an operator takes it; TorchScript writes types as integers."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    kind = str(argument.real_type).removeprefix("Optional[").removesuffix("]").removesuffix("?")
    return _ENUMS.get(kind, {}).get(value, value)


def is_plain(value: Any) -> bool:
    """Whether a value is a number, text, None, or a nest of containers (of anything), and no tensor."""
    return not isinstance(value, torch.Tensor)


def is_container(value: Any) -> bool:
    """Whether a value is a list, tuple, dictionary or text: operators on it concern the container."""
    return isinstance(value, (list, tuple, dict, str))


def _set_item(node: Any, container: Any, key: Any, value: Any) -> Any:
    container[key] = value
    return container


def _append(node: Any, items: list[Any], item: Any) -> list[Any]:
    items.append(item)
    return items


def _size(node: Any, tensor: Any, dim: int | None = None) -> Any:
    return list(tensor.shape) if dim is None else tensor.shape[dim]


def _slice(node: Any, items: Any, start: Any = None, stop: Any = None, step: Any = 1) -> Any:
    return items[start:stop:step]


def _floor_divide(a: Any, b: Any) -> Any:
    return a // b


def _wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *inputs: function(*inputs)


def _dict(node: Any, *items: Any) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


def _to_number(node: Any, value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _unwrapped(node: Any, value: Any) -> Any:
    if value is None:
        raise TypeError("the script unwraps an optional value that is None")
    return value


def _number_to_tensor(node: Any, value: Any) -> Any:
    # Sizes come this way in traced models: as a symbol or number they stay exact, and no node is needed.
    return value


_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": _floor_divide,
    "floor_divide": _floor_divide,
    "remainder": operator.mod,
    "neg": operator.neg,
    "pow": operator.pow,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__not__": operator.not_,
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "__getitem__": operator.getitem,
    "__contains__": operator.contains,
    "__range_length": lambda low, high, step: len(range(low, high, step)),
    "__derive_index": lambda index, start, step: start + index * step,
    "len": len,
    "list": list,
    "Int": torch.sym_int,
    "Float": torch.sym_float,
    "Bool": bool,
    "str": str,
    "IntImplicit": torch.sym_int,
    "FloatImplicit": torch.sym_float,
    "ScalarImplicit": lambda value: value,
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "round": round,
    "abs": abs,
    "warn": lambda *inputs: None,
    "format": lambda text, *inputs: text.format(*inputs),
    "keys": lambda mapping: list(mapping.keys()),
    "values": lambda mapping: list(mapping.values()),
    "items": lambda mapping: list(mapping.items()),
    "get": lambda mapping, key, default=None: mapping.get(key, default),
    "copy": lambda container: container.copy(),
}

PYTHON_OPS: dict[str, Callable[..., Any]] = {
    **{f"aten::{name}": _wrap(function) for name, function in _NUMBERS.items()},
    "aten::size": _size,
    "aten::numel": lambda node, tensor: tensor.numel(),
    "aten::dim": lambda node, tensor: tensor.dim(),
    "aten::stride": lambda node, tensor: list(tensor.stride()),
    "aten::_set_item": _set_item,
    "aten::append": _append,
    "aten::slice": _slice,
    "prim::ListConstruct": lambda node, *items: list(items),
    "prim::TupleConstruct": lambda node, *items: tuple(items),
    "prim::DictConstruct": _dict,
    "prim::TupleIndex": lambda node, items, index: items[index],
    "prim::NumToTensor": _number_to_tensor,
    "prim::ImplicitTensorToNum": _to_number,
    "prim::unchecked_cast": lambda node, value: value,
    "prim::unchecked_unwrap_optional": _unwrapped,
    "prim::Uninitialized": lambda node: None,
    "prim::annotate": lambda node, value: value,
    "prim::device": lambda node, tensor: tensor.device,
    "prim::dtype": lambda node, tensor: tensor.dtype,
    "prim::layout": lambda node, tensor: tensor.layout,
    "prim::is_cuda": lambda node, tensor: False,
    "prim::requires_grad": lambda node, tensor: False,
    "prim::min": lambda node, *items: min(*items),
    "prim::max": lambda node, *items: max(*items),
    "prim::data": lambda node, tensor: tensor.detach(),
    "prim::Print": lambda node, *items: None,
}
"""By node kind a function of the node and its inputs.

Those of `aten::` apply where no input is a tensor or the first one is a container, but for the kinds of
`ALWAYS`.
"""

ALWAYS = frozenset(
    {name for name in PYTHON_OPS if name.startswith("prim::")}
    | {f"aten::{name}" for name in ("__is__", "__isnot__", "warn", "size", "numel", "dim", "stride")}
    | {"prim::ListUnpack", "prim::TupleUnpack"}
)
"""Kinds that Python computes whatever their inputs are."""
