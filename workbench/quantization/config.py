"""How the tensors of an operator are quantized, as one value that can be written as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from workbench.component import check_fields
from workbench.errors import QuantizationError
from workbench.quantization import pt2e
from workbench.quantization.observers import named

__all__ = ["QuantizationConfig", "get_symmetric_quantization_config"]


@dataclass(frozen=True)
class QuantizationConfig:
    """How operators are quantized: 8-bit activations, 8- or 4-bit weights with a zero point of zero.

    Attributes:
        is_per_channel: Each output channel of a weight has a scale of its own.
        is_qat: The scales are trained along with the weights.
        is_dynamic: The scales of activations are chosen when the program runs.
        act_qmin: Smallest number of activations.
        act_qmax: Largest one.
        weight_qmin: Smallest number of weights.
        weight_qmax: Largest one.
        weight_bits: 8 or 4.
        group_size: Elements of a row of a linear layer's weight that share a scale; None for whole rows.
        per_token: Dynamic scales are chosen for each row; otherwise for a whole tensor.
        observer: Short name of the observer of activations (`workbench.quantization.observers`).
        observer_options: Its arguments.
        weight_method: `"min_max"` or `"mse"`.
        weights_only: Activations stay in floats.
    """

    is_per_channel: bool = True
    is_qat: bool = False
    is_dynamic: bool = False
    act_qmin: int = -128
    act_qmax: int = 127
    weight_qmin: int = -127
    weight_qmax: int = 127
    weight_bits: int = 8
    group_size: int | None = None
    per_token: bool = True
    observer: str = "histogram"
    observer_options: Mapping[str, Any] = field(default_factory=dict)
    weight_method: str = "min_max"
    weights_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "observer_options", dict(self.observer_options))
        object.__setattr__(self, "_specs", {})
        for name, low, high in (
            ("act", self.act_qmin, self.act_qmax),
            ("weight", self.weight_qmin, self.weight_qmax),
        ):
            if not -128 <= low < high <= 127:
                raise QuantizationError(
                    f"the range of {name}s does not fit int8",
                    expected=f"-128 <= {name}_qmin < {name}_qmax <= 127",
                    found=f"[{low}, {high}]",
                )
        if self.weight_bits not in (4, 8):
            raise QuantizationError("weights have 8 or 4 bits", found=str(self.weight_bits))
        if self.group_size is not None and (self.group_size < 2 or not self.is_per_channel):
            raise QuantizationError(
                "the group size is out of range",
                expected="at least 2, with is_per_channel=True",
                found=f"{self.group_size}, is_per_channel={self.is_per_channel}",
            )
        try:
            named(self.observer)(**self.observer_options)
        except TypeError as error:
            raise QuantizationError(
                f"the observer {self.observer} refuses its options", found=str(error)
            ) from error

    def __hash__(self) -> int:
        return hash(str(self.to_data()))

    # ---- what PT2E asks for: the same objects each time, since they are compared by identity ---------------

    @property
    def input_activation(self) -> Any:
        """The spec of inputs, or None where activations stay in floats."""
        return None if self.weights_only else self._spec("activation", self._activation)

    @property
    def input_tensor(self) -> Any:
        """As `input_activation`, with one scale for a whole tensor: rows of images are no tokens."""
        if not self.is_dynamic or self.weights_only:
            return self.input_activation
        return self._spec("tensor", lambda: self._activation("tensor"))

    @property
    def output_activation(self) -> Any:
        """The spec of results; None with dynamic scales."""
        return None if self.is_dynamic else self.input_activation

    @property
    def weight(self) -> Any:
        """The spec of weights, with channels along axis 0."""
        return self.weight_along(0)

    @property
    def bias(self) -> Any:
        """None: a bias stays in floats, and is added before the result is rounded."""
        return None

    def weight_along(self, axis: int) -> Any:
        """The spec of weights whose output channels lie along another axis."""
        return self._spec(f"weight{axis}", lambda: self._weight(axis))

    def _spec(self, name: str, make: Any) -> Any:
        known: dict[str, Any] = self._specs  # type: ignore[attr-defined]
        if name not in known:
            known[name] = make()
        return known[name]

    def _activation(self, mode: str = "") -> Any:
        if self.is_dynamic:
            mode = mode or ("token" if self.per_token else "tensor")
            constructor = named("dynamic").with_args(dynamic=mode)
        else:
            constructor = named(self.observer).with_args(**self.observer_options)
        return pt2e.QuantizationSpec(
            dtype=torch.int8,
            quant_min=self.act_qmin,
            quant_max=self.act_qmax,
            qscheme=torch.per_tensor_affine,
            is_dynamic=self.is_dynamic,
            observer_or_fake_quant_ctr=constructor,
        )

    def _weight(self, axis: int) -> Any:
        options: dict[str, Any] = {"method": self.weight_method}
        if self.group_size is not None:
            options["group_size"] = self.group_size
        low, high = (-8, 7) if self.weight_bits == 4 else (self.weight_qmin, self.weight_qmax)
        return pt2e.QuantizationSpec(
            dtype=torch.int8,
            quant_min=low,
            quant_max=high,
            qscheme=torch.per_channel_symmetric if self.is_per_channel else torch.per_tensor_symmetric,
            ch_axis=axis if self.is_per_channel else None,
            is_dynamic=False,
            observer_or_fake_quant_ctr=named("weights").with_args(**options),
        )

    # ---- as data -------------------------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """What differs from the default, as JSON data."""
        found = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            default = {} if item.name == "observer_options" else item.default
            if value != default:
                found[item.name] = value
        return found

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> QuantizationConfig:
        """The config that `to_data` gave; raises `RecipeError` where a field is not known."""
        check_fields(cls, data)
        return cls(**data)

    def __str__(self) -> str:
        weight = f"{self.weight_bits}-bit weights"
        if self.group_size is not None:
            weight += f" in groups of {self.group_size}"
        elif self.is_per_channel:
            weight += " per channel"
        if self.weights_only:
            return weight
        if self.is_dynamic:
            return f"int8 inputs per {'token' if self.per_token else 'tensor'} at run time, {weight}"
        return f"int8 activations ({self.observer}), {weight}"


def get_symmetric_quantization_config(
    is_per_channel: bool = False,
    is_qat: bool = False,
    is_dynamic: bool = False,
    act_qmin: int = -128,
    act_qmax: int = 127,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
    **options: Any,
) -> QuantizationConfig:
    """A config under the name and with the defaults that users of ExecuTorch know.

    Args:
        is_per_channel: As of `QuantizationConfig`, as are the others.
        is_qat: See there.
        is_dynamic: See there.
        act_qmin: See there.
        act_qmax: See there.
        weight_qmin: See there.
        weight_qmax: See there.
        **options: Further fields of `QuantizationConfig`.

    Raises:
        QuantizationError: A value is out of range.
        RecipeError: There is no such option.
    """
    given = {
        "is_per_channel": is_per_channel or options.get("group_size") is not None,
        "is_qat": is_qat,
        "is_dynamic": is_dynamic,
        "act_qmin": act_qmin,
        "act_qmax": act_qmax,
        "weight_qmin": weight_qmin,
        "weight_qmax": weight_qmax,
    }
    return QuantizationConfig.from_data({**given, **options})
