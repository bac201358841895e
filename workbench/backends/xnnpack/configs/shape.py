"""Operators that move elements: views, permutations, slices, concatenation, padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, Context, argument, is_free, sizes_of
from workbench.backends.xnnpack.configs.dynamic import reshaped_rows
from workbench.backends.xnnpack.graph import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.backends.xnnpack.builder import Builder

__all__ = ["CONFIGS"]

aten = torch.ops.aten
_MOST_INPUTS = 5  # of one concatenation


def _several_free(node: Node, what: str = "its result") -> WhyNot | None:
    found = node.meta["val"]
    free = sizes_of(found)[1]
    if len(free) > 1:
        return WhyNot(
            node,
            f"{what} has {len(free)} dynamic sizes, {tuple(found.shape)}, and a reshape infers one",
            "at most one size were dynamic",
        )
    return None


class View(Config):
    """Whatever only regroups elements: `view`, `squeeze`, `unsqueeze`."""

    targets = (
        aten.view_copy.default,
        aten._unsafe_view.default,
        aten.squeeze_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.unsqueeze_copy.default,
    )

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """At most one size may be dynamic."""
        source: Any = node.args[0]
        before, after = source.meta["val"], node.meta["val"]
        if tuple(before.shape) == tuple(after.shape):
            return None
        return _several_free(node)

    def operands(self, node: Node) -> Sequence[Node]:
        """Sizes may be operands, too; the result says what they are."""
        return node.all_input_nodes[:1]

    def build(self, node: Node, builder: Builder) -> None:
        """One reshape."""
        value, sizes = builder.value(node.args[0]), sizes_of(node.meta["val"])
        rows = reshaped_rows(value, *sizes, builder)
        builder.define(node, builder.reshape(value, *sizes) if rows is None else rows)


class Expand(Config):
    """`expand` to the same sizes."""

    targets = (aten.expand_copy.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Nothing repeats elements."""
        source: Any = node.args[0]
        before, after = tuple(source.meta["val"].shape), tuple(node.meta["val"].shape)
        if before != after:
            return WhyNot(node, f"it repeats elements, {before} to {after}", "the sizes were the same")
        return None

    def operands(self, node: Node) -> Sequence[Node]:
        """Sizes may be operands, too."""
        return node.all_input_nodes[:1]

    def build(self, node: Node, builder: Builder) -> None:
        """The same value."""
        builder.define(node, builder.value(node.args[0]))


class Permute(Config):
    """`permute`, `t`, `transpose`."""

    targets = (aten.permute_copy.default, aten.t_copy.default, aten.transpose_copy.int)

    def build(self, node: Node, builder: Builder) -> None:
        """One transpose."""
        value = builder.value(node.args[0])
        builder.define(node, builder.transpose(value, self._order(node, value.rank)))

    @staticmethod
    def _order(node: Node, rank: int) -> list[int]:
        order = list(range(rank))
        if node.target is aten.permute_copy.default:
            listed: Any = node.args[1]
            return [int(axis) % rank for axis in listed]
        first, second = (0, 1) if node.target is aten.t_copy.default else node.args[1:3]
        if rank > 1:
            i, j = int(first) % rank, int(second) % rank  # type: ignore[arg-type]
            order[i], order[j] = order[j], order[i]
        return order


def _static(node: Node, tensor: torch.Tensor, what: str) -> WhyNot | None:
    if any(is_free(size) for size in tensor.shape):
        return WhyNot(node, f"{what} has the dynamic sizes {tuple(tensor.shape)}", "all sizes were constant")
    return None


def _part(value: Value, axis: int, start: int, size: int, builder: Builder) -> Value:
    if size == value.shape[axis]:
        return value
    if value.data is not None:
        return builder.constant(value.data.narrow(axis, start, size))
    offsets, sizes = [0] * value.rank, list(value.shape)
    offsets[axis], sizes[axis] = start, size
    return builder.call(
        "StaticSlice", [value], sizes, num_dims=value.rank, offsets=offsets, sizes=list(sizes)
    )


class Slice(Config):
    """`slice` with step 1, and `select`."""

    targets = (aten.slice_copy.Tensor, aten.select_copy.int)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """All sizes must be known, and the place."""
        source: Any = node.args[0]
        step = argument(node, "step", 1)
        if step != 1:
            return WhyNot(node, f"its step is {step}", "it were 1")
        places = [argument(node, name) for name in ("index", "start", "end")]
        if any(place is not None and not isinstance(place, int) for place in places):
            return WhyNot(node, "its place is known at run time only", "it were constant")
        return _static(node, source.meta["val"], f"'{source.name}'")

    def operands(self, node: Node) -> Sequence[Node]:
        """The place may be an operand, too."""
        return node.all_input_nodes[:1]

    def build(self, node: Node, builder: Builder) -> None:
        """One slice; a selected one loses its dimension."""
        value = builder.value(node.args[0])
        axis = int(argument(node, "dim", 0)) % value.rank
        shape = node.meta["val"].shape
        if node.target is aten.select_copy.int:
            start = int(argument(node, "index")) % value.shape[axis]
            builder.define(node, builder.reshape(_part(value, axis, start, 1, builder), shape))
            return
        start = argument(node, "start") or 0
        start = max(start + value.shape[axis], 0) if start < 0 else start
        builder.define(node, _part(value, axis, start, shape[axis], builder))


class Split(Config):
    """`split` and `unbind`: a slice per part."""

    targets = (aten.split_with_sizes_copy.default, aten.split_copy.Tensor, aten.unbind_copy.int)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """All sizes must be known."""
        source: Any = node.args[0]
        return _static(node, source.meta["val"], f"'{source.name}'")

    def build(self, node: Node, builder: Builder) -> None:
        """Slices, for the parts that are read."""
        value = builder.value(node.args[0])
        axis = int(argument(node, "dim", 0)) % value.rank
        parts = node.meta["val"]
        unbinds = node.target is aten.unbind_copy.int
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + (1 if unbinds else part.shape[axis]))
        for user in node.users:
            index = int(user.args[1])  # type: ignore[arg-type]
            part = _part(value, axis, starts[index], starts[index + 1] - starts[index], builder)
            builder.define(user, builder.reshape(part, parts[index].shape) if unbinds else part)


class Concatenate(Config):
    """`cat`; of more than five tensors a tree."""

    targets = (aten.cat.default,)

    def build(self, node: Node, builder: Builder) -> None:
        """Calls of two to five inputs each."""
        listed: Any = node.args[0]
        read = builder.operand if len(listed) <= _MOST_INPUTS else builder.value
        values = [read(item) for item in listed]
        axis = int(argument(node, "dim", 0)) % values[0].rank
        while len(values) > 1:
            groups = [values[i : i + _MOST_INPUTS] for i in range(0, len(values), _MOST_INPUTS)]
            if len(groups) > 1 and len(groups[-1]) == 1:
                groups[-2:] = [groups[-2][:-1], [groups[-2][-1], groups[-1][0]]]
            values = [self._join(group, axis, builder) for group in groups]
        builder.define(node, values[0])

    @staticmethod
    def _join(values: list[Value], axis: int, builder: Builder) -> Value:
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        free = values[0].free.union(*({axis} & value.free for value in values))
        return builder.call(f"Concatenate{len(values)}", values, shape, free, axis=axis)


class Pad(Config):
    """`constant_pad_nd` that cuts nothing off."""

    targets = (aten.constant_pad_nd.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """Paddings must be constant and not negative."""
        padding: Any = node.args[1]
        if any(not isinstance(n, int) for n in padding):
            return WhyNot(node, "its padding is known at run time only", "it were constant")
        if any(n < 0 for n in padding):
            return WhyNot(node, f"its padding {list(padding)} cuts off", "no padding were negative")
        if not isinstance(argument(node, "value", 0), (int, float)):
            return WhyNot(node, "its value is known at run time only", "it were constant")
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One call; the list starts at the last dimension."""
        value = builder.value(node.args[0])
        listed: Any = node.args[1]
        before, after = [0] * value.rank, [0] * value.rank
        for place in range(len(listed) // 2):
            before[-1 - place], after[-1 - place] = listed[2 * place], listed[2 * place + 1]
        result = builder.like(
            "StaticConstantPad",
            [value],
            node,
            pre_paddings=before,
            post_paddings=after,
            padding_value=float(argument(node, "value", 0)),
        )
        builder.define(node, result)


CONFIGS: tuple[Config, ...] = (
    View(),
    Expand(),
    Permute(),
    Slice(),
    Split(),
    Concatenate(),
    Pad(),
)
