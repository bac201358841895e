"""What each operator ties and fixes: one rule an operator, in the table `RULES`.

An operator without a rule fixes all of its inputs and outputs, and is named as the reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from workbench.pruning import layers, moves
from workbench.pruning.elements import Axes
from workbench.pruning.graph import Graph, Rule, argument
from workbench.pruning.reshape import reshape

__all__ = ["RULES", "pointwise", "rule_of"]

aten = torch.ops.aten


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


def _normalization(graph: Graph, node: Node) -> None:
    _inner_fixed("it is normalized over", _normalized)(graph, node)
    for name in ("weight", "bias"):
        graph.fix(node, "it is normalized over", graph.of(argument(node, name)))


def _rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {
        "linear": layers.linear,
        "embedding": layers.embedding,
        "prelu": layers.prelu,
        "cat": moves.cat,
    }
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
        rules[name] = layers.convolution(False)
    for name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        rules[name] = layers.convolution(True)
    for name in ("matmul", "mm", "bmm", "addmm", "baddbmm"):
        rules[name] = layers.matmul
    for name in ("batch_norm", "_native_batch_norm_legit_no_training"):
        rules[name] = layers.batch_norm
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
    rules["scaled_dot_product_attention"] = layers.attention
    for name in ("permute", "transpose", "t", "swapaxes", "numpy_T"):
        rules[name] = moves.permute
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
    rules |= {"expand": moves.expand, "select": moves.select, "slice": moves.slice_}
    for name in ("split", "split_with_sizes", "chunk"):
        rules[name] = moves.split
    rules |= {"constant_pad_nd": moves.pad, "pad": moves.pad}
    return rules


RULES: dict[str, Rule] = {}
RULES.update(_rules())
