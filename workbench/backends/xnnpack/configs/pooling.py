"""Pooling over windows, and resizing."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from workbench.backends.base import WhyNot
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, argument, sizes_of

if TYPE_CHECKING:
    from workbench.backends.xnnpack.builder import Builder

__all__ = ["ALIGN_CORNERS", "CONFIGS", "KEEP_DIMS"]

aten = torch.ops.aten
KEEP_DIMS = 0x40
ALIGN_CORNERS = 8


def _pair(node: Node, name: str, default: Any) -> list[int]:
    given = argument(node, name)
    if given is None or (not isinstance(given, int) and len(given) == 0):
        given = default
    items = [given] if isinstance(given, int) else list(given)
    return items * 2 if len(items) == 1 else items


def _check_window(node: Node) -> WhyNot | None:
    value: Any = node.args[0]
    if value.meta["val"].dim() != 4:
        return WhyNot(node, f"its input has {value.meta['val'].dim()} dimensions", "it had 4")
    kernel = _pair(node, "kernel_size", None)
    stride = _pair(node, "stride", kernel)
    if stride[0] > kernel[0] or stride[1] > kernel[1]:
        return WhyNot(
            node, f"its stride {stride} exceeds its kernel {kernel}", "the stride were at most the kernel"
        )
    if kernel == [1, 1]:
        return WhyNot(node, "its window is one element", "the window were larger")
    return None


class MaxPool(Config):
    """`max_pool2d`, also in the form that gives indices which nobody reads."""

    targets = (aten.max_pool2d_with_indices.default,)
    whole = (aten.max_pool2d.default,)
    results = 1

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """No indices; the stride may not exceed the kernel; ceil_mode on known sizes only."""
        indexed = node.target is aten.max_pool2d_with_indices.default
        if indexed and any(user.target is operator.getitem and user.args[1] != 0 for user in node.users):
            return WhyNot(node, "its indices are used", "only its maxima were")
        value: Any = node.args[0]
        if argument(node, "ceil_mode", False) and {2, 3} & sizes_of(value.meta["val"])[1]:
            return WhyNot(
                node, "it rounds a dynamic size up", "ceil_mode were False, or height and width known"
            )
        return _check_window(node)

    def build(self, node: Node, builder: Builder) -> None:
        """One call; what rounding up adds becomes padding at the end, which a maximum ignores."""
        value = builder.value(node.args[0])
        found = node.meta["val"]
        sizes, free = sizes_of(found[0] if isinstance(found, (tuple, list)) else found)
        kernel = _pair(node, "kernel_size", None)
        stride, padding = _pair(node, "stride", kernel), _pair(node, "padding", 0)
        dilation = _pair(node, "dilation", 1)
        ends = []
        for axis in (0, 1):
            needed = (sizes[2 + axis] - 1) * stride[axis] + dilation[axis] * (kernel[axis] - 1) + 1
            rounded = argument(node, "ceil_mode", False)
            missing = needed - value.shape[2 + axis] - padding[axis]
            ends.append(max(missing, padding[axis]) if rounded else padding[axis])
        fields = _window(kernel, stride, padding, ends, dilation)
        result = builder.call("MaxPooling2d", [value], sizes, free, **fields)
        _define_first(node, result, builder)


class AvgPool(Config):
    """`avg_pool2d`."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten.avg_pool2d.default,)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The library divides by the number of elements inside of the image."""
        if argument(node, "ceil_mode", False):
            return WhyNot(node, "it rounds its sizes up", "ceil_mode were False")
        padded = any(_pair(node, "padding", 0))
        if padded and argument(node, "count_include_pad", True):
            return WhyNot(node, "its average counts the padding", "count_include_pad were False")
        divisor = argument(node, "divisor_override")
        kernel = _pair(node, "kernel_size", None)
        if divisor is not None and (padded or divisor != kernel[0] * kernel[1]):
            return WhyNot(node, f"it divides by {divisor}", "divisor_override were None")
        return _check_window(node)

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        kernel = _pair(node, "kernel_size", None)
        stride, padding = _pair(node, "stride", kernel), _pair(node, "padding", 0)
        fields = _window(kernel, stride, padding, padding, (0, 0))
        builder.define(node, builder.like("AvgPooling2d", [builder.value(node.args[0])], node, **fields))


class MaxOverAxis(Config):
    """The maximum over height or width, of `max.dim` whose indices nobody reads and of `amax`."""

    targets = (aten.max.dim, aten.amax.default)
    results = 1

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """One spatial axis of an image, known in size."""
        value: Any = node.args[0]
        found = value.meta["val"]
        if found.dim() != 4:
            return WhyNot(node, f"its input has {found.dim()} dimensions", "it had 4")
        if any(user.target is operator.getitem and user.args[1] != 0 for user in node.users):
            return WhyNot(node, "its indices are used", "only its maxima were")
        axes = self._axes(node)
        if not axes or not set(axes) <= {2, 3}:
            return WhyNot(node, f"it runs over the dimensions {axes}", "it ran over dimension 2 or 3")
        if set(axes) & sizes_of(found)[1]:
            return WhyNot(node, "it runs over a dynamic size", "the size were known")
        if any(found.shape[axis] == 1 for axis in axes) and len(axes) == 1:
            return WhyNot(node, "it runs over one element", "the size were larger")
        keep = argument(node, "keepdim", False)
        if not keep and len(sizes_of(found)[1]) > 1:
            return WhyNot(
                node, "it drops a dimension of a tensor with several dynamic sizes", "keepdim were True"
            )
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """A maximum whose window is the whole axis."""
        value = builder.value(node.args[0])
        axes = self._axes(node)
        kernel = [value.shape[axis] if axis in axes else 1 for axis in (2, 3)]
        shape = [1 if axis in axes else size for axis, size in enumerate(value.shape)]
        fields = _window(kernel, kernel, (0, 0), (0, 0), (1, 1))
        result = builder.call("MaxPooling2d", [value], shape, value.free, **fields)
        if not argument(node, "keepdim", False):
            found = node.meta["val"]
            sizes, free = sizes_of(found[0] if isinstance(found, (tuple, list)) else found)
            result = builder.reshape(result, sizes, free)
        _define_first(node, result, builder)

    @staticmethod
    def _axes(node: Node) -> list[int]:
        given = argument(node, "dim", [])
        listed = [given] if isinstance(given, int) else list(given)
        return sorted(axis % 4 for axis in listed)


class Resize(Config):
    """`upsample_bilinear2d` to a size that is known."""

    precisions = frozenset({ConfigPrecisionType.FP32})
    targets = (aten.upsample_bilinear2d.vec,)
    whole = (aten.upsample_bilinear2d.vec,)
    dtypes = (torch.float32, torch.float16)

    def check(self, node: Node, context: Context) -> WhyNot | None:
        """The size may not change at run time; the library takes sizes below 2^24."""
        sizes, free = sizes_of(node.meta["val"])
        if {2, 3} & free:
            return WhyNot(
                node, f"its size {tuple(node.meta['val'].shape[2:])} is dynamic", "it were constant"
            )
        value: Any = node.args[0]
        before = value.meta["val"].shape
        aligned = bool(argument(node, "align_corners", False))
        if aligned and any(n == 1 for n in sizes[2:]):
            return WhyNot(node, "it aligns the corners of one row or column", "align_corners were False")
        factors = argument(node, "scale_factors")
        if factors is not None and not aligned:
            for axis, factor in enumerate(factors):
                if before[2 + axis] * factor != sizes[2 + axis]:
                    return WhyNot(
                        node,
                        f"its factor {factor} gives no whole size",
                        "factor times size were the new size",
                    )
        return None

    def build(self, node: Node, builder: Builder) -> None:
        """One call."""
        height, width = node.meta["val"].shape[2:]
        flags = ALIGN_CORNERS if argument(node, "align_corners", False) else 0
        result = builder.like(
            "StaticResizeBilinear2D",
            [builder.value(node.args[0])],
            node,
            new_height=height,
            new_width=width,
            flags=flags,
        )
        builder.define(node, result)


def _window(kernel: Any, stride: Any, starts: Any, ends: Any, dilation: Any) -> dict[str, Any]:
    return {
        "padding_top": starts[0],
        "padding_right": ends[1],
        "padding_bottom": ends[0],
        "padding_left": starts[1],
        "pooling_height": kernel[0],
        "pooling_width": kernel[1],
        "stride_height": stride[0],
        "stride_width": stride[1],
        "dilation_height": dilation[0],
        "dilation_width": dilation[1],
        "flags": KEEP_DIMS,
    }


def _define_first(node: Node, result: Any, builder: Builder) -> None:
    """Define a result that is the first of several, or the only one."""
    if not isinstance(node.meta["val"], (tuple, list)):
        builder.define(node, result)
        return
    for user in node.users:
        builder.define(user, result)


CONFIGS: tuple[Config, ...] = (MaxPool(), AvgPool(), MaxOverAxis(), Resize())
