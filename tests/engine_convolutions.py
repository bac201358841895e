"""Convolutions for tests of the engine: their tensors, what eager PyTorch makes of them, and the engine."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import engine_harness
from engine_harness import Step

Pair = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """A convolution: sizes and attributes; padding is top, bottom, left, right."""

    batch: int
    size: Pair
    cin: int
    cout: int
    kernel: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    output_padding: Pair = (0, 0)

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Image, weight [cout, cin / groups, kh, kw] and bias."""
        generator = torch.Generator().manual_seed(hash(self) % 2**31)
        x = torch.randn(self.batch, self.cin, *self.size, generator=generator)
        weight = torch.randn(self.cout, self.cin // self.groups, *self.kernel, generator=generator)
        return x, weight, torch.randn(self.cout, generator=generator)

    def padded(self, x: torch.Tensor) -> torch.Tensor:
        """With the padding written out; negative padding cuts."""
        top, bottom, left, right = self.padding
        return torch.nn.functional.pad(x, (left, right, top, bottom))

    def expected(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Of eager PyTorch, for the tensors as they are."""
        return torch.nn.functional.conv2d(
            self.padded(x), weight, bias, self.stride, dilation=self.dilation, groups=self.groups
        )

    def attributes(self, order: str) -> dict[str, object]:
        """As the engine names them."""
        kh, kw = self.kernel
        inner = self.cin // self.groups
        orders = {
            "torch": (inner * kh * kw, kh * kw, kw, 1),
            "xnnpack": (kh * kw * inner, 1, kw * inner, inner),
            "outer_last": (1, self.cout, kw * inner * self.cout, inner * self.cout),
            "columns_first": (inner * kh * kw, kh * kw, 1, kh),
        }
        top, bottom, left, right = self.padding
        result: dict[str, object] = {
            "window.kernel_h": kh,
            "window.kernel_w": kw,
            "window.stride_h": self.stride[0],
            "window.stride_w": self.stride[1],
            "window.dilation_h": self.dilation[0],
            "window.dilation_w": self.dilation[1],
            "window.pad_top": top,
            "window.pad_bottom": bottom,
            "window.pad_left": left,
            "window.pad_right": right,
            "groups": self.groups,
            "output_padding_h": self.output_padding[0],
            "output_padding_w": self.output_padding[1],
        }
        for name, value in zip(("cout", "cin", "h", "w"), orders[order], strict=True):
            result[f"weight_order.{name}"] = value
        return result


def stored(weight: torch.Tensor, order: str) -> torch.Tensor:
    """The weight's elements in that order."""
    dims = {
        "torch": (0, 1, 2, 3),
        "xnnpack": (0, 2, 3, 1),
        "outer_last": (2, 3, 1, 0),
        "columns_first": (0, 1, 3, 2),
    }[order]
    return weight.permute(dims).contiguous()


def convolve(
    case: Case,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    shape: torch.Size,
    *,
    op: str = "Convolution",
    order: str = "torch",
    constants: tuple[int, ...] = (1, 2),
    post: tuple[Step, ...] = (),
    post_inputs: tuple[torch.Tensor, ...] = (),
) -> torch.Tensor:
    """By the engine, with images [n, c, h, w] here and [n, h, w, c] there."""
    n, c, h, w = shape
    result = engine_harness.run(
        op,
        [x.permute(0, 2, 3, 1).contiguous(), stored(weight, order), bias],
        [((n, h, w, c), torch.float32)],
        case.attributes(order),
        constants=constants,
        post=post,
        post_inputs=[t.permute(0, 2, 3, 1).contiguous() if t.dim() == 4 else t for t in post_inputs],
    )[0]
    assert result is not None
    return result.permute(0, 3, 1, 2)


def assert_near(
    case: Case, found: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> None:
    """Within 1e-5 of what the sizes of the products add up to: room for Winograd's transforms."""
    exact = case.expected(x.double(), weight.double(), bias.double())
    scale = case.expected(x.double().abs(), weight.double().abs(), bias.double().abs())
    assert found.shape == exact.shape
    if found.numel() == 0:
        return
    limit = 1e-5 * scale.amax().item() + 1e-30
    assert (found.double() - exact).abs().max().item() <= limit
