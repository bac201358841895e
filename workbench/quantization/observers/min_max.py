"""The whole range that was seen."""

from __future__ import annotations

from typing import ClassVar

from workbench.quantization.observers.base import Observer

__all__ = ["MinMax"]


class MinMax(Observer):
    """Represents all values: nothing is clipped, and one outlier costs everybody precision."""

    kind: ClassVar[str] = "min_max"
