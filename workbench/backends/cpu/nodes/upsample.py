"""Images of another size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.entry import Call, Emit, Entry, Refusal, no
from workbench.backends.cpu.graph import Op, UpsampleMode

__all__ = ["ENTRIES"]

aten = torch.ops.aten
_TO_NHWC, _TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def _upsample(mode: int) -> Emit:
    def emit(emitter: Emitter, call: Call) -> None:
        value, output = emitter.value(call["input"]), emitter.result(call)
        dims = emitter.dims(output)
        made = emitter.temporary(call.result().dtype, [dims[d] for d in _TO_NHWC])
        given: dict[str, Any] = {"upsample_mode": mode}
        if mode == UpsampleMode.BILINEAR:
            given["align_corners"] = bool(call["align_corners"])
        if call["scale_factors"] is not None:
            given["scale_h"], given["scale_w"] = (float(factor) for factor in call["scale_factors"])
        if type(dims[2]) is int and type(dims[3]) is int:
            given["out_h"], given["out_w"] = dims[2], dims[3]
        emitter.add(Op.Upsample, [emitter.transposed(value, _TO_NHWC)], [made], **given)
        emitter.transposed(made, _TO_NCHW, output)

    return emit


def _check(call: Call) -> Refusal | None:
    dynamic = any(type(size) is not int for size in call.result().shape[2:])
    if dynamic and call["scale_factors"] is None:
        return no("its result has a dynamic size that is computed", "scale factors were given")
    return None


def _samples(*options: Any) -> Any:
    def samples() -> Iterator[tuple[Any, ...]]:
        yield torch.randn(1, 3, 5, 7), [10, 14], *options, None
        yield torch.randn(2, 4, 6, 6), [4, 9], *options, None
        yield torch.randn(1, 2, 5, 5), None, *options, [2.0, 3.0]

    return samples


ENTRIES = [
    Entry(
        (aten.upsample_bilinear2d.vec,),
        _upsample(UpsampleMode.BILINEAR),
        _check,
        keep=True,
        samples=_samples(False),
    ),
    Entry(
        (aten.upsample_nearest2d.vec,), _upsample(UpsampleMode.NEAREST), _check, keep=True, samples=_samples()
    ),
]
