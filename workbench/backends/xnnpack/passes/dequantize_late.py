"""What only moves elements moves integers: dequantization goes behind it, and meets quantization there.

`dequantize -> reshape` gives the same as `reshape -> dequantize` and moves four times as many bytes. Where a
dequantization meets a quantization and they agree, nothing is left of both. If they do not, both stay: the
library's conversion from integers to integers knows the ratio of their scales to 8 bits only.
"""

from __future__ import annotations

import torch

from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.quantization import PerTensor

__all__ = ["MOVES", "integers_of", "is_quantization", "run"]

MOVES = frozenset(
    {
        "Concatenate2",
        "Concatenate3",
        "Concatenate4",
        "Concatenate5",
        "MaxPooling2d",
        "StaticConstantPad",
        "StaticReshape",
        "StaticSlice",
        "StaticTranspose",
    }
)
"""Calls that move elements, and compute nothing."""


def integers_of(value: Value) -> Value | None:
    """The integers that a conversion made numbers of; None for other values."""
    call = value.producer
    if call is None or call.kind != "Convert" or value.quantization is not None:
        return None
    (source,) = call.given
    return source if source.quantization is not None else None


def is_quantization(call: Call | None) -> bool:
    """Whether a call makes integers of numbers, with a scale that is known."""
    if call is None or call.kind != "Convert" or not isinstance(call.output.quantization, PerTensor):
        return False
    return call.given[0].quantization is None


def run(graph: Graph) -> int:
    """Move, then merge, in one walk; gives how many conversions moved or went."""
    readers = graph.readers()
    count = 0
    calls: list[Call] = []
    for call in graph.calls:
        calls.append(call)
        moved = _moved(call)
        if moved is not None:
            calls.append(moved)
            count += 1
        elif is_quantization(call):
            count += _merge(graph, call, readers)
    graph.calls = calls
    graph.remove_unread()
    return count


def _moved(call: Call) -> Call | None:
    """Let a call work on integers; gives the conversion behind it."""
    if call.kind not in MOVES or call.output.quantization is not None:
        return None
    sources = [integers_of(value) for value in call.given]
    first = sources[0]
    if first is None or not isinstance(first.quantization, PerTensor):
        return None
    if any(item is None or item.quantization != first.quantization for item in sources):
        return None
    if call.kind == "StaticConstantPad" and not _exact(call.fields["padding_value"], first.quantization):
        return None
    numbers = call.output
    for value in call.given:
        assert value.producer is not None
        call.absorb(value.producer)
    call.inputs = list(sources)
    call.output = Value(numbers.shape, torch.int8, None, numbers.free, call, first.quantization)
    return Call("Convert", [call.output], numbers, origins=call.origins)


def _exact(number: float, quantization: PerTensor) -> bool:
    """Whether a number is one that integers can stand for."""
    integer = number / quantization.scale + quantization.zero_point
    return integer == round(integer) and -128 <= integer <= 127


def _merge(graph: Graph, call: Call, readers: dict[Value, list[Call]]) -> int:
    """Let who reads integers that were numbers in between read the integers before."""
    source = integers_of(call.given[0])
    if source is None or source.quantization != call.output.quantization:
        return 0
    before = call.given[0].producer
    assert before is not None
    call.absorb(before)
    readers[call.given[0]].remove(call)
    readers.setdefault(source, []).append(call)
    call.kind, call.inputs = "Copy", [source]
    if call.output not in graph.outputs:
        graph.replace(call.output, source, readers)
    return 1
