"""Constants that stayed integers although their call works on numbers become numbers.

A fully connected layer reads integers with a scale per channel beside numbers; its weight stays as small as
it is stored.
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
    return count


def _replacement(value: Value, *, weight: bool) -> Value:
    quantization = value.quantization
    assert value.data is not None and quantization is not None
    if weight and isinstance(quantization, PerTensor) and quantization.zero_point == 0:
        return per_channel(value, 0, keep_bits=True)
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
