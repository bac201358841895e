"""The graph that the passes work on: nodes are XNNPACK's subgraph calls, values are tensors.

It is made from a partition (`builder.py`), rewritten (`passes/`), and written (`serialize.py`). Until the
layout pass has run, shapes and axes are in PyTorch's order of dimensions; afterwards in that of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from workbench.backends.xnnpack.quantization import Quantization, permuted

__all__ = ["Bounds", "Call", "Graph", "Value"]

Bounds = tuple[float, float]


class Value:
    """A tensor: an input of the graph, a constant, or the result of a call.

    Args:
        shape: Sizes; of a dimension that changes at run time the largest that is known.
        dtype: Element type.
        data: The tensor of a constant, of any strides.
        free: Dimensions whose size changes at run time.
        producer: The call that computes it.
        quantization: How integers stand for numbers; None where they do not.
    """

    __slots__ = ("data", "dtype", "free", "producer", "quantization", "shape")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        data: torch.Tensor | None = None,
        free: Iterable[int] = (),
        producer: Call | None = None,
        quantization: Quantization | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.data = data
        self.free = frozenset(free)
        self.producer = producer
        self.quantization = quantization

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements, at most."""
        return math.prod(self.shape)

    def permuted(self, order: Sequence[int]) -> Value:
        """A value of this one's type whose dimensions are these of this one."""
        data = None if self.data is None else self.data.permute(*order)
        free = [i for i, d in enumerate(order) if d in self.free]
        sizes = [self.shape[d] for d in order]
        return Value(sizes, self.dtype, data, free, quantization=permuted(self.quantization, order))

    def like(self) -> Value:
        """Another value of this one's type and sizes, not yet computed."""
        return Value(self.shape, self.dtype, free=self.free, quantization=self.quantization)

    def __repr__(self) -> str:
        sizes = ", ".join(f"<={n}" if i in self.free else str(n) for i, n in enumerate(self.shape))
        kind = "constant" if self.data is not None else "value"
        how = f" ({self.quantization})" if self.quantization is not None else ""
        return f"{kind} {str(self.dtype).removeprefix('torch.')}[{sizes}]{how}"


@dataclass(eq=False)
class Call:
    """One call of the library.

    Attributes:
        kind: A member of the schema's union `Operator`.
        inputs: In the order of the table's fields; None where an optional input is left out.
        output: What it computes.
        fields: The table's other fields.
        bounds: A clamp of the result.
        origins: The operators of the partition that it stands for.
    """

    kind: str
    inputs: list[Value | None]
    output: Value
    fields: dict[str, Any] = field(default_factory=dict)
    bounds: Bounds | None = None
    origins: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        self.output.producer = self

    @property
    def given(self) -> list[Value]:
        """The inputs that are there."""
        return [value for value in self.inputs if value is not None]

    def clamp(self, bounds: Bounds) -> None:
        """Clamp the result, after what it is clamped to already."""
        low, high = bounds
        if self.bounds is None:
            self.bounds = bounds
        else:
            # min(max(min(max(x, a), b), low), high), as one clamp.
            clipped = [min(max(bound, low), high) for bound in self.bounds]
            self.bounds = (clipped[0], clipped[1])

    def absorb(self, *others: Call) -> None:
        """Stand for the operators of other calls too."""
        self.origins = tuple(dict.fromkeys((*self.origins, *(o for c in others for o in c.origins))))


class Graph:
    """Calls in an order in which they can run, with the inputs and outputs of the delegate.

    Attributes:
        unfused: Calls on numbers that stand between integers, why, and what would be needed.
    """

    def __init__(self) -> None:
        self.unfused: list[tuple[Call, str, str]] = []
        self.calls: list[Call] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []

    def add(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        output: Value,
        origins: Sequence[Node] = (),
        **fields: Any,
    ) -> Value:
        """Append a call; gives its result."""
        self.calls.append(Call(kind, list(inputs), output, fields, None, tuple(origins)))
        return output

    def readers(self) -> dict[Value, list[Call]]:
        """For each value the calls that read it, once each; outputs of the graph are not counted."""
        found: dict[Value, list[Call]] = {}
        for call in self.calls:
            for value in dict.fromkeys(call.given):
                found.setdefault(value, []).append(call)
        return found

    def only_reader(self, value: Value, readers: dict[Value, list[Call]]) -> Call | None:
        """The call that alone reads a value, which is no output; else None."""
        found = readers.get(value, ())
        return found[0] if len(found) == 1 and value not in self._output_set() else None

    def _output_set(self) -> frozenset[Value]:
        return frozenset(self.outputs)

    def replace(self, old: Value, new: Value, readers: dict[Value, list[Call]]) -> None:
        """Let all that reads one value read another; keeps the table of readers right."""
        moved = readers.pop(old, [])
        for call in moved:
            call.inputs = [new if value is old else value for value in call.inputs]
        known = readers.setdefault(new, [])
        known.extend(call for call in moved if call not in known)
        self.outputs = [new if value is old else value for value in self.outputs]

    def remove_unread(self) -> int:
        """Drop the calls whose results nobody reads; gives their number."""
        live = set(self.outputs)
        kept = []
        for call in reversed(self.calls):
            if call.output in live:
                live.update(call.given)
                kept.append(call)
        dropped = len(self.calls) - len(kept)
        self.calls = kept[::-1]
        return dropped

    def count(self, kind: str) -> int:
        """How many calls of a kind there are."""
        return sum(call.kind == kind for call in self.calls)

    def constants(self) -> Iterator[Value]:
        """The constants that calls read, once each, in the order of their use."""
        seen: dict[Value, None] = {}
        for call in self.calls:
            seen.update((value, None) for value in call.given if value.data is not None)
        yield from seen
