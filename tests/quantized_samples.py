"""Quantized operands for tests of the engine, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine_harness import Quantization, Quantized


def integers(
    shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype = torch.int8
) -> torch.Tensor:
    """Any integers of 8 bits, the extreme ones often."""
    low = -128 if dtype == torch.int8 else 0
    values = torch.randint(low, low + 256, tuple(shape), generator=generator)
    extreme = torch.randint(0, 8, tuple(shape), generator=generator)
    values = torch.where(extreme == 0, low, torch.where(extreme == 1, low + 255, values))
    return values.to(dtype)


def activation(
    shape: Sequence[int], generator: torch.Generator, *, dtype: torch.dtype = torch.int8, scale: float = 0.03
) -> Quantized:
    """Integers with one scale and zero point."""
    low = -128 if dtype == torch.int8 else 0
    zero = int(torch.randint(low, low + 256, (), generator=generator))
    return Quantized(integers(shape, generator, dtype), Quantization(scale=scale, zero_point=zero))


def rows(shape: Sequence[int], generator: torch.Generator) -> Quantized:
    """Integers with a scale and zero point for each row of the last dimension; these stand behind them."""
    values = integers(shape, generator)
    count = values.numel() // shape[-1] if shape[-1] else 0
    scales = torch.rand(count, generator=generator) * 0.05 + 0.001
    zeros = torch.randint(-128, 128, (count,), generator=generator, dtype=torch.int32)
    start = -(-values.numel() // 64) * 64
    data = torch.zeros(start + 8 * count, dtype=torch.uint8)
    data[: values.numel()] = values.view(-1).view(torch.uint8)
    records = torch.stack([scales.view(torch.int32), zeros], dim=1)
    data[start:] = records.view(-1).view(torch.uint8)
    return Quantized(data, Quantization(kind="PerRow"), tuple(shape), torch.int8)


def weight(
    shape: Sequence[int],
    generator: torch.Generator,
    *,
    axis: int | None = None,
    bits: int = 8,
    group: int = 0,
    zero: int = 8,
) -> Quantized:
    """Constant integers with a scale for each index along `axis`, each group of a row, or all.

    Args:
        shape: Of the integers, [n, k] if there are groups or 4 bits.
        generator: Of random numbers.
        axis: None is one scale for all.
        bits: 8 or 4.
        group: Elements of a row with the same scale; 0 is no groups.
        zero: What stands for 0, of 4 bits.
    """
    values = integers(shape, generator)
    zero = zero if bits == 4 else 0
    if bits == 4:
        values = (values.int() & 15).to(torch.int8)
    count = shape[axis] if axis is not None else 1
    kind = "PerTensor" if axis is None else "PerChannel"
    if group:
        kind, count = "PerGroup", shape[0] * -(-shape[1] // group)
    scales = torch.rand(count, generator=generator) * 0.02 + 0.001
    one = float(scales[0]) if count else 1.0
    quantization = Quantization(
        scale=one if kind == "PerTensor" else 1.0,
        zero_point=zero,
        kind=kind,
        scales=None if kind == "PerTensor" else scales,
        axis=axis or 0,
        group=group,
        bits=bits,
    )
    if bits == 8:
        return Quantized(values, quantization)
    padded = torch.nn.functional.pad(values, (0, shape[1] % 2)).to(torch.uint8)
    packed = padded[:, ::2] | padded[:, 1::2] << 4
    return Quantized(packed.contiguous(), quantization, tuple(shape), torch.int8)


def numbers(operand: Quantized | torch.Tensor) -> torch.Tensor:
    """What the integers stand for, in float64."""
    if isinstance(operand, torch.Tensor):
        return operand.double()
    q, shape = operand.quantization, tuple(operand.shape or operand.data.shape)
    if q.kind == "PerRow":
        count = 1
        for size in shape:
            count *= size
        values = operand.data[:count].view(torch.int8).reshape(shape).double()
        if count == 0:
            return values
        records = operand.data[-(-count // 64) * 64 :].view(torch.int32).reshape(-1, 2)
        scales = records[:, 0].contiguous().view(torch.float32).double()
        zeros = records[:, 1].double()
        leading = (*shape[:-1], 1)
        return (values - zeros.reshape(leading)) * scales.reshape(leading)
    values = operand.data
    if q.bits == 4:
        values = torch.stack([values & 15, values >> 4], dim=-1).flatten(-2)[..., : shape[-1]]
    centred = values.double() - q.zero_point
    if q.kind == "PerTensor":
        return centred * torch.tensor(q.scale, dtype=torch.float32).double()
    assert q.scales is not None
    scales = q.scales.double()
    if q.kind == "PerChannel":
        sizes = [1] * centred.dim()
        sizes[q.axis] = -1
        return centred * scales.reshape(sizes)
    wide = scales.reshape(shape[0], -(-shape[1] // q.group)).repeat_interleave(q.group, dim=1)[:, : shape[1]]
    return centred * wide


def quantized(exact: torch.Tensor, q: Quantization, dtype: torch.dtype) -> torch.Tensor:
    """The integers that stand for numbers."""
    low = -128 if dtype == torch.int8 else 0
    scale = torch.tensor(q.scale, dtype=torch.float32).double()
    return (torch.round(exact / scale) + q.zero_point).clamp(low, low + 255).to(dtype)


def fitting(exact: torch.Tensor, generator: torch.Generator, dtype: torch.dtype = torch.int8) -> Quantization:
    """A quantization in which most of the numbers are in range, but some are not."""
    low = -128 if dtype == torch.int8 else 0
    spread = float(exact.std()) if exact.numel() > 1 else 1.0
    zero = int(torch.randint(low, low + 256, (), generator=generator))
    return Quantization(scale=max(spread, 1e-6) / 50, zero_point=zero)


def assert_one_step(found: torch.Tensor | None, exact: torch.Tensor, q: Quantization) -> None:
    """At most one step from the exact result, and nearly always none: rounding decides near halves only."""
    assert found is not None
    expected = quantized(exact, q, found.dtype)
    difference = (found.int() - expected.int()).abs()
    if difference.numel() == 0:
        return
    assert int(difference.max()) <= 1
    steps = exact / torch.tensor(q.scale, dtype=torch.float32).double()
    near_half = ((steps - steps.floor()) - 0.5).abs() < 1e-3 + steps.abs() * 1e-6
    assert bool((near_half | (difference == 0)).all())
