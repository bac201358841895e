"""The rule of reshapes: flattening, splitting a dimension into heads, merging heads.

The dimensions of both sides are matched in groups of equal products. A group of one and one passes. In a
group of one and several, the long dimension has an index for each combination of the others; combinations
can be removed along one of the short dimensions only, all others staying: channels before a flattened image,
heads before their features. The outermost is tried first; where something else needs all of it (a selection
of query, key or value), the next. Several and several (a batch of heads) meet in a shape that splits both.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.pruning.elements import Axes, Ids, Reason

if TYPE_CHECKING:
    from torch.fx import Node

    from workbench.pruning.graph import Graph

__all__ = ["groups", "refinement", "reshape"]


def reshape(graph: Graph, node: Node) -> None:
    """Tie what a reshape moves."""
    x, y = graph.of(node.args[0]), graph.of(node)
    if x is None or y is None:
        return
    source: Any = node.args[0]
    found = groups(source.meta["val"].shape, node.meta["val"].shape)
    if found is None:
        for axes in (x, y):
            graph.fix(node, "its symbolic sizes can't be matched", axes)
        return
    for number, (left, right) in enumerate(found):
        if len(left) == 1 and len(right) == 1:
            graph.elements.tie(x[left[0]], y[right[0]])
        elif len(left) == 1:
            _mixed(graph, node, number, x[left[0]], y, right)
        elif len(right) == 1:
            _mixed(graph, node, number, y[right[0]], x, left)
        else:
            _refined(graph, node, number, (x, left), (y, right))


def _refined(
    graph: Graph, node: Node, number: int, before: tuple[Axes, list[int]], after: tuple[Axes, list[int]]
) -> None:
    """Tie several dimensions with several others, through the coarsest shape that splits both."""
    factors = refinement(*([len(axes[dim]) for dim in dims] for axes, dims in (before, after)))
    if factors is None:
        for axes, dims in (before, after):
            graph.fix(node, "a reshape mixes it with others", axes, *dims)
        return
    between = graph.elements.new(factors)
    for side, (axes, dims) in enumerate((before, after)):
        place = 0
        for dim in dims:
            first, product = place, 1
            while product < len(axes[dim]):
                product *= factors[place]
                place += 1
            parts = list(range(first, place))
            if len(parts) == 1:
                graph.elements.tie(axes[dim], between[first])
            else:
                _mixed(graph, node, 1000 * (number + 1) + 100 * side + dim, axes[dim], between, parts)


def refinement(before: list[int], after: list[int]) -> list[int] | None:
    """The coarsest factors of which both shapes are products, in order; None where there are none."""
    ends = sorted({*itertools.accumulate(before, int.__mul__), *itertools.accumulate(after, int.__mul__)})
    factors = []
    for start, end in itertools.pairwise([1, *ends]):
        if start == 0 or end % start:
            return None
        factors.append(end // start)
    return factors


def _mixed(graph: Graph, node: Node, number: int, merged: Ids, axes: Axes, dims: list[int]) -> None:
    """Tie one dimension with one of those that it is made of; the others stay."""
    sizes = [len(axes[dim]) for dim in dims]
    key = (node.name, number)
    graph.asked[key] = [axes[dim] for dim in dims]
    chosen = graph.choices.get(key, 0)
    if not all(sizes) or len(merged) != int(np.prod(sizes)):
        graph.fix(node, "a reshape mixes it with a symbolic size", axes, *dims)
        graph.elements.fix(merged, Reason(node.name, "a reshape mixes it with a symbolic size"))
        return
    shaped = np.moveaxis(merged.reshape(sizes), chosen, 0).reshape(sizes[chosen], -1)
    graph.elements.tie(shaped, axes[dims[chosen]][:, None])
    for place, dim in enumerate(dims):
        if place != chosen:
            graph.elements.fix(axes[dim], Reason(node.name, "a reshape mixes it with others", chosen=True))


def groups(before: Any, after: Any) -> list[tuple[list[int], list[int]]] | None:
    """Dimensions of both sides that hold the same elements, in order; dimensions of size 1 stand in none.

    None where symbols leave it open.
    """
    left = [(dim, size) for dim, size in enumerate(before) if not _is_one(size)]
    right = [(dim, size) for dim, size in enumerate(after) if not _is_one(size)]
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if str(left[i][1]) == str(right[j][1]):
            found.append(([left[i][0]], [right[j][0]]))
            i, j = i + 1, j + 1
            continue
        one, other = [left[i][0]], [right[j][0]]
        product, wanted = left[i][1], right[j][1]
        i, j = i + 1, j + 1
        while not isinstance(product, int) or not isinstance(wanted, int) or product != wanted:
            if not isinstance(product, int) or not isinstance(wanted, int):
                return None
            if product < wanted and i < len(left):
                product *= left[i][1]
                one.append(left[i][0])
                i += 1
            elif product > wanted and j < len(right):
                wanted *= right[j][1]
                other.append(right[j][0])
                j += 1
            else:
                return None
        found.append((one, other))
    return found if i == len(left) and j == len(right) else None


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1
