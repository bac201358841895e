"""quantize and dequantize in all their forms, against the reference of torch.ao."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators

from kernel_harness import KernelError, Out, call
from kernel_samples import LAYOUTS, check, sample
from workbench.ops.entry import OperatorEntry
from workbench.ops.quantized import ENTRIES

Q = torch.ops.quantized_decomposed
NAME = "quantized_decomposed::"
FAMILY = ENTRIES
RANGES = [(torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int16, -32768, 32767), (torch.int8, -8, 7)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "low", "high"), RANGES)
@pytest.mark.parametrize("source", [torch.float32, torch.float16])
def test_per_tensor_agrees(source: torch.dtype, dtype: torch.dtype, low: int, high: int, layout: str) -> None:
    x = sample((2, 3, 4, 50), source, layout)
    q = Q.quantize_per_tensor(x, 0.037, 3, low, high, dtype)
    d = Q.dequantize_per_tensor(q, 0.037, 3, low, high, dtype)
    check(f"{NAME}quantize_per_tensor.out", q, x, 0.037, 3, low, high, 1, layout=layout)
    check(f"{NAME}dequantize_per_tensor.out", d, q, 0.037, 3, low, high, 1, None, layout=layout)
    scale, zero = torch.tensor([0.037], dtype=torch.float64), torch.tensor([3])
    check(f"{NAME}quantize_per_tensor.Tensor_out", q, x, scale, zero, low, high, 1)
    check(f"{NAME}dequantize_per_tensor.Tensor_out", d, q, scale, zero, low, high, 1, None)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_per_channel_agrees(axis: int, layout: str, kind: torch.dtype) -> None:
    x = sample((2, 3, 4, 50), torch.float32, layout)
    scales = (torch.rand(x.shape[axis]) * 0.05 + 0.01).to(kind)
    zeros = torch.randint(-3, 3, (x.shape[axis],))
    args = (axis, -128, 127, torch.int8)
    q = Q.quantize_per_channel(x, scales, zeros, *args)
    check(f"{NAME}quantize_per_channel.out", q, x, scales, zeros, axis, -128, 127, 1, layout=layout)
    for z in (zeros, None):
        d = Q.dequantize_per_channel(q, scales, z, *args).float()
        check(f"{NAME}dequantize_per_channel.out", d, q, scales, z, axis, -128, 127, 1, None, layout=layout)


@pytest.mark.parametrize("shape", [(4, 64), (2, 3, 70), (5,)])
def test_per_token_agrees(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    scale, zero = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
    check(f"{NAME}choose_qparams_per_token_asymmetric.out", (scale, zero), x, 1)
    q = Q.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
    check(f"{NAME}quantize_per_token.out", q, x, scale, zero, -128, 127, 1)
    d = Q.dequantize_per_token(q, scale, zero, -128, 127, torch.int8, torch.float32)
    check(f"{NAME}dequantize_per_token.out", d, q, scale, zero, -128, 127, 1, 6)
    # Eager gives floats where the graph promises float64 and int64.
    scale, zero = Q.choose_qparams_per_token(x, torch.int8)
    check(f"{NAME}choose_qparams_per_token.out", (scale.double(), zero.long()), x, 1)
    expected = Q.choose_qparams.tensor(x, -128, 127, 1e-6, torch.int8)
    check(f"{NAME}choose_qparams.Tensor_out", expected, x, -128, 127, 1e-6, 1)


@pytest.mark.parametrize("entry", FAMILY, ids=lambda entry: entry.kernel.removeprefix(NAME))
def test_every_sample_of_the_registry_agrees(entry: OperatorEntry) -> None:
    codes = {torch.uint8: 0, torch.int8: 1, torch.int32: 3, torch.float32: 6}
    missing = [None] * ("out_dtype" in entry.schema)
    for dtype in entry.dtypes:
        for item in entry.samples(dtype):
            args = [codes[value] if isinstance(value, torch.dtype) else value for value in item.args]
            check(entry.kernel, entry.expected(item), *args, *missing)


def test_groups_that_do_not_fit_are_refused() -> None:
    x, scales = torch.zeros(3, 40, dtype=torch.int8), torch.ones(3, 2)
    with pytest.raises(KernelError, match="groups of 16 in rows of 40"):
        call(f"{NAME}dequantize_per_channel_group.out", x, scales, None, -8, 7, 1, 16, 6, Out((3, 40)))
    with pytest.raises(KernelError, match="expected 6 scales"):
        call(f"{NAME}dequantize_per_channel_group.out", x, scales[:1], None, -8, 7, 1, 20, 6, Out((3, 40)))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_embeddings_unpack_and_scale(bits: int, groups: int) -> None:
    half = 2 ** (bits - 1)
    values = torch.randint(-half, half, (10, 16))
    scales, zeros = torch.rand(10, groups) + 0.1, torch.randint(-2, 2, (10, groups)).float()
    index = torch.tensor([[0, 3], [9, 2]])
    table = ((values.view(10, groups, -1) - zeros[..., None]) * scales[..., None]).view(10, 16)
    stored = values + half
    if bits == 8:
        weight = values.to(torch.int8)
    elif bits == 4:
        weight = (stored[:, ::2] * 16 + stored[:, 1::2]).to(torch.uint8)
    else:
        weight = sum(stored[:, k::4] << 2 * k for k in range(4)).to(torch.uint8)
    name = "embedding_byte" if bits == 8 else f"embedding_{bits}bit"
    check(f"{NAME}{name}.out", table[index], weight, scales, zeros, -half, half - 1, index)
    check(f"{NAME}{name}.dtype_out", table[index], weight, scales, zeros, -half, half - 1, index, None)


def test_embedding_refuses_an_index_out_of_range() -> None:
    weight, scales = torch.zeros(10, 4, dtype=torch.int8), torch.ones(10)
    with pytest.raises(KernelError, match="out of range"):
        call(f"{NAME}embedding_byte.out", weight, scales, None, -128, 127, torch.tensor([10]), Out((1, 4)))


def test_quantized_add_agrees() -> None:
    a, b = torch.randint(-128, 127, (3, 40)).to(torch.int8), torch.randint(-128, 127, (40,)).to(torch.int8)
    total = (a.float() - 2) * 0.1 + (b.float() + 1) * 0.2
    expected = torch.clamp(torch.round(total * (1 / 0.3)) + 5, -128, 127).to(torch.int8)
    args = (a, 0.1, 2, -128, 127, b, 0.2, -1, -128, 127, 0.3, 5, -128, 127)
    check(f"{NAME}add.out", expected, *args)
