"""What a partition costs at its borders: the bytes that go into and come out of each delegate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends.graphs import constant_inputs, graphs_of, is_getitem, tag_of

__all__ = ["Boundary", "boundaries", "value_bytes"]


@dataclass(frozen=True)
class Boundary:
    """The border of one tag.

    Attributes:
        tag: The tag.
        nodes: Number of operators inside.
        inputs: For each value that is passed in: name of its node, and bytes (None if it has no upper bound).
        outputs: The same for each value that is passed out.
        constant_bytes: Bytes of the parameters, buffers and constants that the delegate owns.
    """

    tag: str
    nodes: int
    inputs: tuple[tuple[str, int | None], ...]
    outputs: tuple[tuple[str, int | None], ...]
    constant_bytes: int

    @property
    def input_bytes(self) -> int:
        """Bytes passed in at each execution, as far as they are bounded."""
        return sum(size or 0 for _, size in self.inputs)

    @property
    def output_bytes(self) -> int:
        """Bytes passed out at each execution, as far as they are bounded."""
        return sum(size or 0 for _, size in self.outputs)

    @property
    def crossing_bytes(self) -> int:
        """Bytes that cross the border at each execution, as far as they are bounded."""
        return self.input_bytes + self.output_bytes


def boundaries(program: ExportedProgram, sizes: dict[Node, int | None] | None = None) -> dict[str, Boundary]:
    """The borders of all tags of a program, in graph order; linear in its size.

    Args:
        program: The tagged program.
        sizes: Bytes of values that earlier calls counted. Give the same dictionary again while only tags
            change, since the bounds of dynamic shapes take time.
    """
    constants = constant_inputs(program)
    known = _Sizes(program, {} if sizes is None else sizes)
    members: dict[str, list[Node]] = {}
    for _, graph_module in graphs_of(program):
        for node in graph_module.graph.nodes:
            tag = tag_of(node)
            if tag is not None and node.op == "call_function":
                members.setdefault(tag, []).append(node)
    return {tag: _boundary(tag, nodes, constants, known) for tag, nodes in members.items()}


class _Sizes:
    """Bytes of a program's values, each counted once."""

    def __init__(self, program: ExportedProgram, known: dict[Node, int | None]) -> None:
        self._ranges = program.range_constraints
        self._known = known

    def of(self, node: Node) -> int | None:
        if node not in self._known:
            self._known[node] = value_bytes(node.meta.get("val"), self._ranges)
        return self._known[node]


def _boundary(tag: str, nodes: list[Node], constants: Mapping[str, Any], sizes: _Sizes) -> Boundary:
    inside = set(nodes)
    sources = dict.fromkeys(
        s for n in nodes for s in n.all_input_nodes if s not in inside and s.op != "get_attr"
    )
    owned = {s for s in sources if s.name in constants and tag_of(s) is not None}
    passed_in = [s for s in sources if s not in owned]
    passed_out = [n for n in nodes if any(user not in inside for user in n.users)]
    return Boundary(
        tag,
        sum(not is_getitem(node) for node in nodes),
        tuple((s.name, sizes.of(s)) for s in passed_in),
        tuple((n.name, sizes.of(n)) for n in passed_out),
        sum(sizes.of(s) or 0 for s in owned),
    )


def value_bytes(value: Any, ranges: Mapping[Any, Any]) -> int | None:
    """Bytes of a value; for a dynamic shape those of its upper bound.

    Args:
        value: A tensor, a tuple of tensors, or a number (8 bytes).
        ranges: The program's `range_constraints`: symbol -> range.

    Returns:
        The bytes, or None if a size has no upper bound.
    """
    if isinstance(value, (tuple, list)):
        sizes = [value_bytes(item, ranges) for item in value]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    if not isinstance(value, torch.Tensor):
        return 8
    elements = 1
    for size in value.shape:
        bound = _upper_bound(size, ranges)
        if bound is None:
            return None
        elements *= bound
    return elements * value.element_size()


def _upper_bound(size: Any, ranges: Mapping[Any, Any]) -> int | None:
    if isinstance(size, int):
        return size
    # Interval arithmetic of torch: exact for the monotonic expressions that sizes are.
    from torch.utils._sympy.value_ranges import bound_sympy

    upper = bound_sympy(size.node.expr, dict(ranges)).upper
    try:
        bound = float(upper)
    except TypeError:
        return None
    return int(bound) if math.isfinite(bound) and bound < 2**62 else None
