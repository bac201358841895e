"""What each operator ties and fixes: one rule an operator, in the table `RULES`.

An operator without a rule fixes all of its inputs and outputs, and is named as the reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from workbench.pruning.elements import Axes, Elements, Ids, Reason

__all__ = ["RULES", "Graph", "Role", "argument", "rule_of"]

aten = torch.ops.aten


@dataclass(frozen=True)
class Role:
    """What a dimension of a parameter is to a layer.

    Attributes:
        parameter: The parameter's placeholder.
        dim: The dimension.
        kind: `"out"`: a layer's results lie along it; `"in"`: a layer sums over it; `"scale"`: a factor of a
            batch norm.
        node: The layer's operator.
    """

    parameter: Node
    dim: int
    kind: str
    node: Node


@dataclass
class Graph:
    """What the rules read and write.

    Attributes:
        elements: The elements.
        axes: By node the axes of its result; a list where it has several.
        parameters: Placeholders of parameters, buffers and constants.
        roles: What dimensions of parameters are to the layers.
        choices: By reshape (node name and group) which of its candidates may be removed along.
        asked: By reshape the candidates, as elements.
        unknown: Nodes without a rule that read parameters.
    """

    elements: Elements
    axes: dict[Node, Any] = field(default_factory=dict)
    parameters: set[Node] = field(default_factory=set)
    roles: list[Role] = field(default_factory=list)
    choices: dict[tuple[str, int], int] = field(default_factory=dict)
    asked: dict[tuple[str, int], list[Ids]] = field(default_factory=dict)
    unknown: list[Node] = field(default_factory=list)

    def of(self, value: Any) -> Axes | None:
        """The axes of an argument, if it is a tensor."""
        found = self.axes.get(value) if isinstance(value, Node) else None
        return found if isinstance(found, Axes) else None

    def fix(self, node: Node, text: str, axes: Axes | None, *dims: int) -> None:
        """Fix dimensions of a tensor; all of them where none is named."""
        if axes is None:
            return
        for dim in dims or range(len(axes)):
            self.elements.fix(axes[dim], Reason(node.name, text))

    def same(self, left: Axes, right: Axes) -> None:
        """Tie the trailing dimensions of two tensors where they have equal sizes; size 1 is broadcast."""
        for dim in range(1, min(len(left), len(right)) + 1):
            if len(left[-dim]) == len(right[-dim]):
                self.elements.tie(left[-dim], right[-dim])

    def parameter_dim(self, value: Any, dim: int) -> tuple[Node, int] | None:
        """The parameter's dimension that a dimension of a value is, looking through transpositions."""
        while isinstance(value, Node) and value not in self.parameters:
            rank = len(self.of(value) or ())
            permuted = _permutation(value, rank)
            if permuted is None:
                return None
            dim, value = permuted[dim % rank], value.args[0]
        return (value, dim) if isinstance(value, Node) else None

    def play(self, kind: str, node: Node, value: Any, dim: int) -> bool:
        """Note what a parameter's dimension is to a node; false where the value is no parameter."""
        found = self.parameter_dim(value, dim)
        if found is not None:
            self.roles.append(Role(found[0], found[1], kind, node))
        return found is not None


Rule = Callable[[Graph, Node], None]


def argument(node: Node, name: str) -> Any:
    """An argument of a call by its name in the schema, or its default."""
    for position, known in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if known.name == name:
            if position < len(node.args):
                return node.args[position]
            return node.kwargs.get(name, known.default_value)
    raise KeyError(name)


def rule_of(node: Node) -> Rule | None:
    """The rule of a call; None where there is none."""
    target = node.target
    if target is operator.getitem:
        return _getitem
    packet = getattr(target, "overloadpacket", None)
    if packet is None:
        return None
    name = str(packet).removeprefix("aten.")
    plain = name.rstrip("_")
    if name in RULES or plain in RULES:
        return RULES.get(name) or RULES[plain]
    if _is_pointwise(target, plain):
        return pointwise
    return None


def _is_pointwise(target: Any, plain: str) -> bool:
    if torch.Tag.pointwise in target.tags:
        return True
    functional = getattr(aten, plain, None) if target.namespace == "aten" else None
    if functional is None:
        return False
    return any(torch.Tag.pointwise in getattr(functional, name).tags for name in functional.overloads())


# ---- operators that treat all channels alike ---------------------------------------------------------------


def pointwise(graph: Graph, node: Node) -> None:
    """Each element of the result comes from those at its place in the inputs."""
    out = graph.of(node)
    for value in node.all_input_nodes:
        given = graph.of(value)
        if given is not None and out is not None:
            graph.same(given, out)


def _nothing(graph: Graph, node: Node) -> None:
    """A call without a result that anybody reads: a check, a size."""


def _getitem(graph: Graph, node: Node) -> None:
    source: Any = node.args[0]
    made, out = graph.axes.get(source), graph.of(node)
    if out is None:
        return
    if isinstance(made, list) and isinstance(made[int(node.args[1])], Axes):  # type: ignore[arg-type]
        graph.same(made[int(node.args[1])], out)  # type: ignore[arg-type]
    else:
        graph.fix(node, "it is one of several results of an operator without a rule", out)


def _inner_fixed(text: str, spatial: Callable[[Node, int], int]) -> Rule:
    """All pass but the last dimensions, whose number is asked."""

    def rule(graph: Graph, node: Node) -> None:
        given, out = graph.of(node.args[0]), graph.of(node)
        if given is None or out is None:
            return
        count = spatial(node, len(given))
        for dim in range(len(given) - count):
            graph.elements.tie(given[dim], out[dim])
        for dim in range(len(given) - count, len(given)):
            graph.fix(node, text, given, dim)
            graph.fix(node, text, out, dim)

    return rule


def _pool_rank(node: Node, rank: int) -> int:
    del rank
    return 1 if "1d" in str(node.target) else 3 if "3d" in str(node.target) else 2


def _normalized(node: Node, rank: int) -> int:
    del rank
    return len(argument(node, "normalized_shape"))


def _dims_fixed(text: str) -> Rule:
    """All pass but the dimensions that the arguments `dim` name; without any, all are fixed."""

    def rule(graph: Graph, node: Node) -> None:
        given = graph.of(node.args[0])
        if given is None:
            return
        names = {known.name for known in node.target._schema.arguments}  # type: ignore[union-attr]
        dims = argument(node, "dim") if "dim" in names else None
        listed = [dims] if isinstance(dims, int) else list(dims) if dims else list(range(len(given)))
        fixed = {dim % len(given) for dim in listed} if len(given) else set()
        keeps = "keepdim" not in names or bool(argument(node, "keepdim"))
        made = graph.axes.get(node)
        for out in made if isinstance(made, list) else [made]:
            if not isinstance(out, Axes):
                continue
            place = 0
            for dim in range(len(given)):
                if dim not in fixed:
                    graph.elements.tie(given[dim], out[place])
                place += dim not in fixed or keeps
        graph.fix(node, text, given, *sorted(fixed))

    return rule


# ---- layers with weights -----------------------------------------------------------------------------------


def _linear(graph: Graph, node: Node) -> None:
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


def _convolution(transposed: bool) -> Rule:
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


def _matmul(graph: Graph, node: Node) -> None:
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


def _batch_norm(graph: Graph, node: Node) -> None:
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


def _embedding(graph: Graph, node: Node) -> None:
    w, index, y = graph.of(node.args[0]), graph.of(node.args[1]), graph.of(node)
    if w is None or y is None:
        return
    graph.fix(node, "any row may be looked up", w, 0)
    graph.elements.tie(w[1], y[-1])
    graph.play("out", node, node.args[0], 1)
    for dim in range(len(index or ())):
        graph.elements.tie(index[dim], y[dim])  # type: ignore[index]


def _prelu(graph: Graph, node: Node) -> None:
    x, slope, y = graph.of(node.args[0]), graph.of(node.args[1]), graph.of(node)
    if x is None or y is None:
        return
    graph.same(x, y)
    if slope is not None and len(slope) == 1 and len(x) > 1 and len(slope[0]) == len(x[1]):
        graph.elements.tie(slope[0], x[1])


def _attention(graph: Graph, node: Node) -> None:
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


# ---- movement ----------------------------------------------------------------------------------------------


def _permutation(node: Node, rank: int) -> list[int] | None:
    """Which dimension of the input each of the result is."""
    if node.op != "call_function" or not rank:
        return None
    name = str(getattr(node.target, "overloadpacket", "")).removeprefix("aten.").removesuffix("_copy")
    order = list(range(rank))
    if name == "permute":
        return [dim % rank for dim in argument(node, "dims")]
    if name in ("t", "numpy_T") and rank <= 2:
        return order[::-1]
    if name in ("transpose", "swapaxes"):
        dims: Any = node.args
        first, second = dims[1] % rank, dims[2] % rank
        order[first], order[second] = order[second], order[first]
        return order
    return None


def _permute(graph: Graph, node: Node) -> None:
    x, y = graph.of(node.args[0]), graph.of(node)
    order = _permutation(node, len(y or ()))
    if x is None or y is None or order is None:
        return
    for dim, source in enumerate(order):
        graph.elements.tie(x[source], y[dim])


def _expand(graph: Graph, node: Node) -> None:
    x, y = graph.of(node.args[0]), graph.of(node)
    if x is None or y is None:
        return
    graph.same(x, y)
    for dim in range(1, len(y) + 1):
        if dim > len(x) or len(x[-dim]) != len(y[-dim]):
            graph.fix(node, "it repeats one value", y, -dim)


def _select(graph: Graph, node: Node) -> None:
    x, y = graph.of(node.args[0]), graph.of(node)
    if x is None or y is None:
        return
    chosen: Any = argument(node, "dim") % len(x)
    graph.fix(node, "one index of it is taken", x, chosen)
    for place, dim in enumerate(dim for dim in range(len(x)) if dim != chosen):
        graph.elements.tie(x[dim], y[place])


def _slice(graph: Graph, node: Node) -> None:
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


def _cat(graph: Graph, node: Node) -> None:
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


def _split(graph: Graph, node: Node) -> None:
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


def _pad(graph: Graph, node: Node) -> None:
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


def _rules() -> dict[str, Rule]:
    from workbench.pruning.reshape import reshape

    rules: dict[str, Rule] = {"linear": _linear, "embedding": _embedding, "prelu": _prelu, "cat": _cat}
    for name in (
        "dropout",
        "feature_dropout",
        "alpha_dropout",
        "contiguous",
        "clone",
        "to",
        "_to_copy",
        "alias",
    ):
        rules[name] = pointwise
    for name in ("detach", "lift_fresh_copy", "type_as", "native_dropout", "copy", "zeros_like", "ones_like"):
        rules[name] = pointwise
    for name in ("_assert_tensor_metadata", "sym_size", "_assert_scalar", "_assert_async"):
        rules[name] = _nothing
    for name in ("conv1d", "conv2d", "conv3d"):
        rules[name] = _convolution(False)
    for name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        rules[name] = _convolution(True)
    for name in ("matmul", "mm", "bmm", "addmm", "baddbmm"):
        rules[name] = _matmul
    for name in ("batch_norm", "_native_batch_norm_legit_no_training"):
        rules[name] = _batch_norm
    pools = [
        f"{kind}_pool{rank}d" for kind in ("max", "avg", "adaptive_avg", "adaptive_max") for rank in (1, 2, 3)
    ]
    resized = [f"upsample_{kind}2d" for kind in ("nearest", "bilinear", "bicubic", "_nearest_exact")]
    for name in (*pools, *resized, "upsample_nearest1d", "upsample_linear1d"):
        rules[name] = _inner_fixed("windows slide over it", _pool_rank)
    for name in ("layer_norm", "rms_norm"):
        rules[name] = _normalization
    for name in ("softmax", "_softmax", "log_softmax", "_log_softmax", "logsumexp", "cumsum"):
        rules[name] = _dims_fixed("it is normalized or summed over")
    for name in ("mean", "sum", "amax", "amin", "max", "min", "var", "std", "argmax", "argmin", "norm"):
        rules[name] = _dims_fixed("it is reduced")
    rules["linalg_vector_norm"] = _dims_fixed("it is reduced")
    rules["glu"] = _dims_fixed("its halves are multiplied")
    rules["scaled_dot_product_attention"] = _attention
    for name in ("permute", "transpose", "t", "swapaxes", "numpy_T"):
        rules[name] = _permute
    for name in (
        "view",
        "reshape",
        "_unsafe_view",
        "flatten",
        "unflatten",
        "squeeze",
        "unsqueeze",
        "view_copy",
    ):
        rules[name] = reshape
    rules |= {"expand": _expand, "select": _select, "slice": _slice}
    for name in ("split", "split_with_sizes", "chunk"):
        rules[name] = _split
    rules |= {"constant_pad_nd": _pad, "pad": _pad}
    return rules


def _normalization(graph: Graph, node: Node) -> None:
    _inner_fixed("it is normalized over", _normalized)(graph, node)
    for name in ("weight", "bias"):
        graph.fix(node, "it is normalized over", graph.of(argument(node, name)))


RULES: dict[str, Rule] = {}
RULES.update(_rules())
