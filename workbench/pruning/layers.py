"""Rules of layers with weights, and of attention."""

from __future__ import annotations

from torch.fx import Node

from workbench.pruning.elements import Axes
from workbench.pruning.graph import Graph, Rule, argument

__all__ = ["attention", "batch_norm", "convolution", "embedding", "linear", "matmul", "prelu"]


def linear(graph: Graph, node: Node) -> None:
    """The last dimension meets the weight; all others pass."""
    value, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
    x, w, y = graph.of(value), graph.of(weight), graph.of(node)
    if x is None or w is None or y is None:
        return
    for dim in range(len(x) - 1):
        graph.elements.tie(x[dim], y[dim])
    graph.elements.tie(x[-1], w[1])
    graph.elements.tie(w[0], y[-1])
    if (b := graph.of(bias)) is not None:
        graph.elements.tie(b[0], y[-1])
    if not graph.play("in", node, weight, 1):
        graph.fix(node, "the weight is computed in the graph", w)
    graph.play("out", node, weight, 0)


def convolution(transposed: bool) -> Rule:
    """Channels meet the weight, whole groups where there are several; the image stays."""

    def rule(graph: Graph, node: Node) -> None:
        value, weight, bias = (argument(node, name) for name in ("input", "weight", "bias"))
        groups = int(argument(node, "groups"))
        x, w, y = graph.of(value), graph.of(weight), graph.of(node)
        if x is None or w is None or y is None:
            return
        channel = len(x) - (len(w) - 1)
        for dim in range(len(x)):
            if dim < channel:
                graph.elements.tie(x[dim], y[dim])
            elif dim > channel:
                graph.fix(node, "the kernel slides over it", x, dim)
                graph.fix(node, "the kernel slides over it", y, dim)
        for dim in range(2, len(w)):
            graph.fix(node, "it is an extent of the kernel", w, dim)
        into, out = (0, 1) if transposed else (1, 0)
        if groups == 1:
            graph.elements.tie(x[channel], w[into])
            graph.elements.tie(w[out], y[channel])
        else:
            # Whole groups go: their channels of the input, of the result, and their rows of the weight.
            firsts = w[0].reshape(groups, -1)
            for other in (w[0], x[channel], y[channel]):
                graph.elements.tie(other.reshape(groups, -1), firsts[:, :1])
            graph.fix(node, "all groups have the same number of channels", w, 1)
        if (b := graph.of(bias)) is not None:
            graph.elements.tie(b[0], y[channel])
        if not graph.play("in", node, weight, into if groups == 1 else 0):
            graph.fix(node, "the weight is computed in the graph", w)
        graph.play("out", node, weight, out if groups == 1 else 0)

    return rule


def matmul(graph: Graph, node: Node) -> None:
    """A product sums over channels where one side is a parameter; of two activations the sum stays."""
    left, right = node.args[-2:] if len(node.args) > 1 else (None, None)
    a, b, y = graph.of(left), graph.of(right), graph.of(node)
    if a is None or b is None or y is None or len(a) < 2 or len(b) < 2:
        for axes in (a, b, y):
            graph.fix(node, "it is multiplied with a vector", axes)
        return
    batch = len(y) - 2
    for given in (a, b):
        for dim in range(3, len(given) + 1):
            if len(given[-dim]) == len(y[-dim]) and dim - 2 <= batch:
                graph.elements.tie(given[-dim], y[-dim])
    graph.elements.tie(a[-2], y[-2])
    graph.elements.tie(b[-1], y[-1])
    if graph.play("in", node, right, -2 % len(b)) or graph.play("in", node, left, -1 % len(a)):
        graph.elements.tie(a[-1], b[-2])
        graph.play("out", node, right, -1 % len(b))
    else:
        graph.fix(node, "two activations are multiplied and summed over it", a, -1)
        graph.fix(node, "two activations are multiplied and summed over it", b, -2)
    if str(node.target).startswith(("aten.addmm", "aten.baddbmm")) and (c := graph.of(node.args[0])):
        graph.same(c, y)


def batch_norm(graph: Graph, node: Node) -> None:
    """A factor, an offset and statistics for each channel."""
    x = graph.of(node.args[0])
    made = graph.axes.get(node)
    outs = made if isinstance(made, list) else [made]
    if x is None or not isinstance(outs[0], Axes):
        return
    for dim in range(len(x)):
        graph.elements.tie(x[dim], outs[0][dim])
    for other in outs[1:]:
        if isinstance(other, Axes) and len(other):
            graph.elements.tie(other[0], x[1]) if len(other[0]) == len(x[1]) else None
    for position, value in enumerate(node.args[1:5]):
        if (axes := graph.of(value)) is not None:
            graph.elements.tie(axes[0], x[1])
            if position == 0:
                graph.play("scale", node, value, 0)


def embedding(graph: Graph, node: Node) -> None:
    """Rows stay, since any may be looked up; columns are channels."""
    w, index, y = graph.of(node.args[0]), graph.of(node.args[1]), graph.of(node)
    if w is None or y is None:
        return
    graph.fix(node, "any row may be looked up", w, 0)
    graph.elements.tie(w[1], y[-1])
    graph.play("out", node, node.args[0], 1)
    for dim in range(len(index or ())):
        graph.elements.tie(index[dim], y[dim])  # type: ignore[index]


def prelu(graph: Graph, node: Node) -> None:
    """One slope, or one for each channel."""
    x, slope, y = graph.of(node.args[0]), graph.of(node.args[1]), graph.of(node)
    if x is None or y is None:
        return
    graph.same(x, y)
    if slope is not None and len(slope) == 1 and len(x) > 1 and len(slope[0]) == len(x[1]):
        graph.elements.tie(slope[0], x[1])


def attention(graph: Graph, node: Node) -> None:
    """Heads pass, and the features of values; what is multiplied and summed stays."""
    query, key, value = (graph.of(argument(node, name)) for name in ("query", "key", "value"))
    mask, y = graph.of(argument(node, "attn_mask")), graph.of(node)
    if query is None or key is None or value is None or y is None:
        return
    shared = all(len(axes) == len(y) for axes in (query, key, value))
    grouped = bool(argument(node, "enable_gqa"))
    for axes in (query, key, value):
        for dim in range(len(axes) - 2):
            if shared and not grouped:
                graph.elements.tie(axes[dim], y[dim])
            else:
                graph.fix(node, "heads share keys and values", axes, dim)
    if not shared or grouped:
        graph.fix(node, "heads share keys and values", y)
    for axes in (query, key):
        graph.fix(node, "queries and keys are multiplied over it", axes, -1)
        graph.fix(node, "it is a position of the sequence", axes, -2)
    graph.fix(node, "it is a position of the sequence", value, -2)
    graph.fix(node, "it is a position of the sequence", y, -2)
    graph.elements.tie(value[-1], y[-1])
    if mask is not None:
        graph.same(mask, Axes((*y.dims[:-2], None, None)))
        graph.fix(node, "it is a position of the sequence", mask, -1, -2)
