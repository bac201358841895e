"""GFLOP/s, and errors, of the engine's products and convolutions with the layers of known networks.

    PYTHONPATH=tests taskset -c 1 python native_runtime/engine/bench.py [network ...]

A layer runs often and its shortest time counts: operands are in the caches as far as they fit. Shares are
those of the rate of a product that fits the first-level cache, close to what the multiply-add units can do.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch

import engine_harness
from engine_harness import Step

FLOP_OF_A_MEASUREMENT = 2e9


@dataclass(frozen=True)
class Product:
    """[m, k] x [k, n] with a constant right-hand side."""

    m: int
    k: int
    n: int

    def run(self) -> tuple[float, float, float]:
        """FLOP, seconds, error relative to the largest output."""
        a, b, bias = torch.randn(self.m, self.k), torch.randn(self.n, self.k), torch.randn(self.n)
        flop = 2.0 * self.m * self.k * self.n
        seconds: list[float] = []
        found = engine_harness.run(
            "MatMul",
            [a, b, bias],
            [((self.m, self.n), torch.float32)],
            {"transpose_b": 1},
            constants=(1, 2),
            times=times(flop),
            seconds=seconds,
        )[0]
        return flop, seconds[0], error(found, a.double() @ b.double().T + bias)


@dataclass(frozen=True)
class Convolution:
    """A square image and kernel, "same" padding, clamped to [0, 6]."""

    size: int
    cin: int
    cout: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1

    def run(self) -> tuple[float, float, float]:
        """FLOP, seconds, error relative to the largest output."""
        inner, taps, pad = self.cin // self.groups, self.kernel**2, self.kernel // 2
        x = torch.randn(1, self.cin, self.size, self.size)
        weight, bias = torch.randn(self.cout, inner, self.kernel, self.kernel), torch.randn(self.cout)
        exact = torch.nn.functional.conv2d(
            x.double(), weight.double(), bias.double(), self.stride, pad, groups=self.groups
        ).permute(0, 2, 3, 1)
        flop = 2.0 * exact.numel() * taps * inner
        attributes: dict[str, object] = {"groups": self.groups}
        attributes |= {f"window.kernel_{axis}": self.kernel for axis in "hw"}
        attributes |= {f"window.stride_{axis}": self.stride for axis in "hw"}
        attributes |= {f"window.pad_{side}": pad for side in ("top", "bottom", "left", "right")}
        order = {"cout": inner * taps, "cin": taps, "h": self.kernel, "w": 1}
        attributes |= {f"weight_order.{name}": step for name, step in order.items()}
        seconds: list[float] = []
        found = engine_harness.run(
            "Convolution",
            [x.permute(0, 2, 3, 1).contiguous(), weight, bias],
            [(list(exact.shape), torch.float32)],
            attributes,
            post=(Step("Clamp", (0,), a=0.0, b=6.0),),
            constants=(1, 2),
            times=times(flop),
            seconds=seconds,
        )[0]
        return flop, seconds[0], error(found, exact.clamp(0, 6), exact)


def times(flop: float) -> int:
    """How often to run."""
    return max(20, min(3000, int(FLOP_OF_A_MEASUREMENT / flop)))


def error(found: torch.Tensor | None, exact: torch.Tensor, scale: torch.Tensor | None = None) -> float:
    """The largest one, relative to the largest element (of `scale`, if it is not of `exact`)."""
    assert found is not None
    largest = (exact if scale is None else scale).abs().max()
    return ((found.double() - exact).abs().max() / largest).item()


def depthwise(size: int, channels: int, stride: int = 1) -> Convolution:
    """A 3x3 kernel, one channel a group."""
    return Convolution(size, channels, channels, 3, stride, channels)


LAYERS: dict[str, list[Product | Convolution]] = {
    "mlp": [Product(1, 784, 512), Product(1, 512, 512), Product(1, 512, 10)],
    "dscnn": [depthwise(11, 64), Convolution(11, 64, 64), Product(1, 64, 12)],
    "mobilenet_v2": [
        Convolution(224, 3, 32, 3, 2),
        depthwise(112, 32),
        Convolution(112, 32, 16),
        Convolution(112, 16, 96),
        depthwise(112, 96, 2),
        Convolution(56, 96, 24),
        Convolution(56, 24, 144),
        depthwise(56, 144),
        Convolution(56, 144, 24),
        Convolution(28, 32, 192),
        Convolution(28, 192, 32),
        Convolution(14, 64, 384),
        depthwise(14, 384),
        Convolution(14, 384, 64),
        Convolution(7, 160, 960),
        Convolution(7, 960, 160),
        Convolution(7, 320, 1280),
        Product(1, 1280, 1000),
    ],
    "resnet18": [
        Convolution(224, 3, 64, 7, 2),
        Convolution(56, 64, 64, 3),
        Convolution(56, 64, 128, 3, 2),
        Convolution(56, 64, 128, 1, 2),
        Convolution(28, 128, 128, 3),
        Convolution(28, 128, 256, 3, 2),
        Convolution(14, 256, 256, 3),
        Convolution(14, 256, 512, 3, 2),
        Convolution(7, 512, 512, 3),
    ],
    "resnet50": [
        Convolution(56, 64, 256),
        Convolution(56, 256, 64),
        Convolution(28, 128, 512),
        Convolution(28, 512, 128),
        Convolution(14, 256, 1024),
        Convolution(14, 1024, 256),
        Convolution(7, 512, 2048),
        Convolution(7, 2048, 512),
    ],
    "vit_tiny": [
        Product(197, 192, 576),
        Product(197, 192, 192),
        Product(197, 192, 768),
        Product(197, 768, 192),
    ],
    "minilm": [
        Product(128, 384, 1152),
        Product(128, 384, 384),
        Product(128, 384, 1536),
        Product(128, 1536, 384),
    ],
    "lstm": [Product(50, 40, 512), Product(1, 128, 512), Product(1, 128, 64)],
}


def main() -> None:
    """Print a table of the networks that the command line names, or of all."""
    flop, seconds, _ = Product(56, 64, 64).run()
    peak = flop / seconds
    print(f"| layer | us | GFLOP/s | share of {peak * 1e-9:.0f} | error |\n| --- | --- | --- | --- | --- |")
    for network in sys.argv[1:] or LAYERS:
        for layer in LAYERS[network]:
            flop, seconds, wrong = layer.run()
            rate = flop / seconds
            cells = [f"{seconds * 1e6:.1f}", f"{rate * 1e-9:.1f}", f"{rate / peak:.0%}", f"{wrong:.1e}"]
            print(f"| {network} {layer} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
