"""Other shapes of the same elements, and parts of a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter, size_rules
from workbench.backends.cpu.entry import ANY, Call, Entry, Refusal, Size, no
from workbench.backends.cpu.graph import Op
from workbench.edge.dim_order_ops import CLONE

__all__ = ["ENTRIES"]

aten = torch.ops.aten


def _copy(emitter: Emitter, call: Call) -> None:
    """The same tensor: a copy is made where the delegate hands it out."""
    operand = next(iter(call.args.values()))
    emitter.define(call, emitter.value(operand))


def _reshape(emitter: Emitter, call: Call) -> None:
    output = emitter.result(call)
    emitter.reshaped(emitter.value(call["self"]), emitter.dims(output), output)


def _check_reshape(call: Call) -> Refusal | None:
    wanted, given = call.result().shape, call.tensor("self").shape
    if size_rules(wanted, given, infer=True) is None:
        return no(
            f"the sizes {tuple(wanted)} don't follow from {tuple(given)}",
            "all sizes but one were numbers, sizes of the operand or multiples of those",
        )
    return None


def _permute(emitter: Emitter, call: Call) -> None:
    value, output = emitter.value(call["self"]), emitter.result(call)
    rank = len(emitter.dims(value))
    emitter.transposed(value, [int(d) % max(rank, 1) for d in call["dims"]], output)


def _transpose(emitter: Emitter, call: Call) -> None:
    value, output = emitter.value(call["self"]), emitter.result(call)
    order = list(range(len(emitter.dims(value))))
    if order:
        first, second = (
            (0, len(order) - 1) if "dim0" not in call.args else (call.dim("dim0"), call.dim("dim1"))
        )
        order[first], order[second] = order[second], order[first]
    emitter.transposed(value, order, output)


def _expand(emitter: Emitter, call: Call) -> None:
    value, output = emitter.value(call["self"]), emitter.result(call)
    dims = emitter.dims(output)
    # Rules name dimensions of the input, so it gets the result's rank first.
    padded = [*[1] * (len(dims) - len(emitter.dims(value))), *emitter.dims(value)]
    value = emitter.reshaped(value, padded)
    rules = size_rules(dims, padded, infer=False)
    emitter.add(Op.Expand, [value], [output], sizes=rules)


def _check_expand(call: Call) -> Refusal | None:
    wanted, given = call.result().shape, call.tensor("self").shape
    if size_rules(wanted, given, infer=False) is None:
        return no(
            f"the sizes {tuple(wanted)} don't follow from {tuple(given)}",
            "the sizes that it expands to were numbers",
        )
    return None


def _repeat(emitter: Emitter, call: Call) -> None:
    """As a view of ones between the sizes, an expansion, and a view."""
    value, output = emitter.value(call["self"]), emitter.result(call)
    repeats = [int(count) for count in call["repeats"]]
    dims = [*[1] * (len(repeats) - len(emitter.dims(value))), *emitter.dims(value)]
    apart: list[Size] = []
    wide: list[Size] = []
    for size, count in zip(dims, repeats, strict=True):
        if count != 1:
            apart.append(1)
            wide.append(count)
        apart.append(size)
        wide.append(size)
    value = emitter.reshaped(value, apart)
    made = emitter.temporary(call.result().dtype, wide)
    emitter.add(Op.Expand, [value], [made], sizes=size_rules(wide, apart, infer=False))
    emitter.reshaped(made, emitter.dims(output), output)


def _check_repeat(call: Call) -> Refusal | None:
    repeats = call["repeats"]
    if not all(type(count) is int for count in repeats):
        return no("how often it repeats is dynamic", "the counts were numbers")
    if len(repeats) + sum(count != 1 for count in repeats) > 8:
        return no("it repeats too many dimensions", "sizes and repeated sizes were at most 8 together")
    if size_rules(call.result().shape, call.tensor("self").shape, infer=True) is None:
        return no("more than one of its sizes is dynamic", "one were")
    return None


def _slice(emitter: Emitter, call: Call) -> None:
    value, output = emitter.value(call["self"]), emitter.result(call)
    begin = 0 if call["start"] is None else call["start"]
    end = 2**62 if call["end"] is None else call["end"]
    emitter.add(
        Op.Slice, [value], [output], axis=call.dim(), begin=int(begin), end=int(end), step=int(call["step"])
    )


def _check_slice(call: Call) -> Refusal | None:
    if not all(call[name] is None or type(call[name]) is int for name in ("start", "end", "step")):
        return no("it begins or ends at a place that is computed", "start, end and step were numbers")
    return None


def _select(emitter: Emitter, call: Call) -> None:
    value, output, axis = emitter.value(call["self"]), emitter.result(call), call.dim()
    dims = list(emitter.dims(value))
    dims[axis] = 1
    begin = int(call["index"])
    made = emitter.temporary(call.result().dtype, dims)
    end = 2**62 if begin == -1 else begin + 1
    emitter.add(Op.Slice, [value], [made], axis=axis, begin=begin, end=end, step=1)
    emitter.reshaped(made, emitter.dims(output), output)


def _check_select(call: Call) -> Refusal | None:
    if type(call["index"]) is not int:
        return no("its index is computed", "the index were a number")
    return None


def _split(emitter: Emitter, call: Call) -> None:
    value, axis, used = emitter.value(call["self"]), call.dim(), call.used()
    begin = 0
    for index, part in enumerate(call.node.meta["val"]):
        size = part.shape[axis]
        if index in used:
            output = emitter.result(call, index)
            emitter.add(Op.Slice, [value], [output], axis=axis, begin=begin, end=begin + size, step=1)
        begin += size


def _check_split(call: Call) -> Refusal | None:
    if any(type(part.shape[call.dim()]) is not int for part in call.node.meta["val"]):
        return no("it splits a dynamic size", "the size were static")
    return None


def _unbind(emitter: Emitter, call: Call) -> None:
    value, axis = emitter.value(call["self"]), call.dim()
    dims = list(emitter.dims(value))
    dims[axis] = 1
    for index in sorted(call.used()):
        made = emitter.temporary(call.result(index).dtype, dims)
        emitter.add(Op.Slice, [value], [made], axis=axis, begin=index, end=index + 1, step=1)
        output = emitter.result(call, index)
        emitter.reshaped(made, emitter.dims(output), output)


def _pixel_shuffle(emitter: Emitter, call: Call) -> None:
    value, output = emitter.value(call["self"]), emitter.result(call)
    *n, c, h, w = emitter.dims(value)
    r, lead = int(call["upscale_factor"]), len(n)
    apart = emitter.reshaped(value, [*n, c // (r * r), r, r, h, w])
    order = [*range(lead), lead, lead + 3, lead + 1, lead + 4, lead + 2]
    emitter.reshaped(emitter.transposed(apart, order), emitter.dims(output), output)


def _pixel_unshuffle(emitter: Emitter, call: Call) -> None:
    value, output = emitter.value(call["self"]), emitter.result(call)
    *n, c, h, w = emitter.dims(value)
    r, lead = int(call["downscale_factor"]), len(n)
    apart = emitter.reshaped(value, [*n, c, h // r, r, w // r, r])
    order = [*range(lead), lead, lead + 2, lead + 4, lead + 1, lead + 3]
    emitter.reshaped(emitter.transposed(apart, order), emitter.dims(output), output)


def _check_pixels(call: Call) -> Refusal | None:
    sizes = call.tensor("self").shape
    if len(sizes) > 6 or not all(type(size) is int for size in sizes):
        return no("its sizes are dynamic", "they were static")
    return None


def _pixel_samples(sizes: tuple[int, ...]) -> Any:
    def samples() -> Iterator[tuple[Any, ...]]:
        yield torch.randn(sizes), 2

    return samples


def _view_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 6), [3, 4]
    yield torch.randn(2, 3, 4), [-1]
    yield torch.randn(()), [1, 1]


def _whole_samples() -> Iterator[tuple[Any, ...]]:
    yield (torch.randn(2, 1, 3, 1),)
    yield (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),)


def _transpose_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 3, 4), 0, -1
    yield torch.randn(17, 33), 0, 1


def _matrix_samples() -> Iterator[tuple[Any, ...]]:
    yield (torch.randn(17, 33),)
    yield (torch.randn(5),)


def _split_samples() -> Iterator[tuple[Any, ...]]:
    yield torch.randn(2, 7, 3), 3, 1
    yield torch.randn(6, 4), 2


_VIEWS = (
    aten.view_copy.default,
    aten._reshape_copy.default,
    aten.unsqueeze_copy.default,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
)
_COPIES = (
    aten.alias_copy.default,
    aten.clone.default,
    aten.detach_copy.default,
    aten.lift_fresh_copy.default,
)

ENTRIES = [
    Entry(
        _VIEWS,
        _reshape,
        _check_reshape,
        dtypes=ANY,
        samples={aten._reshape_copy.default: _view_samples, aten.squeeze_copy.default: _whole_samples},
    ),
    Entry((*_COPIES, CLONE), _copy, dtypes=ANY, samples=dict.fromkeys(_COPIES, _whole_samples)),
    Entry((aten.permute_copy.default,), _permute, dtypes=ANY),
    Entry(
        (aten.transpose_copy.int, aten.t_copy.default),
        _transpose,
        dtypes=ANY,
        samples={aten.transpose_copy.int: _transpose_samples, aten.t_copy.default: _matrix_samples},
    ),
    Entry((aten.expand_copy.default,), _expand, _check_expand, dtypes=ANY),
    Entry((aten.repeat.default,), _repeat, _check_repeat, dtypes=ANY),
    Entry((aten.slice_copy.Tensor,), _slice, _check_slice, dtypes=ANY),
    Entry((aten.select_copy.int,), _select, _check_select, dtypes=ANY),
    Entry(
        (aten.split_copy.Tensor, aten.split_with_sizes_copy.default),
        _split,
        _check_split,
        dtypes=ANY,
        samples={aten.split_copy.Tensor: _split_samples},
    ),
    Entry((aten.unbind_copy.int,), _unbind, dtypes=ANY),
    Entry(
        (aten.pixel_shuffle.default,),
        _pixel_shuffle,
        _check_pixels,
        dtypes=ANY,
        samples=_pixel_samples((2, 12, 3, 5)),
    ),
    Entry(
        (aten.pixel_unshuffle.default,),
        _pixel_unshuffle,
        _check_pixels,
        dtypes=ANY,
        samples=_pixel_samples((2, 3, 6, 4)),
    ),
]
