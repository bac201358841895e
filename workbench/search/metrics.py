"""What the outputs of a candidate are worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from workbench.component import Component
from workbench.errors import SearchError

__all__ = ["METRICS", "Metric", "metric_of"]

Metric = Callable[[list[Any], Any], float]
"""Outputs of one sample and its target -> a number, the more the better."""


def accuracy(outputs: list[Any], target: Any) -> float:
    """The share of the rows of the first output whose largest entry is that of the target."""
    return float((outputs[0].argmax(-1) == torch.as_tensor(target)).double().mean())


def sqnr(outputs: list[Any], target: Any) -> float:
    """Signal to noise ratio against the outputs in floats, in dB; at most 120."""
    signal = noise = 0.0
    for value, wanted in zip(outputs, target, strict=True):
        if isinstance(wanted, torch.Tensor) and wanted.is_floating_point():
            signal += float(wanted.double().square().sum())
            noise += float((wanted.double() - value.double()).square().sum())
    if signal == 0:
        return 120.0 if noise == 0 else 0.0
    return min(120.0, -10 * float(torch.log10(torch.tensor(max(noise / signal, 1e-12), dtype=torch.float64))))


def cosine(outputs: list[Any], target: Any) -> float:
    """Cosine similarity of the first output with that in floats."""
    one, other = outputs[0].double().reshape(1, -1), target[0].double().reshape(1, -1)
    return float(torch.nn.functional.cosine_similarity(one, other))


# Name -> the function, and whether its targets are the outputs of the program in floats.
METRICS: dict[str, tuple[Metric, bool]] = {
    "accuracy": (accuracy, False),
    "sqnr": (sqnr, True),
    "cosine": (cosine, True),
}


def metric_of(value: Any) -> tuple[Component, bool]:
    """A metric by name, by place (`"package.module:function"`) or itself; whether it compares with floats.

    Raises:
        SearchError: There is no such metric.
    """
    if isinstance(value, str) and ":" not in value:
        if value not in METRICS:
            raise SearchError(
                f"there is no metric {value!r}",
                expected=f"{', '.join(METRICS)}, package.module:function, or a function",
            )
        return Component.of(METRICS[value][0]), METRICS[value][1]
    if not isinstance(value, str) and not callable(value):
        raise SearchError("that is no metric", expected="a function of outputs and target", found=repr(value))
    return Component.of(value), False
