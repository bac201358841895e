"""The one door to torchao's PT2E: what the workbench uses of it, or an error that says how to install it.

The operators of quantized graphs (`quantized_decomposed`) belong to torch itself, and are registered here
too.
"""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # defines the operators

from workbench.errors import QuantizationError

if TYPE_CHECKING:
    from torchao.quantization.pt2e.observer import ObserverBase
    from torchao.quantization.pt2e.quantizer import (
        DerivedQuantizationSpec,
        FixedQParamsQuantizationSpec,
        QuantizationAnnotation,
        QuantizationSpec,
        Quantizer,
        SharedQuantizationSpec,
    )

__all__ = [
    "ANNOTATION_KEY",
    "DerivedQuantizationSpec",
    "FixedQParamsQuantizationSpec",
    "ObserverBase",
    "QuantizationAnnotation",
    "QuantizationSpec",
    "Quantizer",
    "SharedQuantizationSpec",
    "is_fake_quantize",
]

ANNOTATION_KEY = "quantization_annotation"


def _import() -> None:
    # On import torchao logs which of its GPU libraries fit this machine, and torch warns of torchao's enums;
    # neither is of use to anybody who quantizes for a CPU.
    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree")]
    levels = [logger.level for logger in loggers]
    root = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torchao.quantization.pt2e import observer, quantizer
    except ImportError as error:
        raise QuantizationError(
            "quantization needs torchao, which is not installed",
            stage="prepare",
            expected="torchao==0.18.0",
            found=str(error),
            hint='pip install "lowering-workbench[quantization]"',
        ) from error
    finally:
        logging.disable(root)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
    names = set(__all__)
    for module in (observer, quantizer):
        globals().update({name: getattr(module, name) for name in names if hasattr(module, name)})


if not TYPE_CHECKING:
    _import()


def is_fake_quantize(module: Any) -> bool:
    """Whether a module simulates quantization in training, as torchao's and torch's own do."""
    return isinstance(module, torch.nn.Module) and hasattr(module, "fake_quant_enabled")
