"""Lower again with the edits, and measure the program before and after with the same inputs."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.utils._pytree import tree_leaves, tree_map

from workbench.backends.costs import boundaries
from workbench.errors import WorkbenchError
from workbench.lowering import Lowering
from workbench.runtime import Runtime
from workbench.stages import Exported
from workbench_widgets.context import Context
from workbench_widgets.partition.contract import PartitionMeasure, PartitionOutcome, PartitionRelower
from workbench_widgets.partition.document import cost_of
from workbench_widgets.partition.editor import PartitionSession

__all__ = ["relower"]

# Seconds that the executions may take together, at most this many for each program.
_BUDGET = 1.2
_EXECUTIONS = 15


@dataclass
class _Side:
    """One program: what it takes, and what an execution of it gave."""

    program_bytes: float
    arena_bytes: float
    crossing_bytes: float
    partitions: int
    delegated: int
    execute: Callable[[list[Any]], Any] | None = None
    outputs: list[Any] | None = None
    times: list[float] | None = None


def relower(context: Context, request: PartitionRelower) -> PartitionOutcome:
    """Write the edits to the recipe, lower in place, and compare with before.

    Raises:
        WorkbenchError: A step failed, for example since a backend can't run its partition; the lowering is as
            it was then, and the edits are still there to be undone.
    """
    session = context.state(PartitionSession)
    session.editing(request.method)
    session.note = ""
    lowering = context.lowering
    assert lowering is not None
    problem = ""
    before = _side(lowering, request.method)
    if request.run:
        problem = _load(before, lowering, request.method)
    start = time.perf_counter()
    context.update(session.recipe())
    seconds = time.perf_counter() - start
    after = _side(lowering, request.method)
    if request.run:
        problem = problem or _load(after, lowering, request.method)
        problem = problem or _run(lowering, request.method, before, after)
    reference = None
    if request.run and not problem:
        reference, problem = _reference(lowering, request.method)
    measures = _measures(before, after, reference)
    if request.run and before.outputs is not None:
        context.set_run(
            lowering.run(*lowering.example_inputs(request.method), method=request.method, profile=True)
        )
    return PartitionOutcome(measures, seconds, list(lowering.ran), problem)


def _side(lowering: Lowering, method: str) -> _Side:
    cost = cost_of(boundaries(lowering.partitioned._programs[method]))
    return _Side(
        len(lowering.program.serialized.buffer),
        lowering.plan.report.methods[method].size,
        cost.crossing_bytes,
        cost.partitions,
        cost.delegated,
    )


def _load(side: _Side, lowering: Lowering, method: str) -> str:
    """Load a program anew, with the state that it begins with; tells why it can't be."""
    try:
        side.execute = Runtime.get().load_program(lowering.program.buffer).load_method(method).execute
    except WorkbenchError as error:
        return error.message
    return ""


def _run(lowering: Lowering, method: str, before: _Side, after: _Side) -> str:
    """Run both in turn, so that what else the machine does meets both alike; tells why it can't be done."""
    sides = (before, after)
    try:
        for side in sides:
            assert side.execute is not None
            side.outputs, side.times = list(side.execute(lowering.example_inputs(method))), []
        inputs = lowering.example_inputs(method)
        end = time.perf_counter() + _BUDGET
        for number in range(_EXECUTIONS):
            for side in sides if number % 2 else sides[::-1]:
                assert side.execute is not None and side.times is not None
                start = time.perf_counter()
                side.execute(inputs)
                side.times.append(1e3 * (time.perf_counter() - start))
            if time.perf_counter() > end:
                break
    except WorkbenchError as error:
        before.outputs = after.outputs = None
        return error.message + (f": {error.hint}" if error.hint else "")
    return ""


# What exported programs give in PyTorch; a capture stays the same while its partition is edited.
_references: WeakKeyDictionary[Exported, dict[str, tuple[list[torch.Tensor] | None, str]]] = (
    WeakKeyDictionary()
)


def _reference(lowering: Lowering, method: str) -> tuple[list[torch.Tensor] | None, str]:
    """What the exported program gives for the example in PyTorch, or why it gives nothing."""
    known = _references.setdefault(lowering.exported, {})
    if method not in known:
        known[method] = _eager(lowering, method)
    return known[method]


def _eager(lowering: Lowering, method: str) -> tuple[list[torch.Tensor] | None, str]:
    """The same, run now; the state of the stage is left as it was."""
    program = lowering.exported.exported_program(method)
    assert program.example_inputs is not None  # the programs ran with them
    args, kwargs = tree_map(_copied, program.example_inputs)
    try:
        module = program.module()
        for part in module.modules():
            part._buffers = {name: _copied(buffer) for name, buffer in part._buffers.items()}
        with torch.no_grad():
            outputs = module(*args, **kwargs)
    except Exception as error:  # PyTorch's own, of any kind: without it there is no error to tell
        return None, f"no error is told, since PyTorch could not run the exported program: {error}"
    return [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor)], ""


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _measures(before: _Side, after: _Side, reference: list[torch.Tensor] | None) -> list[PartitionMeasure]:
    found = []
    if before.times and after.times:
        note = f"median of {len(after.times)} executions each, in turn"
        found.append(
            PartitionMeasure(
                "Time", "ms", statistics.median(before.times), statistics.median(after.times), "less", note
            )
        )
    found += [
        PartitionMeasure("Program", "bytes", before.program_bytes, after.program_bytes, "less", ""),
        PartitionMeasure("Memory", "bytes", before.arena_bytes, after.arena_bytes, "less", "as planned"),
        PartitionMeasure(
            "Crossing", "bytes", before.crossing_bytes, after.crossing_bytes, "less",
            "into and out of delegates, each execution",
        ),
        PartitionMeasure("Partitions", "count", before.partitions, after.partitions, "neither", ""),
        PartitionMeasure("Delegated", "count", before.delegated, after.delegated, "neither", "operators"),
    ]  # fmt: skip
    if reference is not None:
        errors = [_error(reference, side.outputs or []) for side in (before, after)]
        note = "largest absolute difference to the exported program in PyTorch"
        found.append(PartitionMeasure("Error", "error", errors[0][0], errors[1][0], "less", note))
        note = "signal to noise against the exported program in PyTorch"
        found.append(PartitionMeasure("SQNR", "dB", errors[0][1], errors[1][1], "more", note))
    return found


def _error(reference: Iterable[torch.Tensor], outputs: Iterable[Any]) -> tuple[float | None, float | None]:
    """Largest absolute difference, and SQNR in dB (None where nothing differs or nothing can be compared)."""
    found = [output for output in outputs if isinstance(output, torch.Tensor)]
    wanted = list(reference)
    if len(found) != len(wanted) or any(a.shape != b.shape for a, b in zip(wanted, found, strict=True)):
        return None, None
    largest = signal = noise = 0.0
    for a, b in zip(wanted, found, strict=True):
        if not a.numel():
            continue
        difference = b.double() - a.double()
        largest = max(largest, difference.abs().max().item())
        signal += a.double().square().sum().item()
        noise += difference.square().sum().item()
    ratio = 10 * math.log10(signal / noise) if signal > 0 and noise > 0 else None
    return (largest if math.isfinite(largest) else None), ratio
