"""Rules of operators that move values."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from workbench.pruning.graph import Graph, argument, permutation

__all__ = ["cat", "expand", "pad", "permute", "select", "slice_", "split"]


def permute(graph: Graph, node: Node) -> None:
    """Dimensions change places."""
    x, y = graph.of(node.args[0]), graph.of(node)
    order = permutation(node, len(y or ()))
    if x is None or y is None or order is None:
        return
    for dim, source in enumerate(order):
        graph.elements.tie(x[source], y[dim])


def expand(graph: Graph, node: Node) -> None:
    """Dimensions of size 1 are repeated."""
    x, y = graph.of(node.args[0]), graph.of(node)
    if x is None or y is None:
        return
    graph.same(x, y)
    for dim in range(1, len(y) + 1):
        if dim > len(x) or len(x[-dim]) != len(y[-dim]):
            graph.fix(node, "it repeats one value", y, -dim)


def select(graph: Graph, node: Node) -> None:
    """One index of a dimension is taken."""
    x, y = graph.of(node.args[0]), graph.of(node)
    if x is None or y is None:
        return
    chosen: Any = argument(node, "dim") % len(x)
    graph.fix(node, "one index of it is taken", x, chosen)
    for place, dim in enumerate(dim for dim in range(len(x)) if dim != chosen):
        graph.elements.tie(x[dim], y[place])


def slice_(graph: Graph, node: Node) -> None:
    """A range of indices of a dimension is taken."""
    x, y = graph.of(node.args[0]), graph.of(node)
    if x is None or y is None:
        return
    cut: Any = argument(node, "dim") % len(x)
    for dim in range(len(x)):
        if dim != cut:
            graph.elements.tie(x[dim], y[dim])
    start, step = argument(node, "start") or 0, argument(node, "step")
    size = len(x[cut])
    if not isinstance(start, int) or not isinstance(step, int) or step != 1:
        graph.fix(node, "some indices of it are taken", x, cut)
        graph.fix(node, "some indices of it are taken", y, cut)
        return
    start = max(0, start + size if start < 0 else start)
    graph.elements.tie(x[cut][start : start + len(y[cut])], y[cut])


def cat(graph: Graph, node: Node) -> None:
    """Each part has its range of the result."""
    parts: Any = node.args[0]
    y = graph.of(node)
    if y is None:
        return
    joined = argument(node, "dim") % len(y)
    offset = 0
    for part in parts:
        x = graph.of(part)
        if x is None or len(x) != len(y):
            continue
        for dim in range(len(y)):
            if dim != joined:
                graph.elements.tie(x[dim], y[dim])
        size = len(x[joined])
        graph.elements.tie(x[joined], y[joined][offset : offset + size])
        offset += size


def split(graph: Graph, node: Node) -> None:
    """Each result has its range of the input."""
    x, made = graph.of(node.args[0]), graph.axes.get(node)
    if x is None or not isinstance(made, list):
        return
    cut = argument(node, "dim") % len(x)
    offset = 0
    for y in made:
        for dim in range(len(x)):
            if dim != cut:
                graph.elements.tie(x[dim], y[dim])
        size = len(y[cut])
        graph.elements.tie(x[cut][offset : offset + size], y[cut])
        offset += size


def pad(graph: Graph, node: Node) -> None:
    """What is not padded passes."""
    x, y = graph.of(node.args[0]), graph.of(node)
    padding: Any = node.args[1]
    if x is None or y is None:
        return
    for dim in range(1, len(x) + 1):
        pair = padding[2 * dim - 2 : 2 * dim]
        if any(not isinstance(amount, int) or amount for amount in pair):
            graph.fix(node, "it is padded", x, -dim)
            graph.fix(node, "it is padded", y, -dim)
        else:
            graph.elements.tie(x[-dim], y[-dim])
