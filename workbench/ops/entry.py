"""What the workbench knows of one operator: its kernel's name, shapes, types, tolerance and sample inputs.

An entry is the one place to add an operator (beside its kernel): the conformance tests draw their samples
from here, and `docs/operators.md` is written from here. Idea after torch's `opinfo` ("sample inputs beside
the operator").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from workbench.ops.out_variant import out_variant, wire_name

__all__ = [
    "ALL",
    "FLOATS",
    "INTEGERS",
    "REALS",
    "Make",
    "OperatorEntry",
    "Sample",
    "Tolerance",
    "maker",
]

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REALS = (*FLOATS, *INTEGERS)
ALL = (*REALS, torch.bool)


@dataclass(frozen=True)
class Tolerance:
    """How far a kernel's result may be from eager's: `|a - b| <= atol + rtol * |b|`."""

    rtol: float
    atol: float


_EXACT = Tolerance(0.0, 0.0)
_ROUNDING = {
    torch.float64: Tolerance(1e-9, 1e-10),
    torch.float32: Tolerance(1e-4, 1e-5),
    torch.float16: Tolerance(5e-3, 5e-3),
    torch.bfloat16: Tolerance(3e-2, 3e-2),
}


@dataclass(frozen=True)
class Sample:
    """Arguments for one call of an operator.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
        label: What the sample is there to try.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


Make = Callable[..., Tensor]
Samples = Callable[[torch.dtype, Make], Iterator[Sample]]


@dataclass(frozen=True)
class OperatorEntry:
    """One operator.

    Attributes:
        operator: The functional overload, as it stands in the edge dialect.
        family: The family of its kernel.
        shapes: The shape rule, in words and symbols.
        dtypes: Types of the first tensor for which samples exist.
        draw: Makes the samples of one type.
        exact: Whether the result is the same bit for bit.
        tolerances: Deviations from the default tolerance, by type.
        note: What is worth knowing.
    """

    operator: OpOverload
    family: str
    shapes: str
    dtypes: tuple[torch.dtype, ...]
    draw: Samples
    exact: bool = False
    tolerances: Mapping[torch.dtype, Tolerance] = field(default_factory=dict)
    note: str = ""

    @property
    def name(self) -> str:
        """The functional overload's name, for example `aten.add.Tensor`."""
        return str(self.operator)

    @property
    def kernel(self) -> str:
        """The name under which a runtime looks up the kernel, for example `aten::add.out`."""
        found = wire_name(self.operator)
        assert found is not None, self.name
        return found

    @property
    def schema(self) -> str:
        """The schema of the out-variant."""
        found = out_variant(self.operator)
        return str(found._schema) if found is not None else str(self.operator._schema)

    def tolerance(self, dtype: torch.dtype) -> Tolerance:
        """How far results of this type may be from eager's; integers and booleans must be equal."""
        if self.exact or dtype not in _ROUNDING:
            return _EXACT
        return self.tolerances.get(dtype, _ROUNDING[dtype])

    def samples(self, dtype: torch.dtype, *, seed: int = 0) -> Iterator[Sample]:
        """Arguments to call the operator with; the same for the same seed.

        Args:
            dtype: Type of the first tensor, one of `dtypes`.
            seed: Of the random numbers.
        """
        return self.draw(dtype, maker(dtype, seed))

    def expected(self, sample: Sample) -> Any:
        """What eager PyTorch answers to a sample."""
        with torch.no_grad():
            return self.operator(*sample.args, **sample.kwargs)


def maker(dtype: torch.dtype, seed: int) -> Make:
    """A function that makes random tensors of a type: `make(*sizes, low=-2, high=2, channels_last=False)`.

    Floats are uniform in `[low, high)`, integers uniform among the whole numbers of it (cut to the type),
    booleans fair coins.
    """
    generator = torch.Generator().manual_seed(seed)

    def make(
        *sizes: int,
        low: float = -2.0,
        high: float = 2.0,
        channels_last: bool = False,
        dtype: torch.dtype = dtype,
    ) -> Tensor:
        if dtype == torch.bool:
            tensor = torch.randint(0, 2, sizes, generator=generator).bool()
        elif dtype.is_floating_point:
            tensor = (torch.rand(sizes, generator=generator) * (high - low) + low).to(dtype)
        else:
            limits = torch.iinfo(dtype)
            first, last = max(int(low * 8), limits.min), min(int(high * 8), limits.max)
            tensor = torch.randint(first, max(last, first + 1), sizes, generator=generator).to(dtype)
        return tensor.to(memory_format=torch.channels_last) if channels_last else tensor

    return make


def entries(
    family: str,
    shapes: str,
    dtypes: tuple[torch.dtype, ...],
    rows: Mapping[OpOverload, Samples],
    **options: Any,
) -> list[OperatorEntry]:
    """Entries of operators that share all but their samples."""
    return [
        OperatorEntry(operator, family, shapes, dtypes, draw, **options) for operator, draw in rows.items()
    ]


_VECTOR_SIZES: Sequence[tuple[int, ...]] = ((), (0,), (1,), (7,), (3, 33), (2, 3, 64))


def each_size(low: float = -2.0, high: float = 2.0, *tail: Any, **kwargs: Any) -> Samples:
    """Samples of a unary operator: sizes around the width of vectors, none, scalars, channels-last."""

    def draw(dtype: torch.dtype, make: Make) -> Iterator[Sample]:
        for sizes in _VECTOR_SIZES:
            yield Sample((make(*sizes, low=low, high=high), *tail), kwargs, f"sizes {list(sizes)}")
        yield Sample(
            (make(2, 3, 4, 5, low=low, high=high, channels_last=True), *tail), kwargs, "channels-last"
        )

    return draw


def plain_name(operator: OpOverload) -> str:
    """An operator's name as an identifier, for the names of tests."""
    return re.sub(r"\W+", "_", str(operator))
