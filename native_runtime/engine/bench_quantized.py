"""GOP/s of the engine's products and convolutions of integers with the layers of known networks.

    PYTHONPATH=tests taskset -c 1 python native_runtime/engine/bench_quantized.py [network ...]

Networks are those of bench.py; `linear` is products whose left side is quantized row by row, or are numbers,
with weights of 8 and 4 bits. Shares are those of the rate of a product that fits the first-level cache.
"""

from __future__ import annotations

import sys

import torch
from bench import LAYERS, Convolution, Product

import engine_harness
from engine_harness import Quantization, Quantized, Step
from quantized_samples import activation, rows, weight

OPERATIONS_OF_A_MEASUREMENT = 4e9
SHAPES = [(128, 384, 1536), (128, 1536, 384), (1, 384, 1536), (1, 1536, 384)]
RESULT = Quantization(scale=0.05, zero_point=-128)


def times(operations: float) -> int:
    """How often to run."""
    return max(20, min(3000, int(OPERATIONS_OF_A_MEASUREMENT / operations)))


def product(
    a: torch.Tensor | Quantized,
    m: int,
    k: int,
    n: int,
    *,
    bits: int = 8,
    group: int = 0,
    number: bool = False,
) -> tuple[float, float]:
    """Operations and seconds of [m, k] x [k, n], with integers or numbers as the result."""
    generator = torch.Generator().manual_seed(0)
    b = weight((n, k), generator, axis=0, bits=bits, group=group)
    operations = 2.0 * m * k * n
    seconds: list[float] = []
    engine_harness.run(
        "MatMul",
        [a, b, torch.randn(n, generator=generator)],
        [((m, n), torch.float32) if number else ((m, n), torch.int8, RESULT)],
        {"transpose_b": 1},
        constants=(1, 2),
        times=times(operations),
        seconds=seconds,
    )
    return operations, seconds[0]


def convolution(layer: Convolution) -> tuple[float, float]:
    """Operations and seconds of a layer with int8 images, clamped to [0, 6]."""
    generator = torch.Generator().manual_seed(0)
    inner, pad = layer.cin // layer.groups, layer.kernel // 2
    x = activation((1, layer.size, layer.size, layer.cin), generator)
    w = weight((layer.cout, inner, layer.kernel, layer.kernel), generator, axis=0)
    size = (layer.size + 2 * pad - layer.kernel) // layer.stride + 1
    operations = 2.0 * size * size * layer.cout * layer.kernel**2 * inner
    attributes: dict[str, object] = {"groups": layer.groups}
    attributes |= {f"window.kernel_{axis}": layer.kernel for axis in "hw"}
    attributes |= {f"window.stride_{axis}": layer.stride for axis in "hw"}
    attributes |= {f"window.pad_{side}": pad for side in ("top", "bottom", "left", "right")}
    order = {"cout": inner * layer.kernel**2, "cin": layer.kernel**2, "h": layer.kernel, "w": 1}
    attributes |= {f"weight_order.{name}": step for name, step in order.items()}
    seconds: list[float] = []
    engine_harness.run(
        "Convolution",
        [x, w, torch.randn(layer.cout, generator=generator)],
        [((1, size, size, layer.cout), torch.int8, RESULT)],
        attributes,
        post=(Step("Clamp", (0,), a=0.0, b=6.0),),
        constants=(1, 2),
        times=times(operations),
        seconds=seconds,
    )
    return operations, seconds[0]


def linear() -> dict[str, tuple[float, float]]:
    """Products with weights of 8 and 4 bits, by what they are."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    for m, k, n in SHAPES:
        for name, a in (
            ("rows", rows((m, k), generator)),
            ("numbers", torch.randn(m, k, generator=generator)),
        ):
            for bits, group in ((8, 0), (4, 0), (4, 32), (4, 128)):
                text = f"linear {name} {m} x {k} x {n}, {bits} bits" + (
                    f", groups of {group}" if group else ""
                )
                found[text] = product(a, m, k, n, bits=bits, group=group, number=True)
    return found


def main() -> None:
    """Print a table of the networks that the command line names, or of all."""
    generator = torch.Generator().manual_seed(0)
    operations, seconds = product(activation((60, 256), generator), 60, 256, 64)
    peak = operations / seconds
    print(f"| layer | us | GOP/s | share of {peak * 1e-9:.0f} |\n| --- | --- | --- | --- |")
    for network in sys.argv[1:] or [*LAYERS, "linear"]:
        if network == "linear":
            found = linear()
        else:
            found = {}
            for layer in LAYERS[network]:
                if isinstance(layer, Product):
                    a = activation((layer.m, layer.k), generator)
                    found[f"{network} {layer}"] = product(a, layer.m, layer.k, layer.n)
                else:
                    found[f"{network} {layer}"] = convolution(layer)
        for text, (operations, seconds) in found.items():
            rate = operations / seconds
            print(f"| {text} | {seconds * 1e6:.1f} | {rate * 1e-9:.1f} | {rate / peak:.0%} |", flush=True)


if __name__ == "__main__":
    main()
