"""Scales of weights: of a whole tensor, of each channel, or of groups along the rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from workbench.errors import CalibrationError, QuantizationError
from workbench.quantization.observers.base import WEIGHT_EPS, Observer, ObserverReport, not_finite
from workbench.quantization.observers.parameters import affine, symmetric

__all__ = ["Weights"]


class Weights(Observer):
    """Sees one weight as a whole.

    Args:
        dtype: Integer type of the numbers.
        quant_min: Smallest number.
        quant_max: Largest number.
        qscheme: torch's name of the scheme; per-channel ones use `ch_axis`.
        ch_axis: Axis of the channels.
        group_size: Elements along a row of a matrix that share a scale; they must divide the row.
        method: `"min_max"`: nothing is clipped; `"mse"`: the least squared error of each channel or group.
        eps: Smallest scale.
        is_dynamic: As of torchao.

    Raises:
        QuantizationError: There is no such method.
    """

    kind: ClassVar[str] = "weights"

    def __init__(
        self,
        dtype: torch.dtype = torch.int8,
        quant_min: int = -127,
        quant_max: int = 127,
        qscheme: Any = torch.per_channel_symmetric,
        ch_axis: int = 0,
        group_size: int | None = None,
        method: str = "min_max",
        eps: float = WEIGHT_EPS,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, quant_min, quant_max, qscheme, eps, is_dynamic, histogram=False)
        if method not in ("min_max", "mse"):
            raise QuantizationError(
                "there is no such way to choose the scales of weights",
                expected="min_max or mse",
                found=repr(method),
            )
        self.ch_axis, self.group_size, self.method = ch_axis, group_size, method
        self._weight: torch.Tensor | None = None

    @property
    def per_channel(self) -> bool:
        """Whether channels have scales of their own."""
        return self.qscheme in (torch.per_channel_symmetric, torch.per_channel_affine)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the weight.

        Raises:
            CalibrationError: It holds NaN or infinities, or nothing.
            QuantizationError: Groups do not divide its rows.
        """
        seen = x.detach()
        if seen.numel() == 0:
            raise CalibrationError("a weight has no elements", stage="convert", node=self.name)
        low, high = torch.aminmax(self._rows(seen), dim=1)
        if not (bool(torch.isfinite(low).all()) and bool(torch.isfinite(high).all())):
            raise not_finite(seen, self.name)
        self.channel_min, self.channel_max = low.numpy(), high.numpy()
        self.axis = self.ch_axis if self.per_channel else None
        self.min_val, self.max_val = float(low.min()), float(high.max())
        self.tensors, self.elements = 1, seen.numel()
        self._weight = seen
        return x

    def _rows(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight as a matrix whose rows have one scale each."""
        if self.group_size is not None:
            if weight.dim() != 2 or self.ch_axis != 0 or weight.shape[1] % self.group_size:
                raise QuantizationError(
                    "the groups do not divide the rows of a weight",
                    node=self.name,
                    stage="convert",
                    expected=f"a matrix whose rows are multiples of {self.group_size}",
                    found=str(tuple(weight.shape)),
                    hint="choose another group_size, or per-channel scales, for this layer",
                )
            return weight.reshape(-1, self.group_size).float()
        if not self.per_channel:
            return weight.reshape(1, -1).float()
        return weight.movedim(self.ch_axis, 0).reshape(weight.shape[self.ch_axis], -1).float()

    def parameters(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Scales and zero points: (1,), (channels,) or (channels, groups)."""
        if self._weight is None:
            return super().parameters()
        symmetrical = self.qscheme in (torch.per_channel_symmetric, torch.per_tensor_symmetric)
        convert = symmetric if symmetrical else affine
        low, high = self.channel_min.astype(np.float64), self.channel_max.astype(np.float64)
        if self.method == "mse":
            low, high = self._searched(low, high, convert)
        # A channel of zeros is represented by any scale.
        silent = (low == 0) & (high == 0)
        low, high = np.where(silent, -1.0, low), np.where(silent, 1.0, high)
        scale, zero = convert(low, high, self.quant_min, self.quant_max, self.eps)
        if self.group_size is not None:
            shape = (self._weight.shape[0], -1)
            return scale.reshape(shape), zero.reshape(shape)
        return scale, zero

    def _searched(self, low: Any, high: Any, convert: Any) -> tuple[Any, Any]:
        """Of a grid of ranges for each row the one with the least squared error."""
        assert self._weight is not None
        rows = self._rows(self._weight)
        best = torch.full((rows.shape[0],), torch.inf)
        chosen = np.ones(rows.shape[0])
        for share in np.linspace(1.0, 0.5, 26):
            scale, zero = (
                torch.from_numpy(item).float()[:, None]
                for item in convert(low * share, high * share, self.quant_min, self.quant_max, self.eps)
            )
            numbers = (rows / scale).round_().clamp_(self.quant_min - zero, self.quant_max - zero)
            error = (numbers.mul_(scale) - rows).square_().sum(1)
            better = (error < best).numpy()
            best = torch.minimum(best, error)
            chosen = np.where(better, share, chosen)
        return low * chosen, high * chosen

    def report(self) -> ObserverReport:
        """The report, with a histogram of the weight."""
        made = super().report()
        assert self._weight is not None
        flat = self._weight.reshape(-1).float()
        counts = torch.histc(flat, 256, self.min_val, self.max_val)
        edges = np.linspace(self.min_val, self.max_val, 257)
        scale, zero = (torch.from_numpy(item.reshape(-1, 1)) for item in self.parameters())
        numbers = self._rows(self._weight) / scale + zero
        outside = (numbers < self.quant_min - 0.5) | (numbers > self.quant_max + 0.5)
        fields = {name: getattr(made, name) for name in made.__dataclass_fields__}
        fields.update(counts=counts.to(torch.int64).numpy(), edges=edges)
        fields.update(clipped=float(outside.double().mean()))
        return ObserverReport(**fields)
