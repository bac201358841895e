"""GFLOP/s of products and convolutions with the shapes of known networks.

    PYTHONPATH=tests python native_runtime/kernels/bench.py

The share is that of the first product, whose operands fit the first-level cache: close to what the
multiply-add units can do. Pin the process to one idle core.
"""

from __future__ import annotations

import torch

from kernel_harness import Out, call

PRODUCTS = [(96, 64, 64), (1, 512, 784), (1, 512, 128), (128, 384, 384), (128, 1536, 384), (197, 768, 192)]
# channels in, size, channels out, kernel, stride, groups
CONVOLUTIONS = [
    (3, 224, 64, 7, 2, 1),
    (64, 56, 64, 3, 1, 1),
    (256, 14, 256, 3, 1, 1),
    (512, 7, 512, 3, 1, 1),
    (24, 56, 144, 1, 1, 1),
    (320, 7, 1280, 1, 1, 1),
    (96, 112, 96, 3, 2, 96),
    (144, 56, 144, 3, 1, 144),
]


def product(m: int, n: int, k: int) -> float:
    """GFLOP/s of (m, k) @ (k, n)."""
    call("aten::mm.out", torch.randn(m, k), torch.randn(k, n), Out((m, n)), times=100)
    return 2e-9 * m * n * k / float(call.seconds)  # type: ignore[attr-defined]


def convolution(cin: int, size: int, cout: int, kernel: int, stride: int, groups: int) -> float:
    """GFLOP/s of a convolution with "same" padding."""
    x, weight = torch.randn(1, cin, size, size), torch.randn(cout, cin // groups, kernel, kernel)
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    args = ([stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], groups)
    call("aten::convolution.out", x, weight, None, *args, Out((1, cout, out, out)), times=20)
    return 2e-9 * cout * (cin // groups) * kernel**2 * out**2 / float(call.seconds)  # type: ignore[attr-defined]


def main() -> None:
    """Prints one line a shape."""
    peak = product(*PRODUCTS[0])
    for shape in PRODUCTS:
        rate = product(*shape)
        print(f"mm {shape}: {rate:.1f} GFLOP/s, {rate / peak:.0%}")
    for case in CONVOLUTIONS:
        rate = convolution(*case)
        print(f"convolution {case}: {rate:.1f} GFLOP/s, {rate / peak:.0%}")


if __name__ == "__main__":
    main()
