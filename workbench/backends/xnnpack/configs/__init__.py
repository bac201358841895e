"""The operators that XNNPACK takes: one config per kind, one file per family.

A config says which operators it is about, when it takes one and why not, and adds the calls that compute it.
Adding an operator means adding a config to its family's `CONFIGS`.
"""

from __future__ import annotations

from workbench.backends.xnnpack.configs import (
    attention,
    binary,
    convolution,
    dynamic,
    linear,
    normalization,
    pooling,
    quantize,
    reduction,
    shape,
    softmax,
    unary,
)
from workbench.backends.xnnpack.configs.base import Config, ConfigPrecisionType, Context, config_of, spec_of

__all__ = ["ALL_CONFIGS", "Config", "ConfigPrecisionType", "Context", "config_of", "spec_of"]

ALL_CONFIGS: tuple[Config, ...] = (
    *unary.CONFIGS,
    *binary.CONFIGS,
    *linear.CONFIGS,
    *convolution.CONFIGS,
    *pooling.CONFIGS,
    *reduction.CONFIGS,
    *shape.CONFIGS,
    *softmax.CONFIGS,
    *normalization.CONFIGS,
    *attention.CONFIGS,
    *quantize.CONFIGS,
    *dynamic.CONFIGS,
)
