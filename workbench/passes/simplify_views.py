"""Chains of views shrink, and permutations that move no data become views.

A `view_copy` costs nothing at run time (the planner lets it share its input's memory), a `permute_copy` moves
every element. So: a view of a view is one view; a permutation of a permutation is one permutation; and what
keeps the order of all elements (dimensions of size 1 moved, selected or expanded) is a view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench.edge.fake import is_contiguous
from workbench.passes.base import GraphPass

__all__ = ["SimplifyViews"]

aten = torch.ops.aten
_VIEW = aten.view_copy.default
_PERMUTE = aten.permute_copy.default
_RESHAPING = frozenset(
    {
        _VIEW,
        aten.unsqueeze_copy.default,
        aten.squeeze_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
    }
)
"""Operators that keep the order of all elements of a contiguous tensor."""


class SimplifyViews(GraphPass):
    """Merge views and permutations, and turn permutations that move no data into views."""

    name = "simplify_views"

    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Rewrite in place; what is left without users leaves with the next `dead_code`."""
        counts = {"permutations merged": 0, "moves removed": 0, "views merged": 0}
        for node in graph_module.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, OpOverload):
                continue
            if node.target is _PERMUTE:
                counts["permutations merged"] += _merge_permutations(node)
            if _keeps_order(node):
                counts["moves removed"] += _become_view(node)
            if node.target in _RESHAPING:
                counts["views merged"] += _merge_views(node)
        return counts


def _merge_permutations(node: Node) -> int:
    source: Any = node.args[0]
    if source.target is not _PERMUTE:
        return 0
    first, second = _order(source), _order(node)
    node.args = (source.args[0], [first[dim] for dim in second])
    return 1


def _order(node: Node) -> list[int]:
    given: Any = node.args[1]
    return [int(dim) % len(given) for dim in given]


def _keeps_order(node: Node) -> bool:
    """Whether a node that is no view by name lists the elements of a contiguous input in the same order."""
    if node.target not in (_PERMUTE, aten.select_copy.int, aten.expand_copy.default):
        return False
    source: Any = node.args[0]
    before, after = source.meta["val"], node.meta["val"]
    if not (is_contiguous(before) and is_contiguous(after)):
        return False
    if node.target is _PERMUTE:
        moved = [dim for dim in _order(node) if not _is_one(before.shape[dim])]
        return moved == sorted(moved)
    if node.target is aten.select_copy.int:
        dim: Any = node.args[1]
        return _is_one(before.shape[dim])
    # Expansion repeats elements unless it only adds dimensions of size 1.
    new = [size for size in after.shape if not _is_one(size)]
    old = [size for size in before.shape if not _is_one(size)]
    return all(type(size) is int for size in (*new, *old)) and new == old


def _become_view(node: Node) -> int:
    sizes: list[Any] = list(node.meta["val"].shape)
    dynamic = [position for position, size in enumerate(sizes) if type(size) is not int]
    if len(dynamic) > 1:
        return 0  # One size may be left open as -1; more would need nodes that compute them.
    for position in dynamic:
        sizes[position] = -1
    node.target = _VIEW
    node.args = (node.args[0], sizes)
    node.kwargs = {}
    return 1


def _merge_views(node: Node) -> int:
    """Let a view read what its input views, where its own sizes can be said as those of a `view_copy`."""
    source: Any = node.args[0]
    if source.target not in _RESHAPING or source.meta["val"].numel() == 0:
        return 0
    base: Any = source.args[0]
    if not is_contiguous(base.meta["val"]):
        return 0
    if node.target is not _VIEW and not _become_view(node):
        return 0
    node.replace_input_with(source, base)
    return 1


def _is_one(size: Any) -> bool:
    return type(size) is int and size == 1
