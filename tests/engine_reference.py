"""What a graph of the CPU backend means, said in PyTorch: the reference that emission and engine are held to.

It reads the graph of a blob and computes it node by node, in float32 (float16 values are rounded where they
are stored), for sizes that may be smaller than the graph's bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.backends.cpu.graph import (
    INPUT,
    NO_VALUE,
    Attributes,
    Fn,
    Graph,
    Node,
    Op,
    PadMode,
    QuantizationKind,
    ReduceFn,
    Step,
    UpsampleMode,
    Value,
    ValueKind,
)

__all__ = ["run_graph"]


def run_graph(graph: Graph, named: Mapping[str, bytes], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Compute a graph.

    Args:
        graph: The graph.
        named: Bytes of its constants by key.
        inputs: The delegate's arguments, in the order of memory.

    Returns:
        The outputs, in the order of memory.
    """
    values: dict[int, Tensor] = {}
    for index, value in enumerate(graph.values):
        if value.kind == ValueKind.INPUT:
            given = inputs[value.external]
            assert given.dtype == value.dtype, (index, given.dtype, value.dtype)
            values[index] = given
        elif value.kind == ValueKind.CONSTANT:
            data = named[value.key] if value.key is not None else value.data
            assert data is not None
            count = math.prod(value.sizes)
            flat = (
                torch.frombuffer(bytearray(data), dtype=value.dtype, count=count) if count else torch.empty(0)
            )
            values[index] = flat.to(value.dtype).reshape(value.sizes)
    for node in graph.nodes:
        given = [None if i == NO_VALUE else values[i] for i in node.inputs]
        results = _compute(node, given, graph)
        for index, result in zip(node.outputs, results, strict=False):
            if index == NO_VALUE:
                continue
            value = graph.values[index]
            found = result.to(value.dtype) if result.dtype.is_floating_point else result
            assert found.dtype == value.dtype, (node, found.dtype, value.dtype)
            _check_sizes(node, tuple(found.shape), value.sizes, value.dynamic)
            values[index] = found.contiguous()
    outputs = [(v.external, values[i]) for i, v in enumerate(graph.values) if v.kind == ValueKind.OUTPUT]
    return [value for _, value in sorted(outputs, key=lambda item: item[0])]


def _check_sizes(node: Node, found: tuple[int, ...], sizes: tuple[int, ...], dynamic: int) -> None:
    assert len(found) == len(sizes), (node, found, sizes)
    for d, (size, bound) in enumerate(zip(found, sizes, strict=True)):
        assert size <= bound if dynamic >> d & 1 else size == bound, (node, found, sizes, dynamic)


_UNARY: dict[int, Callable[..., Tensor]] = {
    Fn.Identity: lambda x: x,
    Fn.Abs: torch.abs,
    Fn.Neg: torch.neg,
    Fn.Ceil: torch.ceil,
    Fn.Floor: torch.floor,
    Fn.Round: torch.round,
    Fn.Trunc: torch.trunc,
    Fn.Sign: torch.sign,
    Fn.Square: torch.square,
    Fn.Sqrt: torch.sqrt,
    Fn.Rsqrt: torch.rsqrt,
    Fn.Reciprocal: torch.reciprocal,
    Fn.Exp: torch.exp,
    Fn.Expm1: torch.expm1,
    Fn.Log: torch.log,
    Fn.Log1p: torch.log1p,
    Fn.Sin: torch.sin,
    Fn.Cos: torch.cos,
    Fn.Tan: torch.tan,
    Fn.Asin: torch.asin,
    Fn.Acos: torch.acos,
    Fn.Atan: torch.atan,
    Fn.Sinh: torch.sinh,
    Fn.Cosh: torch.cosh,
    Fn.Tanh: torch.tanh,
    Fn.Erf: torch.erf,
    Fn.Sigmoid: torch.sigmoid,
    Fn.Silu: F.silu,
    Fn.HardSigmoid: F.hardsigmoid,
    Fn.HardSwish: F.hardswish,
    Fn.Gelu: F.gelu,
    Fn.GeluTanh: lambda x: F.gelu(x, approximate="tanh"),
    Fn.Mish: F.mish,
    Fn.LogicalNot: torch.logical_not,
    Fn.IsNan: torch.isnan,
    Fn.Add: torch.add,
    Fn.Sub: torch.sub,
    Fn.Mul: torch.mul,
    Fn.Div: torch.div,
    Fn.Maximum: torch.maximum,
    Fn.Minimum: torch.minimum,
    Fn.Pow: torch.pow,
    Fn.SquaredDifference: lambda x, y: (x - y) ** 2,
    Fn.Prelu: lambda x, y: torch.where(x >= 0, x, x * y),
    Fn.Copysign: torch.copysign,
    Fn.Atan2: torch.atan2,
    Fn.Fmod: torch.fmod,
    Fn.Remainder: torch.remainder,
    Fn.Eq: torch.eq,
    Fn.Ne: torch.ne,
    Fn.Lt: torch.lt,
    Fn.Le: torch.le,
    Fn.Gt: torch.gt,
    Fn.Ge: torch.ge,
    Fn.LogicalAnd: torch.logical_and,
    Fn.LogicalOr: torch.logical_or,
    Fn.LogicalXor: torch.logical_xor,
    Fn.Where: torch.where,
}
_WITH_NUMBERS: dict[int, Callable[..., Tensor]] = {
    Fn.Softplus: lambda a, b, x: F.softplus(x, a, b),
    Fn.Elu: lambda a, b, x: F.elu(x, a),
    Fn.LeakyRelu: lambda a, b, x: F.leaky_relu(x, a),
    Fn.Clamp: lambda a, b, x: torch.clamp(x, a, b),
    Fn.PowScalar: lambda a, b, x: torch.pow(x, a),
    Fn.AddScalar: lambda a, b, x: x + a,
    Fn.MulScalar: lambda a, b, x: x * a,
    Fn.ReverseSubScalar: lambda a, b, x: a - x,
    Fn.ReverseDivScalar: lambda a, b, x: a / x,
    Fn.AddScaled: lambda a, b, x, y: x + a * y,
}


def _step(step: Step, registers: list[Tensor], inputs: Sequence[Tensor]) -> Tensor:
    unary = step.fn in _UNARY
    function = _UNARY[step.fn] if unary else _WITH_NUMBERS[step.fn]
    arity = {Fn.Where: 3}.get(Fn(step.fn), 2 if step.fn >= Fn.Add else 1)
    operands = [inputs[i - INPUT] if i >= INPUT else registers[i] for i in (*step.operands, 0, 0, 0)[:arity]]
    return function(*operands) if unary else function(step.a, step.b, *operands)


def _pointwise(node: Node, given: Sequence[Any]) -> Tensor:
    registers = [given[0]]
    inputs = [x.float() if x.dtype == torch.float16 else x for x in given]
    for step in node.steps:
        registers.append(_step(step, registers, inputs))
    return registers[-1]


def _compute(node: Node, given: Sequence[Any], graph: Graph) -> Sequence[Tensor]:
    if node.op == Op.Pointwise:
        return [_pointwise(node, given)]
    if node.op in (Op.Lstm, Op.Gru):
        return _recurrent(node.op, node.attributes, given)
    if node.op == Op.Convert:
        return [given[0].to(graph.values[node.outputs[0]].dtype)]
    if node.op == Op.Quantize:
        return [_quantized(given[0], graph.values[node.outputs[0]])]
    if node.op == Op.Dequantize:
        return [_numbers(given[0], graph.values[node.inputs[0]])]
    wide = [x.float() if x is not None and x.dtype == torch.float16 else x for x in given]
    return [_OPS[node.op](node.attributes, *wide)]


def _quantized(x: Tensor, value: Value) -> Tensor:
    q = value.quantization
    assert q is not None and q.kind == QuantizationKind.PER_TENSOR, "rows are held to eager PyTorch"
    low, high = torch.iinfo(value.dtype).min, torch.iinfo(value.dtype).max
    return (torch.round(x.float() * (1 / q.scale)) + q.zero_point).clamp(low, high).to(value.dtype)


def _numbers(x: Tensor, value: Value) -> Tensor:
    q = value.quantization
    assert q is not None and q.bits == 8, "four bits are held to eager PyTorch"
    if q.kind == QuantizationKind.PER_TENSOR:
        return (x.float() - q.zero_point) * q.scale
    assert q.kind == QuantizationKind.PER_CHANNEL and q.scales is not None
    sizes = [-1 if d == q.axis else 1 for d in range(x.dim())]
    zeros = torch.tensor(q.zero_points or [q.zero_point] * len(q.scales))
    return (x.float() - zeros.reshape(sizes)) * torch.tensor(q.scales).reshape(sizes)


def _matmul(a: Attributes, x: Tensor, y: Tensor, bias: Tensor | None) -> Tensor:
    product = x @ (y.mT if a.transpose_b else y)
    return product if bias is None else product + bias


def _strided_weight(a: Attributes, weight: Tensor, cout: int) -> Tensor:
    order, window = a.weight_order, a.window
    assert order is not None and window is not None
    h, w = window.kernel
    cin = weight.numel() // (cout * h * w)
    return torch.as_strided(weight, (cout, cin, h, w), (order.cout, order.cin, order.h, order.w))


def _cout(a: Attributes, weight: Tensor, cin: int) -> int:
    assert a.window is not None
    return weight.numel() // (a.window.kernel[0] * a.window.kernel[1] * (cin // a.groups))


def _convolution(a: Attributes, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    assert a.window is not None
    w = a.window
    image = F.pad(x.permute(0, 3, 1, 2), (w.left, w.right, w.top, w.bottom))
    filters = _strided_weight(a, weight, _cout(a, weight, x.shape[3]))
    return F.conv2d(image, filters, bias, w.stride, 0, w.dilation, a.groups).permute(0, 2, 3, 1)


def _transposed_convolution(a: Attributes, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    assert a.window is not None
    w = a.window
    cout = _cout(a, weight, x.shape[3])
    filters = _strided_weight(a, weight, cout)  # (out, in of a group, h, w)
    split = filters.reshape(a.groups, cout // a.groups, *filters.shape[1:]).transpose(1, 2)
    made = F.conv_transpose2d(
        x.permute(0, 3, 1, 2),
        split.reshape(x.shape[3], cout // a.groups, *w.kernel),
        bias,
        w.stride,
        (w.top, w.left),
        (a.output_padding_h, a.output_padding_w),
        a.groups,
        w.dilation,
    )
    return made.permute(0, 2, 3, 1)


def _max_pool(a: Attributes, x: Tensor) -> Tensor:
    assert a.window is not None
    w = a.window
    made = F.max_pool2d(x.permute(0, 3, 1, 2), w.kernel, w.stride, (w.top, w.left), w.dilation, w.ceil_mode)
    return made.permute(0, 2, 3, 1)


def _avg_pool(a: Attributes, x: Tensor) -> Tensor:
    assert a.window is not None
    w = a.window
    made = F.avg_pool2d(
        x.permute(0, 3, 1, 2),
        w.kernel,
        w.stride,
        (w.top, w.left),
        w.ceil_mode,
        w.count_include_pad,
        w.divisor or None,
    )
    return made.permute(0, 2, 3, 1)


def _reduce(a: Attributes, x: Tensor) -> Tensor:
    dims = [d for d in range(x.dim()) if a.mask >> d & 1]
    if a.reduce == ReduceFn.PROD:
        for d in reversed(dims):
            x = x.prod(d, keepdim=a.keep)
        return x
    if a.reduce == ReduceFn.VARIANCE:
        return x.var(dims, correction=a.correction, keepdim=a.keep)
    functions: dict[int, Callable[..., Tensor]] = {
        ReduceFn.SUM: torch.sum,
        ReduceFn.MEAN: torch.mean,
        ReduceFn.MAX: torch.amax,
        ReduceFn.MIN: torch.amin,
        ReduceFn.ANY: torch.any,
        ReduceFn.ALL: torch.all,
    }
    return functions[a.reduce](x, dims, keepdim=a.keep)


def _arg_reduce(a: Attributes, x: Tensor) -> Tensor:
    return (torch.argmax if a.largest else torch.argmin)(x, a.axis, keepdim=a.keep)


def _group_norm(a: Attributes, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    return F.group_norm(x.movedim(-1, 1), a.groups, weight, bias, a.eps).movedim(1, -1)


def _attention(a: Attributes, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    shared = q.dim() > 3 and q.shape[-3] != k.shape[-3]
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=a.causal, scale=a.scale, enable_gqa=shared)


def _recurrent(op: int, a: Attributes, given: Sequence[Any]) -> Sequence[Tensor]:
    gates = 2 if op == Op.Lstm else 1
    x, states, weights = given[0], given[1 : 1 + gates], [w for w in given[1 + gates :] if w is not None]
    biases = len(weights) == 4 * a.layers * (1 + a.bidirectional)
    options = (biases, a.layers, 0.0, False, a.bidirectional, a.batch_first)
    if op == Op.Lstm:
        return torch._VF.lstm(x, tuple(states), weights, *options)
    return torch._VF.gru(x, states[0], weights, *options)


def _sizes(a: Attributes, x: Tensor) -> list[int]:
    return [
        rule.value if rule.from_input < 0 else x.shape[rule.from_input] * max(rule.value, 1)
        for rule in a.sizes
    ]


def _slice(a: Attributes, x: Tensor) -> Tensor:
    return torch.ops.aten.slice.Tensor(x, a.axis, a.begin, a.end, a.step)


def _pad(a: Attributes, x: Tensor) -> Tensor:
    pads: list[int] = []
    for before, after in reversed(list(zip(a.before, a.after, strict=True))):
        pads += [before, after]
    if a.pad_mode == PadMode.CONSTANT:
        return torch.ops.aten.constant_pad_nd(x, pads, a.fill)
    while len(pads) > 2 and pads[-1] == pads[-2] == 0:
        pads = pads[:-2]
    mode = "reflect" if a.pad_mode == PadMode.REFLECT else "replicate"
    shape = x.shape
    if len(pads) // 2 > 2 or x.dim() < len(pads) // 2 + 1:
        raise AssertionError(f"padding {pads} of {tuple(shape)} is not one that PyTorch has")
    lead = max(x.dim() - len(pads) // 2, 1)
    made = F.pad(x.reshape(1, -1, *shape[lead:]), pads, mode=mode)
    return made.reshape(*shape[:lead], *made.shape[2:])


def _upsample(a: Attributes, x: Tensor) -> Tensor:
    size = [a.out_h, a.out_w] if a.out_h else None
    scales = [a.scale_h, a.scale_w] if a.scale_h else None
    image = x.permute(0, 3, 1, 2)
    if a.upsample_mode == UpsampleMode.BILINEAR:
        if size and scales:
            made = torch.ops.aten.upsample_bilinear2d.default(image, size, a.align_corners, *scales)
        else:
            made = torch.ops.aten.upsample_bilinear2d.vec(image, size, a.align_corners, scales)
    elif size and scales:
        made = torch.ops.aten.upsample_nearest2d.default(image, size, *scales)
    else:
        made = torch.ops.aten.upsample_nearest2d.vec(image, size, scales)
    return made.permute(0, 2, 3, 1)


_OPS: dict[int, Callable[..., Tensor]] = {
    Op.MatMul: _matmul,
    Op.Convolution: _convolution,
    Op.TransposedConvolution: _transposed_convolution,
    Op.MaxPool: _max_pool,
    Op.AvgPool: _avg_pool,
    Op.Reduce: _reduce,
    Op.ArgReduce: _arg_reduce,
    Op.Softmax: lambda a, x: (torch.log_softmax if a.log else torch.softmax)(x, a.axis),
    Op.LayerNorm: lambda a, x, w, b: F.layer_norm(x, x.shape[x.dim() - a.axis :], w, b, a.eps),
    Op.RmsNorm: lambda a, x, w: F.rms_norm(x, x.shape[x.dim() - a.axis :], w, a.eps),
    Op.GroupNorm: _group_norm,
    Op.Attention: _attention,
    Op.Embedding: lambda a, table, ids: F.embedding(ids, table),
    Op.Gather: lambda a, x, ids: x.index_select(a.axis, torch.where(ids < 0, ids + x.shape[a.axis], ids)),
    Op.Transpose: lambda a, x: x.permute(a.permutation),
    Op.Reshape: lambda a, x: x.reshape(_sizes(a, x)),
    Op.Expand: lambda a, x: x.expand(_sizes(a, x)),
    Op.Concat: lambda a, *parts: torch.cat(parts, a.axis),
    Op.Slice: _slice,
    Op.Pad: _pad,
    Op.Upsample: _upsample,
    Op.Copy: lambda a, x: x,
}
