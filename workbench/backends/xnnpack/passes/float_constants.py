"""Constants that stayed integers although their call works on numbers become numbers.

A fully connected layer reads integers with a scale per channel beside numbers; its weight stays as small as
it is stored. Its bias becomes a sum of its own: the library scales it as if it were an integer.
"""

from __future__ import annotations

from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.passes.integers import per_channel
from workbench.backends.xnnpack.quantization import PerChannel, PerTensor, dequantized

__all__ = ["run"]


def run(graph: Graph) -> int:
    """Replace in one walk; gives how many operands changed."""
    made: dict[tuple[Value, bool], Value] = {}
    count = 0
    for call in graph.calls:
        for index, value in enumerate(call.inputs):
            if value is None or value.data is None or value.quantization is None or _stays(call, index):
                continue
            key = value, _is_weight(call, index)
            if key not in made:
                made[key] = _replacement(value, weight=key[1])
            call.inputs[index] = made[key]
            count += 1
    graph.calls = [part for call in graph.calls for part in _without_bias(call)]
    return count


def _without_bias(call: Call) -> tuple[Call, ...]:
    """A fully connected layer of numbers with a weight of integers, and the sum with its bias behind it."""
    if call.kind != "FullyConnected" or call.inputs[2] is None:
        return (call,)
    value, filter_, bias = call.inputs
    if value is None or value.quantization is not None or filter_ is None or filter_.quantization is None:
        return (call,)
    result, call.inputs[2] = call.output, None
    call.output = result.like()
    call.output.producer = call
    added = Call("Add", [call.output, bias], result, {}, call.bounds, call.origins)
    call.bounds = None
    return call, added


def _replacement(value: Value, *, weight: bool) -> Value:
    quantization = value.quantization
    assert value.data is not None and quantization is not None
    if weight and isinstance(quantization, PerTensor) and quantization.zero_point == 0:
        return per_channel(value, 0, keep_bits=False)
    numbers = dequantized(value.data, quantization)
    return Value(value.shape, numbers.dtype, numbers)


def _is_weight(call: Call, index: int) -> bool:
    return call.kind == "FullyConnected" and index == 1


def _stays(call: Call, index: int) -> bool:
    """Whether an operand is read as integers."""
    first, value = call.inputs[0], call.inputs[index]
    computed = first is not None and first.data is None and first.quantization is not None
    if computed or call.output.quantization is not None:
        return True
    assert value is not None
    return _is_weight(call, index) and isinstance(value.quantization, PerChannel)
