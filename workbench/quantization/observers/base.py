"""What all observers of the workbench share: counting, checking, and the report."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from workbench.errors import CalibrationError, CalibrationWarning
from workbench.quantization.observers.counts import Counts
from workbench.quantization.observers.parameters import affine, symmetric
from workbench.quantization.pt2e import ObserverBase

__all__ = ["EPS", "WEIGHT_EPS", "Observer", "ObserverReport", "not_finite"]

# Values deep in an untrained network may be tiny, and are worth as much as others. The product of the
# scales of an input and a weight is an ordinary float32 from 2^-126 on, and all that XNNPACK asks beyond
# that is 2^-32 <= input scale * weight scale / output scale < 256.
EPS = 2.0**-100
WEIGHT_EPS = 2.0**-26


@dataclass(frozen=True)
class ObserverReport:
    """What an observer saw and what follows from it; arrays are numpy's.

    Attributes:
        name: The group of tensors.
        observer: Name of the observer's class.
        tensors: How many tensors it saw.
        elements: How many numbers.
        min: The smallest number.
        max: The largest number.
        low: The smallest number that is represented, over all channels.
        high: The largest one.
        scale: Scales, (c,); one where there are no channels.
        zero_point: Zero points, (c,).
        clipped: The share of numbers that lie outside [low, high].
        counts: Histogram, (n,), or None.
        edges: Its bins' ends, (n + 1,), or None.
        channel_min: The smallest number of each channel, (c,), or None.
        channel_max: The largest one.
        axis: The axis of the channels.
    """

    name: str
    observer: str
    tensors: int
    elements: int
    min: float
    max: float
    low: float
    high: float
    scale: np.ndarray[Any, Any]
    zero_point: np.ndarray[Any, Any]
    clipped: float
    counts: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    edges: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    channel_min: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    channel_max: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    axis: int | None = None


class Observer(ObserverBase):  # type: ignore[misc]
    """Sees the values of one group of tensors, one scale for all of them.

    A subclass decides in `range` which part of what was seen is represented.

    Args:
        dtype: Integer type of the numbers.
        quant_min: Smallest number.
        quant_max: Largest number.
        qscheme: torch's name of the scheme; symmetric ones keep zero at zero.
        eps: Smallest scale.
        is_dynamic: As of torchao.
        histogram: Count values as well; observers that need no counts are quicker without.
    """

    kind: ClassVar[str] = ""

    def __init__(
        self,
        dtype: torch.dtype = torch.int8,
        quant_min: int = -128,
        quant_max: int = 127,
        qscheme: Any = torch.per_tensor_affine,
        eps: float = EPS,
        is_dynamic: bool = False,
        histogram: bool = True,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.qscheme, self.eps = qscheme, eps
        self.counts = Counts() if histogram else None
        self.tensors = self.elements = 0
        self.min_val, self.max_val = float("inf"), float("-inf")
        self.channel_min: Any = None
        self.channel_max: Any = None
        self.axis: int | None = None
        self.name = ""  # of the group, for messages

    @property
    def symmetric(self) -> bool:
        """Whether zero stands for zero."""
        return self.qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)

    # ---- seeing --------------------------------------------------------------------------------------------

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See a tensor of any shape, and hand it on.

        Raises:
            CalibrationError: It holds NaN or infinities.
        """
        seen = x.detach()
        if seen.numel() == 0:
            return x
        low, high = self._channels(seen)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise not_finite(seen, self.name)
        self.observe(seen, low, high)
        self.tensors += 1
        self.elements += seen.numel()
        self.min_val, self.max_val = min(self.min_val, low), max(self.max_val, high)
        if self.counts is not None:
            self.counts.add(seen, low, high)
        return x

    def observe(self, x: torch.Tensor, low: float, high: float) -> None:
        """See a tensor whose values lie in [low, high]; called before the counts are brought up to date."""

    def _channels(self, x: torch.Tensor) -> tuple[float, float]:
        """Extremes of the tensor, by way of those of its channels: axis 1 of images, else the last one."""
        if x.dtype not in (torch.float32, torch.float64):
            x = x.float()
        if x.dim() >= 3:
            axis = 1 if x.dim() != 3 else 2
            rows = x.transpose(0, axis).reshape(x.shape[axis], -1) if axis == 1 else None
            low, high = _extremes(x, axis) if rows is None or x.shape[0] == 1 else _rows(rows)
        elif x.dim() == 2:
            axis = 1
            low, high = torch.aminmax(x, dim=0)
        else:
            found = torch.aminmax(x)
            return float(found.min), float(found.max)
        self._keep(low.numpy(), high.numpy(), axis)
        return float(low.min()), float(high.max())

    def _keep(self, low: Any, high: Any, axis: int) -> None:
        if self.channel_min is None and self.axis is None:
            self.channel_min, self.channel_max, self.axis = low.copy(), high.copy(), axis
        elif self.channel_min is None or self.axis != axis or self.channel_min.shape != low.shape:
            self.channel_min = self.channel_max = None  # the group's tensors have different channels
            self.axis = -1
        else:
            np.minimum(self.channel_min, low, out=self.channel_min)
            np.maximum(self.channel_max, high, out=self.channel_max)

    # ---- what follows --------------------------------------------------------------------------------------

    def range(self) -> tuple[float, float]:
        """The range that shall be represented."""
        return self.min_val, self.max_val

    def parameters(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Scales and zero points, (1,).

        Raises:
            CalibrationError: Nothing was seen.
        """
        if not self.elements:
            raise CalibrationError(
                "an observer saw no value, so that there is no scale",
                stage="calibrate",
                node=self.name,
                expected="at least one tensor with elements",
                found="none",
                hint="give calibration data that reaches this node, or keep its layer in floats",
            )
        low, high = self.range()
        if low == high == 0:
            # Any scale represents zero; one that can hold values of ordinary size does the least harm.
            low, high = -1.0, 1.0
        convert = symmetric if self.symmetric else affine
        return convert(np.array([low]), np.array([high]), self.quant_min, self.quant_max, self.eps)

    def calculate_qparams(self, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Scale (float32) and zero point (int64), as torchao asks for them; raises as `parameters`."""
        del options
        scale, zero = self.parameters()
        return torch.from_numpy(scale.astype(np.float32)), torch.from_numpy(zero)

    def warn(self) -> None:
        """Warn of data that gives a scale which is safe, but probably not what was meant."""
        if self.elements > 1 and self.min_val == self.max_val:
            warnings.warn(
                f"{self.name}: all {self.elements:,} values of the calibration data are {self.min_val:g}; "
                "expected values that vary. The scale holds just this value: give other data, or keep the "
                "layer in floats",
                CalibrationWarning,
                stacklevel=2,
            )

    def report(self) -> ObserverReport:
        """What was seen and what follows; raises as `parameters`."""
        scale, zero = self.parameters()
        low = float((scale * (self.quant_min - zero)).min())
        high = float((scale * (self.quant_max - zero)).max())
        return ObserverReport(
            self.name,
            type(self).__name__,
            self.tensors,
            self.elements,
            self.min_val,
            self.max_val,
            low,
            high,
            scale,
            zero,
            0.0 if self.counts is None else self.counts.clipped(low - scale[0] / 2, high + scale[0] / 2),
            None if self.counts is None else self.counts.counts,
            None if self.counts is None else self.counts.edges,
            self.channel_min,
            self.channel_max,
            self.axis if self.channel_min is not None else None,
        )

    # ---- resuming ------------------------------------------------------------------------------------------

    _STATE: ClassVar[tuple[str, ...]] = (
        *("tensors", "elements", "min_val", "max_val"),
        *("channel_min", "channel_max", "axis"),
    )

    def state(self) -> dict[str, Any]:
        """All that was seen, as numbers and arrays."""
        found = {name: getattr(self, name) for name in self._STATE}
        found = {
            name: value.copy() if isinstance(value, np.ndarray) else value for name, value in found.items()
        }
        return {**found, "counts": None if self.counts is None else self.counts.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take what `state` gave, in place of what was seen."""
        for name in self._STATE:
            setattr(self, name, state[name])
        if self.counts is not None and state.get("counts") is not None:
            self.counts.restore(state["counts"])


def not_finite(x: torch.Tensor, name: str) -> CalibrationError:
    """The error about a tensor with NaN or infinities."""
    nans = int(torch.isnan(x).sum())
    infinities = int(torch.isinf(x).sum())
    return CalibrationError(
        "a value that shall be quantized is not finite",
        stage="calibrate",
        node=name,
        expected="finite numbers",
        found=f"{nans} NaN and {infinities} infinities among {x.numel():,} numbers",
        hint="look for the sample and the operator that make them, or keep the layer in floats",
    )


def _extremes(x: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Extremes of each channel of one tensor, (c,)."""
    if axis == 1:
        return _rows(x.reshape(x.shape[1], -1))
    flat = x.reshape(-1, x.shape[-1])
    found = torch.aminmax(flat, dim=0)
    return found.min, found.max


def _rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    found = torch.aminmax(x, dim=1)
    return found.min, found.max
