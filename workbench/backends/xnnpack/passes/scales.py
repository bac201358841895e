"""Products and sums with constants behind a layer with weights go into the weights.

`(w x + b) * s + t = (s w) x + (s b + t)`, with `s` and `t` per output channel: a batch norm behind a
convolution or a linear layer, a layer scale, the scale of attention's queries. A single factor also goes
through transposes and reshapes in between. The products are rounded once more than without.
"""

from __future__ import annotations

import torch

from workbench.backends.xnnpack.graph import Call, Graph, Value

__all__ = ["run"]

_LAYERS = {"FullyConnected": -1, "Conv2d": 1, "DepthwiseConv2d": 1, "ConvTranspose2d": 1}  # axis of channels
_FILTER_AXIS = {"FullyConnected": 0, "Conv2d": 0, "DepthwiseConv2d": 3, "ConvTranspose2d": 0}
_MOVES = ("StaticTranspose", "StaticReshape")


def run(graph: Graph) -> int:
    """Fold in one walk; gives how many calls went. Shapes are in PyTorch's order."""
    readers = graph.readers()
    results = set(graph.outputs)
    gone = set()
    for call in graph.calls:
        found = _operands(call)
        if found is None:
            continue
        value, factor = found
        layer = _layer_above(value, factor, call, readers, results)
        if layer is None:
            continue
        axis = _LAYERS[layer.kind]
        vector = _per_channel(factor, layer.output.shape, axis)
        if vector is None or (call.kind in ("Add", "Subtract") and layer.output is not value):
            continue
        _fold(layer, call.kind, vector)
        layer.absorb(call)
        above = value.producer
        assert above is not None
        above.output = call.output
        call.output.producer = above
        # The value has a new name; its shape is the same, and nobody else read it.
        readers[call.output] = readers.get(call.output, [])
        gone.add(call)
    graph.calls = [call for call in graph.calls if call not in gone]
    return len(gone)


def _operands(call: Call) -> tuple[Value, torch.Tensor] | None:
    """The computed operand and the constant one of a call that can be folded."""
    if call.kind not in ("Multiply", "Divide", "Add", "Subtract") or call.bounds is not None:
        return None
    first, second = call.given
    if first.quantization is not None or second.quantization is not None:
        return None
    if second.data is not None and first.data is None:
        value, constant = first, second.data
    elif first.data is not None and second.data is None and call.kind in ("Multiply", "Add"):
        value, constant = second, first.data
    else:
        return None
    return (value, constant) if value.shape == call.output.shape else None


def _layer_above(
    value: Value, factor: torch.Tensor, reader: Call, readers: dict[Value, list[Call]], results: set[Value]
) -> Call | None:
    """The layer that computes a value which only one call reads; behind moves only for a single factor."""
    while True:
        producer = value.producer
        if producer is None or value in results or readers.get(value) != [reader]:
            return None
        if producer.kind in _LAYERS:
            constant = all(item.data is not None for item in producer.given[1:])
            quantized = any(item.quantization is not None for item in producer.given)
            return producer if constant and not quantized and producer.bounds is None else None
        if producer.kind not in _MOVES or factor.numel() != 1 or reader.kind in ("Add", "Subtract"):
            return None
        (value,) = producer.given
        reader = producer


def _per_channel(factor: torch.Tensor, shape: tuple[int, ...], axis: int) -> torch.Tensor | None:
    """A constant that broadcasts to a shape as one number per channel; None where it is more than that."""
    channels = shape[axis]
    if factor.numel() == 1:
        return factor.reshape(1).expand(channels)
    spread = [1] * (len(shape) - factor.dim()) + list(factor.shape)
    if factor.numel() != channels or spread[axis] != channels:
        return None
    return factor.reshape(-1)


def _fold(layer: Call, kind: str, vector: torch.Tensor) -> None:
    filter_, bias = layer.inputs[1], layer.inputs[2]
    assert filter_ is not None and filter_.data is not None
    offset = bias.data if bias is not None else None
    if kind in ("Add", "Subtract"):
        moved = vector if kind == "Add" else -vector
        offset = moved.contiguous() if offset is None else (offset.double() + moved.double()).to(offset.dtype)
    else:
        factor = vector.double() if kind == "Multiply" else vector.double().reciprocal()
        spread = [1] * filter_.rank
        spread[_FILTER_AXIS[layer.kind]] = -1
        if torch.all(factor.log2() == factor.log2().round()):
            scaled = filter_.data * factor.to(filter_.dtype).reshape(spread)  # exact
        else:
            scaled = (filter_.data.double() * factor.reshape(spread)).to(filter_.dtype)
        layer.inputs[1] = Value(filter_.shape, filter_.dtype, scaled)
        if offset is not None:
            offset = (offset.double() * factor).to(offset.dtype)
    if offset is not None:
        layer.inputs[2] = Value(offset.shape, offset.dtype, offset)
