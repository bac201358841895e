"""Quantized programs that ExecuTorch makes, once for all tests and all test processes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

CACHE = Path(__file__).resolve().parents[1] / "build" / "test-cache"

Inputs = Sequence[Tensor]


def quantize(
    model: nn.Module,
    calibration: Sequence[Inputs],
    *,
    dynamic: bool = False,
    per_channel: bool = True,
    weights: tuple[int, int] = (-127, 127),
) -> nn.Module:
    """The model with ExecuTorch's quantizer for XNNPACK, by PT2E."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    config = get_symmetric_quantization_config(
        is_per_channel=per_channel, is_dynamic=dynamic, weight_qmin=weights[0], weight_qmax=weights[1]
    )
    quantizer = XNNPACKQuantizer().set_global(config)
    exported = torch.export.export(model, tuple(calibration[0]), strict=True).module()
    prepared = prepare_pt2e(exported, quantizer)
    with torch.no_grad():
        for inputs in calibration:
            prepared(*inputs)
    converted: nn.Module = convert_pt2e(prepared)
    return converted


def step_of(model: nn.Module) -> float:
    """The scale of the result, if it is dequantized last of all; else 0."""
    graph: Any = model.graph
    [result] = next(node for node in graph.nodes if node.op == "output").args[0]
    if result.op == "call_function" and "dequantize_per_tensor" in str(result.target):
        return float(result.args[1])
    return 0.0


def delegated(
    name: str, make: Callable[[], nn.Module], inputs: Inputs, digest_of: Sequence[Any]
) -> tuple[Path, float]:
    """ExecuTorch's program of what `make` makes, and the step of its result.

    Args:
        name: Of the file in build/test-cache.
        make: Makes the quantized model; called when there is no file.
        inputs: Examples.
        digest_of: What the program depends on, as text or tensors.
    """
    digest = hashlib.blake2b(digest_size=8)
    for item in digest_of:
        plain = (
            item.detach().contiguous().view(-1).view(torch.uint8).numpy().data
            if isinstance(item, Tensor)
            else b""
        )
        digest.update(plain or repr(item).encode())
    versions = f"{version('executorch')}-{torch.__version__}"
    path = CACHE / f"quantized-{name}-{versions}-{digest.hexdigest()}.pte"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"quantized-{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _write(path, make(), tuple(inputs))
    return path, float(json.loads(path.with_suffix(".json").read_text()))


def _write(path: Path, model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    half = path.with_suffix(f".{os.getpid()}")
    with torch.no_grad():
        exported = torch.export.export(model, inputs, strict=True)
    path.with_suffix(".json").write_text(json.dumps(step_of(exported.module())))
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    with open(half, "wb") as file:
        edge.to_executorch().write_to_file(file)
    half.rename(path)
