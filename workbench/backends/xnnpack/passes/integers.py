"""`dequantize -> operator -> quantize` becomes the operator on integers, where the library has it.

Weights and biases of layers follow: a bias becomes integers of 32 bits whose scale is that of input times
weight. What stays an operator on numbers between conversions gets a reason (`Graph.unfused`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from workbench.backends.xnnpack.configs.convolution import FILTER_AXIS
from workbench.backends.xnnpack.graph import Call, Graph, Value
from workbench.backends.xnnpack.passes.dequantize_late import MOVES, integers_of, is_quantization
from workbench.backends.xnnpack.quantization import (
    PerChannel,
    PerGroup,
    PerRow,
    PerTensor,
    is_usable,
    rounded,
)

__all__ = ["LAYERS", "per_channel", "run"]

LAYERS = {"FullyConnected": 0, **FILTER_AXIS}
"""Calls with a weight, and the dimension of its outputs."""

_No = tuple[str, str]  # why a call can't compute on integers, and what would let it
_SUMS = ("Add", "Subtract")
# Functions of one number that the library computes by a table of 256 results.
_TABLES = frozenset(
    {
        "Abs", "Ceiling", "Clamp", "Cos", "ELU", "Exp", "Floor", "Gelu", "Hardswish", "Log",
        "Negate", "ReciprocalSquareRoot", "Sigmoid", "Sin", "Square", "SquareRoot", "Tanh",
    }
)  # fmt: skip
_REQUANTIZATION = 2.0**-32, 256.0
_SUM = 2.0**-10, 2.0**8
_PRODUCT = 2.0**-16, 2.0**8
_BATCH = 2.0**-32, 255.0
_LEAKY = 2.0**-8, 2.0**7


def run(graph: Graph) -> int:
    """Fuse in one walk; gives how many calls compute on integers then."""
    work = _Work(graph)
    for call in graph.calls:
        work.look_at(call)
    graph.calls = [
        c for call in graph.calls if call not in work.gone for c in (*work.before.get(call, ()), call)
    ]
    graph.remove_unread()
    return work.count


class _Work:
    """What one walk found.

    Attributes:
        count: Calls that compute on integers now.
        gone: Conversions that became part of a call.
        before: Conversions that have to stand before a call.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers = graph.readers()
        self.count = 0
        self.gone: set[Call] = set()
        self.before: dict[Call, list[Call]] = {}

    def look_at(self, call: Call) -> None:
        """Fuse one call with the conversions around it, or say why it stays as it is."""
        if call.kind == "Convert" or call.output.quantization is not None:
            return
        sources = [value if value.data is not None else integers_of(value) for value in call.given]
        behind = self.graph.only_reader(call.output, self.readers)
        quantizes = is_quantization(behind)
        computed = [s for s, v in zip(sources, call.given, strict=True) if v.data is None]
        if call.kind in LAYERS and computed[0] is not None and isinstance(computed[0].quantization, PerRow):
            self._rows(call, computed[0])
            return
        layer = call.kind in LAYERS and _has_integers(call.inputs[1])
        between = quantizes and any(source is not None for source in computed) and call.kind not in MOVES
        if not layer and not between:
            return  # An operator on floats that happens to stand beside integers.
        answer = self._answer(call, sources, behind if quantizes else None)
        if answer is not None:
            self.graph.unfused.append((call, *answer))
            return
        assert behind is not None
        for value in call.given:
            if value.data is None and value.producer is not None:
                call.absorb(value.producer)
        call.absorb(behind)
        given, numbers = iter(sources), call.inputs
        call.inputs = [None if value is None else next(given) for value in numbers]
        call.output = behind.output
        call.output.producer = call
        self.gone.add(behind)
        self._finish(call, numbers)
        self.count += 1

    def _answer(self, call: Call, sources: list[Value | None], behind: Call | None) -> _No | None:
        """Why a call can't compute on integers."""
        rule = _RULES.get(call.kind)
        if rule is None:
            return f"XNNPACK has no {call.kind} on integers", "it were left on floats, or another operator"
        if behind is None:
            several = len(self.readers.get(call.output, ())) > 1 or call.output in self.graph.outputs
            also = ", or more than that reads it" if several else ""
            return f"its result is not quantized{also}", "one quantize_per_tensor alone read it"
        if any(source is None for source in sources):
            return "not all of its operands are quantized", "each operand came from dequantize_per_tensor"
        found = [source for source in sources if source is not None]
        quantization = behind.output.quantization
        assert isinstance(quantization, PerTensor)
        return rule(call, found, quantization)

    def _finish(self, call: Call, numbers: list[Value | None]) -> None:
        """Bring constants to integers, and operands to the scales that the call needs."""
        if call.kind in LAYERS:
            _quantize_bias(call)
            return
        for index, value in enumerate(call.inputs):
            if value is not None and value.data is not None and value.quantization is None:
                call.inputs[index] = _single(value)
        if call.kind.startswith("Concatenate"):
            pairs = zip(call.inputs, numbers, strict=True)
            call.inputs = [self._converted(value, before, call) for value, before in pairs]

    def _converted(self, value: Value | None, numbers: Value | None, call: Call) -> Value | None:
        """Integers with the scale of a call's result."""
        wanted = call.output.quantization
        if value is None or value.quantization == wanted:
            return value
        assert isinstance(wanted, PerTensor)
        if value.data is not None:
            assert isinstance(value.quantization, PerTensor)
            exact = (value.data.double() - value.quantization.zero_point) * value.quantization.scale
            integers = rounded(exact, wanted.scale, wanted.zero_point, torch.int8)
            return Value(value.shape, torch.int8, integers, quantization=wanted)
        made = Value(value.shape, torch.int8, None, value.free, None, wanted)
        self.before.setdefault(call, []).append(Call("Convert", [numbers], made, origins=call.origins))
        return made

    def _rows(self, call: Call, rows: Value) -> None:
        """Let a layer read integers that are quantized at run time."""
        filter_ = call.inputs[1]
        assert filter_ is not None
        first = call.inputs[0]
        assert first is not None and first.producer is not None
        call.absorb(first.producer)
        call.inputs[0] = rows
        call.inputs[1] = per_channel(filter_, LAYERS[call.kind], keep_bits=call.kind == "FullyConnected")
        self.count += 1


def _has_integers(value: Value | None) -> bool:
    return value is not None and value.quantization is not None


def per_channel(filter_: Value, axis: int, *, keep_bits: bool) -> Value:
    """A quantized weight with a scale for each output.

    Args:
        filter_: The weight.
        axis: The dimension of its outputs.
        keep_bits: Whether it may stay at 4 bits; rows of an odd length never do: XNNPACK gets them wrong.
    """
    keep_bits = keep_bits and filter_.shape[-1] % 2 == 0
    quantization = filter_.quantization
    if isinstance(quantization, PerTensor):
        scales = torch.full((filter_.shape[axis],), quantization.scale)
        quantization = PerChannel(scales, axis)
    elif isinstance(quantization, PerChannel) and not keep_bits:
        quantization = PerChannel(quantization.scales, quantization.axis)
    return Value(filter_.shape, filter_.dtype, filter_.data, quantization=quantization)


def _single(value: Value) -> Value:
    """A constant of one number as an integer; the scale is such that it is exact."""
    assert value.data is not None
    number = float(value.data)
    scale = abs(number) / 127 if is_usable(abs(number) / 127) else 1.0
    integer = torch.full(value.shape, 127 if number > 0 else -127 if number < 0 else 0, dtype=torch.int8)
    exact = torch.tensor(scale, dtype=torch.float32).item()
    return Value(value.shape, torch.int8, integer, quantization=PerTensor(exact))


def _quantize_bias(call: Call) -> None:
    source, filter_, bias = call.inputs
    assert source is not None and filter_ is not None
    assert isinstance(source.quantization, PerTensor)
    if isinstance(filter_.quantization, PerChannel):
        filter_ = call.inputs[1] = per_channel(filter_, LAYERS[call.kind], keep_bits=False)
    if bias is None or bias.data is None:
        return
    quantization = filter_.quantization
    if isinstance(quantization, PerTensor):
        scale = torch.tensor(quantization.scale) * source.quantization.scale
        integers = rounded(bias.data, scale.double(), 0, torch.int32)
        made: PerTensor | PerChannel = PerTensor(scale.item())
    else:
        assert isinstance(quantization, PerChannel)
        scales = quantization.scales * source.quantization.scale
        integers = rounded(bias.data, scales.double(), 0, torch.int32)
        made = PerChannel(scales, 0)
    call.inputs[2] = Value(bias.shape, torch.int32, integers, quantization=made)


# ---- what the library demands ------------------------------------------------------------------------------


def _within(ratio: float, limits: tuple[float, float], what: str) -> _No | None:
    low, high = limits
    if low <= ratio < high:
        return None
    return f"{what} is {ratio:g}", f"it were at least {low:g} and below {high:g}"


def _scales(sources: list[Value]) -> list[float]:
    """The scales of operands; of a constant of one number the one that it will get."""
    found = []
    for value in sources:
        quantization = (value if value.quantization is not None else _single(value)).quantization
        assert isinstance(quantization, PerTensor)
        found.append(quantization.scale)
    return found


def _operands(sources: list[Value]) -> _No | None:
    for value in sources:
        if isinstance(value.quantization, PerTensor):
            continue
        if value.data is None or value.numel != 1 or not bool(value.data.isfinite().all()):
            return _CONSTANT
    return None


def _layer(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    source, filter_, bias = sources[0], sources[1], sources[2] if len(sources) > 2 else None
    if not isinstance(source.quantization, PerTensor):
        return "its input is not quantized with one scale", "dequantize_per_tensor made it"
    if filter_.data is None or (bias is not None and bias.data is None):
        return "its weight or bias is computed at run time", "both were constants"
    quantization = filter_.quantization
    if isinstance(quantization, PerGroup):
        return "its weight is quantized in groups", "its input were quantized at run time"
    if quantization is None:
        return "its weight is not quantized as XNNPACK has it", _WEIGHT
    if isinstance(quantization, PerTensor) and quantization.zero_point != 0:
        return f"its weight has the zero point {quantization.zero_point}", _WEIGHT
    if isinstance(quantization, PerChannel) and quantization.axis != LAYERS[call.kind]:
        return "its weight has scales along another dimension than its outputs'", _WEIGHT
    assert isinstance(quantization, PerTensor | PerChannel)
    scales = (
        quantization.scales if isinstance(quantization, PerChannel) else torch.tensor([quantization.scale])
    )
    ratios = scales * source.quantization.scale / out.scale
    answers = (_within(float(ratio), _REQUANTIZATION, _RATIO) for ratio in (ratios.min(), ratios.max()))
    return next((answer for answer in answers if answer is not None), None)


def _sum(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    del call
    answer = _operands(sources)
    if answer is not None:
        return answer
    answers = (_within(scale / out.scale, _SUM, _RATIO) for scale in _scales(sources))
    return next((answer for answer in answers if answer is not None), None)


def _product(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    del call
    answer = _operands(sources)
    if answer is not None:
        return answer
    first, second = _scales(sources)
    return _within(first * second / out.scale, _PRODUCT, _RATIO)


def _plain(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    del call, out
    return _operands(sources)


def _leaky(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    answer = _operands(sources)
    if answer is not None:
        return answer
    (scale,) = _scales(sources)
    ratios = scale / out.scale, abs(call.fields["negative_slope"]) * scale / out.scale
    return _within(ratios[0], _LEAKY, _RATIO) or _within(max(ratios), _LEAKY, f"{_RATIO}, times the slope,")


def _joined(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    del call, out
    for value in sources:
        if not isinstance(value.quantization, PerTensor):
            return _CONSTANT
    return None


def _batch(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    del call
    first, second = sources
    if not isinstance(first.quantization, PerTensor) or not isinstance(second.quantization, PerTensor):
        return "not all of its operands are quantized with one scale", "both came from dequantize_per_tensor"
    if second.quantization.zero_point != 0:
        return (
            f"its second operand has the zero point {second.quantization.zero_point}",
            "it were quantized symmetrically, with the zero point 0",
        )
    ratio = first.quantization.scale * second.quantization.scale / out.scale
    return _within(ratio, _BATCH, _RATIO)


def _same(call: Call, sources: list[Value], out: PerTensor) -> _No | None:
    del call
    if all(value.quantization == out for value in sources):
        return None
    return "input and result are quantized differently", "scale and zero point of both were the same"


_RATIO = "the ratio of its operands' scales to that of its result"
_WEIGHT = "its weight were int8 with the zero point 0, and one scale or one per output channel"
_CONSTANT = "a constant operand is not quantized with one scale", "it were int8, or a single number"
_Rule = Callable[[Call, list[Value], PerTensor], "_No | None"]
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(LAYERS, _layer),
    **dict.fromkeys(_SUMS, _sum),
    "Multiply": _product,
    **dict.fromkeys(_TABLES, _plain),
    "LeakyReLU": _leaky,
    "GlobalAvgPooling2d": _plain,
    "BatchMatrixMultiply": _batch,
    "StaticResizeBilinear2D": _same,
    **{f"Concatenate{count}": _joined for count in range(2, 6)},
}
