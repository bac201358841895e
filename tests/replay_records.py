"""Writes what `wb_replay` (native_runtime/replay/) reads: operators and programs with what came out here."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from workbench.emit.ir import SCALAR_TYPES

OPERATOR, PROGRAM = 1, 2
RELATIVE, OF_LARGEST = 1e-4, 1e-5

_DTYPES = {getattr(torch, name): number for name, number in SCALAR_TYPES.items()}


@dataclass(frozen=True)
class Tensor:
    """A tensor as it is recorded.

    Attributes:
        data: Its memory, in whatever dtype.
        quantization: Kind, bits, axis, group and zero point; none where elements are the numbers.
    """

    data: torch.Tensor
    shape: tuple[int, ...]
    dtype: torch.dtype
    quantization: tuple[int, ...] = ()
    scale: float = 1.0
    scales: torch.Tensor | None = None
    zero_points: torch.Tensor | None = None


def plain(tensor: torch.Tensor) -> Tensor:
    """A tensor of numbers."""
    return Tensor(tensor, tuple(tensor.shape), tensor.dtype)


class Records:
    """A file of records, appended to.

    Args:
        path: The file.
        per_operator: At most so many records of each operator; further ones are dropped.
        elements: Operators with more elements than this in all are dropped.
    """

    def __init__(self, path: Path, per_operator: int = 1 << 30, elements: int = 1 << 40) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self._per_operator = per_operator
        self._elements = elements
        self._parts: list[bytes] = []

    def operator(
        self,
        op: str,
        number: int,
        attributes: Sequence[tuple[str, int, float]],
        sizes: Sequence[tuple[int, int, int]],
        steps: Sequence[tuple[int, int, int, int, float, float]],
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor | None],
        post_inputs: Sequence[Tensor | None],
        constants: Sequence[int],
    ) -> None:
        """Add an operator of the engine with its outputs."""
        tensors = [t for t in (*inputs, *outputs, *post_inputs) if t is not None]
        if self.counts[op] >= self._per_operator or sum(t.data.numel() for t in tensors) > self._elements:
            return
        self.counts[op] += 1
        self._integers(OPERATOR)
        self._text(op)
        self._integers(number)
        self._reals(RELATIVE, OF_LARGEST)
        self._integers(len(attributes))
        for name, index, value in attributes:
            self._text(name)
            self._integers(index)
            self._reals(value)
        self._integers(len(sizes), *(n for size in sizes for n in size), len(steps))
        for *numbers, a, b in steps:
            self._integers(*map(int, numbers))
            self._reals(a, b)
        self._integers(len(inputs))
        for i, tensor in enumerate(inputs):
            self._tensor(tensor, constant=i in constants)
        for group in (outputs, post_inputs):
            self._integers(len(group))
            for tensor in group:
                self._tensor(tensor)
        self._flush()

    def program(
        self,
        name: str,
        path: Path,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        of_largest: float = OF_LARGEST,
    ) -> None:
        """Add a program (its method `forward`) with inputs and what eager PyTorch answers."""
        self.counts["program"] += 1
        self._integers(PROGRAM)
        self._text(name)
        self._text(str(path))
        self._reals(RELATIVE, of_largest)
        for group in (inputs, outputs):
            self._integers(len(group))
            for tensor in group:
                self._tensor(plain(tensor))
        self._flush()

    def _integers(self, *numbers: int) -> None:
        self._parts.append(struct.pack(f"<{len(numbers)}q", *numbers))

    def _reals(self, *numbers: float) -> None:
        self._parts.append(struct.pack(f"<{len(numbers)}d", *numbers))

    def _text(self, text: str) -> None:
        data = text.encode()
        self._integers(len(data))
        self._parts.append(data)

    def _tensor(self, tensor: Tensor | None, *, constant: bool = False) -> None:
        if tensor is None:
            self._integers(0)
            return
        data = _bytes(tensor.data)
        self._integers(1, int(constant), _DTYPES[tensor.dtype], len(tensor.shape), *tensor.shape, len(data))
        self._parts.append(data)
        self._integers(len(tensor.quantization), *tensor.quantization)
        if not tensor.quantization:
            return
        self._reals(tensor.scale)
        for array in (tensor.scales, tensor.zero_points):
            data = b"" if array is None else _bytes(array)
            self._integers(len(data))
            self._parts.append(data)

    def _flush(self) -> None:
        with self.path.open("ab") as file:
            file.writelines(self._parts)
        self._parts.clear()


def _bytes(tensor: torch.Tensor) -> bytes:
    if not tensor.numel():
        return b""
    return bytes(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())


def attribute_numbers(attributes: Mapping[str, object]) -> list[tuple[str, int, float]]:
    """Attributes as (name, index, number); `sizes` are left out."""
    result = []
    for name, value in attributes.items():
        if name == "sizes":
            continue
        numbers = value if isinstance(value, list | tuple) else [value]
        result += [(name, i, float(number)) for i, number in enumerate(numbers)]
    return result
