"""Stands where scales are chosen when the program runs."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from workbench.quantization.observers.base import EPS, Observer

__all__ = ["Dynamic"]


class Dynamic(Observer):
    """Sees nothing: there is nothing to be known before the program runs.

    Args:
        dynamic: `"token"`: each row along the last axis has a scale of its own; `"tensor"`: one for all.
        **options: As of `Observer`.
    """

    kind: ClassVar[str] = "dynamic"

    def __init__(self, dynamic: str = "tensor", eps: float = EPS, **options: Any) -> None:
        super().__init__(eps=eps, histogram=False, **options)
        self.dynamic = dynamic

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Hand the tensor on."""
        return x
