"""Arguments of calls as text, by the operators' own names for them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch.fx import Node

__all__ = ["arguments_of", "attributes_of", "plain"]

_MISSING = object()


@lru_cache(maxsize=4096)
def _parameters(target: Any) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of an operator's arguments; empty where it has no schema."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return ()
    return tuple(
        (str(item.name), item.default_value if item.has_default_value() else _MISSING)
        for item in schema.arguments
    )


def attributes_of(node: Node) -> str:
    """What a call is given beside tensors, where it differs from the default: `stride=[2, 2], groups=64`."""
    if node.op != "call_function":
        return ""
    known = _parameters(node.target)
    texts = []
    for place, value in enumerate(node.args):
        if isinstance(value, Node):
            continue
        name, default = known[place] if place < len(known) else ("", _MISSING)
        if (default is _MISSING or value != default) and (text := plain(value)):
            texts.append(f"{name}={text}" if name else text)
    for name, value in node.kwargs.items():
        if not isinstance(value, Node) and value is not None and (text := plain(value)):
            texts.append(f"{name}={text}")
    return ", ".join(texts)


def plain(value: Any) -> str:
    """A value as text; empty if nodes are all that is in it."""
    if isinstance(value, Node):
        return ""
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, Node) for item in value):
            return ""
        return f"[{', '.join(item.name if isinstance(item, Node) else plain(item) for item in value)}]"
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def arguments_of(node: Node) -> list[tuple[str, str]]:
    """All arguments of a call, nodes by their names, defaults that it leaves out included."""
    if node.op in ("placeholder", "get_attr"):
        return []
    known = _parameters(node.target) if node.op == "call_function" else ()
    given: dict[str, str] = {}
    for place, value in enumerate(node.args):
        name = known[place][0] if place < len(known) else str(place)
        given[name] = _named(value)
    given.update({name: _named(value) for name, value in node.kwargs.items()})
    for name, default in known:
        if name not in given and default is not _MISSING:
            given[name] = f"{_named(default)} (default)"
    return list(given.items())


def _named(value: Any) -> str:
    if isinstance(value, Node):
        return value.name
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_named, value))}]"
    return plain(value)
