"""What "agrees with eager PyTorch" means in these tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

RTOL, ATOL = 1e-4, 1e-5


def flat(outputs: Any) -> list[Any]:
    """The outputs of a model as a flat list."""
    leaves: list[Any] = torch.utils._pytree.tree_leaves(outputs)
    return leaves


def assert_agrees(found: Sequence[Any], expected: Any, *, rtol: float = RTOL, atol: float = ATOL) -> None:
    """Compare all outputs: number, shapes, dtypes, values.

    The absolute tolerance shrinks with outputs that are small as a whole (random weights can let a signal
    fade to 1e-20): it never hides a wrong answer.
    """
    wanted = flat(expected)
    assert len(found) == len(wanted)
    for index, (value, reference) in enumerate(zip(found, wanted, strict=True)):
        value, reference = torch.as_tensor(value), torch.as_tensor(reference)
        largest = float(reference.abs().max()) if reference.is_floating_point() and reference.numel() else 0.0
        scale = min(1.0, largest) if 0.0 < largest < float("inf") else 1.0
        torch.testing.assert_close(
            value,
            reference,
            rtol=rtol if reference.is_floating_point() else 0,
            atol=atol * scale if reference.is_floating_point() else 0,
            check_stride=False,
            msg=lambda text, index=index: f"output {index}: {text}",
        )
