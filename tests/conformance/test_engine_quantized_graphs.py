"""Graphs that quantize and dequantize, as one delegate of the CPU backend, against eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators
from torch.nn import functional as F

import workbench as wb
from xnnpack_quantized_cases import GroupedLinear

ops: Any = torch.ops.quantized_decomposed
STEP = 0.05


def rounded(x: Tensor, scale: float = STEP, zero: int = 3) -> Tensor:
    """Through integers of 8 bits."""
    q = ops.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
    return ops.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)  # type: ignore[no-any-return]


class Images(nn.Module):
    """Convolutions whose weights are integers with a scale for each output channel, a residual sum, pools."""

    def __init__(self) -> None:
        super().__init__()
        for name, shape in (("first", (8, 3, 3, 3)), ("second", (8, 1, 3, 3)), ("third", (8, 8, 1, 1))):
            self.register_buffer(name, torch.randint(-127, 128, shape, dtype=torch.int8))
            self.register_buffer(f"{name}_scales", torch.rand(8) * 0.004 + 0.001)
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(8))

    def weight(self, name: str) -> Tensor:
        """A weight's numbers."""
        scales = getattr(self, f"{name}_scales")
        found: Tensor = ops.dequantize_per_channel(
            getattr(self, name), scales, self.zeros, 0, -127, 127, torch.int8
        )
        return found

    def forward(self, x: Tensor) -> Tensor:
        """x [n, 3, h, w] -> [n, 16]."""
        x = rounded(x)
        x = rounded(F.relu(F.conv2d(x, self.weight("first"), self.bias, stride=2, padding=1)))
        y = rounded(F.relu(F.conv2d(x, self.weight("second"), padding=1, groups=8)))
        y = rounded(F.conv2d(y, self.weight("third"), self.bias), 0.1, -5)
        x = rounded(x + y)
        x = rounded(torch.cat([F.max_pool2d(x, 2), rounded(F.hardswish(F.max_pool2d(x, 2)), 0.02)], 1))
        return rounded(rounded(x.mean((2, 3), keepdim=True)).flatten(1))


class Narrow(nn.Module):
    """Fewer integers than the type has."""

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape."""
        q = ops.quantize_per_tensor(x, 0.25, 1, -7, 8, torch.int8)
        found: Tensor = ops.dequantize_per_tensor(q, 0.25, 1, -7, 8, torch.int8)
        return found * 2


MODELS = {
    "images": (Images, (2, 3, 12, 14)),
    "four-bit-groups": (lambda: GroupedLinear(64, 24, 32), (3, 64)),
    "four-bit-rows": (lambda: GroupedLinear(64, 24, 0), (2, 3, 64)),
    "narrow": (Narrow, (4, 33)),
}


@pytest.mark.parametrize("name", MODELS)
def test_graph_is_one_delegate_and_agrees_with_eager(name: str) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, inputs = make().eval(), (torch.randn(shape),)
    with torch.no_grad():
        expected = model(*inputs)
        program = torch.export.export(model, inputs)
    lowered = wb.to_edge_transform_and_lower(program, partitioner=[wb.CpuPartitioner()])
    names = [str(n.target) for n in lowered.exported_program().graph.nodes if n.op == "call_function"]
    assert sum("call_delegate" in found for found in names) == 1
    assert not any("quantize" in found for found in names)
    data = lowered.to_executorch().buffer
    [found] = wb.runtime.Runtime.get().load_program(data).load_method("forward").execute(list(inputs))
    if name == "images":
        steps = ((found - expected) / STEP).round().abs()
        assert int(steps.max()) <= 1
    else:
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
