"""The three states of a program on its way to integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram

from workbench.quantization.fold_batch_norm import FoldedNorm
from workbench.quantization.plan import Plan
from workbench.quantization.report import node_report, observer_report

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CalibratedProgram", "PreparedProgram"]


@dataclass(frozen=True)
class PreparedProgram:
    """A program in floats with a plan of what shall be quantized.

    Attributes:
        program: The program, ready to be quantized: batch norms are folded, weights computed.
        plan: What is quantized, and how.
        norms: The batch norms that were folded.
        origin: The program that was prepared.
    """

    program: ExportedProgram
    plan: Plan
    norms: tuple[FoldedNorm, ...] = field(default=(), repr=False)
    origin: ExportedProgram | None = field(default=None, repr=False, compare=False)

    @property
    def report(self) -> pd.DataFrame:
        """A row for each operator: quantized (how), or float (why)."""
        return node_report(self.program, self.plan)

    def digest(self) -> Iterator[bytes]:
        """The plan's content, for fingerprints."""
        yield from _digest(self.plan)


@dataclass(frozen=True)
class CalibratedProgram:
    """A prepared program with what its observers saw.

    Attributes:
        program: The program in floats.
        plan: What is quantized, and how.
        observers: By the name of the group, its observer; weights have theirs, too.
        samples: How many samples were seen.
    """

    program: ExportedProgram
    plan: Plan
    observers: Mapping[str, Any] = field(repr=False)
    samples: int = 0

    @property
    def report(self) -> pd.DataFrame:
        """As of `PreparedProgram`, with scales and zero points."""
        return node_report(self.program, self.plan, self.observers)

    @property
    def observer_report(self) -> pd.DataFrame:
        """A row for each group of tensors: range, scale, zero point, clipped share; arrays of histograms."""
        return observer_report(self.program, self.plan, self.observers)

    def digest(self) -> Iterator[bytes]:
        """The content of plan and observers, for fingerprints."""
        yield from _digest(self.plan)
        for group in self.plan.groups:
            observer = self.observers.get(group.name)
            if observer is not None and not group.spec.dynamic:
                scale, zero = observer.calculate_qparams()
                yield group.name.encode() + scale.numpy().tobytes() + zero.numpy().tobytes()


def _digest(plan: Plan) -> Iterator[bytes]:
    for group in plan.groups:
        points = " ".join(map(str, group.points))
        yield f"{group.spec} {group.spec.scale} {group.spec.zero_point} {points}".encode()
    yield repr(sorted(plan.decisions.items())).encode()
