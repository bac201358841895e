"""The XNNPACK delegate, ahead of time: `XnnpackPartitioner` and `XnnpackBackend`."""

from __future__ import annotations

from workbench.backends.xnnpack.backend import XnnpackBackend
from workbench.backends.xnnpack.configs import ALL_CONFIGS, Config, ConfigPrecisionType
from workbench.backends.xnnpack.partitioner import XnnpackPartitioner

__all__ = ["ALL_CONFIGS", "Config", "ConfigPrecisionType", "XnnpackBackend", "XnnpackPartitioner"]
