"""Every operator that the CPU backend takes, with each sample of it: what is written for it, and the engine.

The samples are those of the operator registry and, for operators that only delegates see whole, those of the
backend's own table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from cpu_harness import Single, single
from workbench.backends import WhyNot
from workbench.backends.cpu.nodes import entries
from workbench.ops.entry import plain_name
from workbench.ops.registry import entries as registry

_TOLERANCE = {torch.float32: (1e-4, 5e-5), torch.float16: (5e-3, 1e-2)}
# Samples that a use of the operator may be refused for: a word of the reason.
_REFUSED: Mapping[str, str] = {
    "aten._adaptive_avg_pool2d.default": "differ in size",
    "aten.index.Tensor": "dimensions at once",
    "workbench._to_dim_order_copy.default": "the result is",
    "quantized_decomposed.quantize_per_tensor.default": "the result is int32",
    "quantized_decomposed.dequantize_per_tensor.default": "not of 8 bits",
}
# What runs only beside others (scales that are found while the program runs, constants) is held to eager in
# test_engine_quantized_graphs.py.
_ALONE = [
    target
    for target, entry in entries().items()
    if not str(target).startswith("quantized_decomposed") or entry.samples is not None
]


def _as(dtype: torch.dtype, tree: Any) -> Any:
    def convert(leaf: Any) -> Any:
        return leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    return pytree.tree_map(convert, tree)


def _samples(target: OpOverload, dtype: torch.dtype) -> Iterator[tuple[Any, Any]]:
    for own in entries()[target].samples_of(target):
        kwargs = own[-1] if isinstance(own[-1], dict) else {}
        yield _as(dtype, own[: len(own) - bool(kwargs)]), kwargs
    entry = registry().get(target)
    if entry is not None and dtype in entry.dtypes:
        for sample in entry.samples(dtype):
            yield sample.args, sample.kwargs


def _agrees(found: list[torch.Tensor], case: Single) -> None:
    assert len(found) == len(case.expected)
    for value, wanted in zip(found, case.expected, strict=True):
        rtol, atol = _TOLERANCE.get(wanted.dtype, (0, 0))
        torch.testing.assert_close(value, wanted, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("target", _ALONE, ids=plain_name)
def test_operator_agrees_with_eager(target: OpOverload, dtype: torch.dtype) -> None:
    ran = 0
    for args, kwargs in _samples(target, dtype):
        case = single(target, args, kwargs)
        if isinstance(case, WhyNot):
            assert _REFUSED.get(str(target), "-") in case.reason, case
            continue
        _agrees(case.reference(), case)
        _agrees(case.native(), case)
        ran += 1
    only_bool = entries()[target].dtypes == (torch.bool,)
    assert ran or (dtype == torch.float16 and only_bool), "no sample ran"
