"""Intermediate outputs of a run against eager PyTorch's.

The reference graph is run node by node; each result is compared with the recorded value of the
instruction that stands for the node, and then forgotten, so that no more lives than in an ordinary run.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Interpreter
from torch.fx import Node as FxNode
from torch.utils import _pytree as pytree

from workbench import provenance
from workbench.errors import TraceError
from workbench.inspector.events import Event

__all__ = ["DISTANCES", "Comparison", "Distance", "compare"]

Metric: TypeAlias = Callable[[torch.Tensor, torch.Tensor], float]
Distance: TypeAlias = str | Metric


def sqnr(reference: torch.Tensor, value: torch.Tensor) -> float:
    """Signal to quantization noise ratio, in dB; infinite where the values are equal."""
    noise = float((reference - value).square().sum())
    signal = float(reference.square().sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def mse(reference: torch.Tensor, value: torch.Tensor) -> float:
    """Mean of the squared difference."""
    return float((reference - value).square().mean())


def max_error(reference: torch.Tensor, value: torch.Tensor) -> float:
    """Largest absolute difference."""
    return float((reference - value).abs().max())


def l1(reference: torch.Tensor, value: torch.Tensor) -> float:
    """Sum of the absolute differences."""
    return float((reference - value).abs().sum())


def cosine(reference: torch.Tensor, value: torch.Tensor) -> float:
    """Cosine of the angle between the two as vectors; 1 where both are 0."""
    norms = float(reference.norm() * value.norm())
    if norms == 0:
        return 1.0 if float((reference - value).abs().max()) == 0 else 0.0
    return float((reference * value).sum()) / norms


DISTANCES: dict[str, Metric] = {
    "SQNR": sqnr,
    "SNR": sqnr,
    "MSE": mse,
    "MAX_ERROR": max_error,
    "L1": l1,
    "COSINE": cosine,
}


@dataclass(frozen=True)
class Comparison:
    """The outcome of a comparison.

    Attributes:
        table: A row for each value that both sides have, in program order.
        unmatched: A row for each node of the reference without a recorded value: node, operator, source,
            reason.
    """

    table: pd.DataFrame
    unmatched: pd.DataFrame


def compare(
    events: Iterable[Event], program: ExportedProgram, inputs: Sequence[Any], distance: Distance
) -> Comparison:
    """Compare the values of a run with eager PyTorch's.

    Args:
        events: The events of one execution of the method, with values and debug handles.
        program: The reference; nodes have debug handles. Its buffers are read in their initial state.
        inputs: The inputs of the run.
        distance: As of `Inspector.calculate_numeric_gap`.

    Raises:
        TraceError: The distance is unknown, or the inputs do not fit the program.
    """
    metric = distance if callable(distance) else DISTANCES.get(distance.strip().upper())
    if metric is None:
        raise TraceError("unknown distance", expected=", ".join(DISTANCES), found=str(distance))
    runner = _Runner(program, _Recorded(events), metric)
    with torch.no_grad():
        runner.run(*_bind(program, inputs))
    unmatched = pd.DataFrame(runner.unmatched, columns=["node", "op", "source", "reason"])
    table = pd.DataFrame(runner.rows, columns=list(_COLUMNS))
    table.attrs["unmatched"] = unmatched
    return Comparison(table, unmatched)


_COLUMNS = (
    "aot_debug_handle",
    "aot_ops",
    "runtime_ops",
    "runtime_debug_handle",
    "instruction",
    "inside",
    "output_index",
    "shape",
    "dtype",
    "gap",
    "max_abs_error",
    "max_abs_reference",
    "source",
    "module",
    "stacktraces",
)


class _Recorded:
    """The recorded values, found by debug handle."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_handle: dict[int, list[Event]] = {}
        covered: set[int] = set()
        chosen = []
        for event in events:
            if event.debug_data and event.debug_handles:
                chosen.append(event)
                if event.is_delegated_op:
                    covered.add(event.instruction)
        for event in chosen:
            # The call of a delegate says nothing new where the delegate tells its inside.
            if event.instruction in covered and not event.is_delegated_op:
                continue
            for handle in event.debug_handles:
                self._by_handle.setdefault(handle, []).append(event)

    def find(self, handle: int) -> list[Event]:
        """The events that stand for a handle, in program order."""
        return sorted(self._by_handle.get(handle, ()), key=lambda event: event.instruction)


class _Runner(Interpreter):
    """Runs the reference and compares on the way."""

    def __init__(self, program: ExportedProgram, recorded: _Recorded, metric: Metric) -> None:
        super().__init__(program.graph_module, garbage_collect_values=True)
        self.rows: list[tuple[Any, ...]] = []
        self.unmatched: list[tuple[str, str, str | None, str]] = []
        self._recorded, self._metric = recorded, metric
        self._used: dict[int, set[int]] = {}  # of each event, which values have found their node
        self._shown = _shown_by(program.graph_module, recorded)

    def run_node(self, n: FxNode) -> Any:
        """Run one node, and compare its result."""
        result = super().run_node(n)
        if n.op == "call_function" and n.target is not operator.getitem:
            self._check(n, result)
        return result

    def _check(self, node: FxNode, result: Any) -> None:
        values = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        handle = node.meta.get("debug_handle")
        if not values:
            return
        if not isinstance(handle, int):
            return self._skip(node, "the node has no debug handle")
        events = self._recorded.find(handle)
        if not events:
            return self._skip(node, "no instruction stands for it: folded, aliased or fused away")
        event = self._shown.get(node)
        if event is None:
            return self._skip(node, f"inside of {events[-1].name}, whose result is that of a later node")
        self._match(node, values, handle, event)
        return None

    def _match(self, node: FxNode, values: list[torch.Tensor], handle: int, event: Event) -> None:
        recorded = [v for v in pytree.tree_leaves(event.debug_data) if isinstance(v, torch.Tensor)]
        used = self._used.setdefault(id(event), set())
        found = False
        for index, value in enumerate(values):
            place = _counterpart(value, index, recorded, used, len(values))
            if place is None:
                continue
            used.add(place)
            found = True
            self.rows.append(self._row(node, value, recorded[place], handle, event, index))
        if not found:
            shapes = ", ".join(str(tuple(v.shape)) for v in recorded)
            self._skip(node, f"{event.name} recorded other shapes: {shapes}")

    def _row(
        self, node: FxNode, value: torch.Tensor, recorded: torch.Tensor, handle: int, event: Event, index: int
    ) -> tuple[Any, ...]:
        reference = value.detach().to(torch.float64)
        return (
            (handle,),
            [node.name],
            [event.name],
            event.debug_handles,
            event.instruction,
            bool(event.is_delegated_op),
            index,
            tuple(value.shape),
            str(value.dtype).removeprefix("torch."),
            _distance(self._metric, reference, recorded.to(torch.float64)),
            _distance(max_error, reference, recorded.to(torch.float64)),
            float(reference.abs().max()) if reference.numel() else 0.0,
            provenance.source_line(node),
            provenance.module_path(node)[0],
            {node.name: node.meta.get("stack_trace")},
        )

    def _skip(self, node: FxNode, reason: str) -> None:
        name = getattr(node.target, "__name__", str(node.target))
        self.unmatched.append((node.name, name, provenance.source_line(node), reason))


def _distance(metric: Metric, reference: torch.Tensor, value: torch.Tensor) -> float:
    """The distance over all places where both are finite; NaN where only one side is, or signs differ."""
    if reference.numel() == 0:
        return metric(torch.zeros(1), torch.zeros(1))
    same = (reference == value) | (reference.isnan() & value.isnan())
    finite = reference.isfinite() & value.isfinite()
    if not bool((same | finite).all()):
        return math.nan
    if bool(finite.all()):
        return metric(reference, value)
    return (
        metric(reference[finite], value[finite])
        if bool(finite.any())
        else metric(torch.zeros(1), torch.zeros(1))
    )


def _counterpart(
    value: torch.Tensor, index: int, recorded: list[torch.Tensor], used: set[int], count: int
) -> int | None:
    """Which recorded tensor belongs to a result: at the same place, or the only one of that shape."""
    if count == len(recorded) and index not in used and recorded[index].shape == value.shape:
        return index
    fits = [i for i, other in enumerate(recorded) if i not in used and other.shape == value.shape]
    return fits[0] if fits else None


def _shown_by(module: GraphModule, recorded: _Recorded) -> dict[FxNode, Event]:
    """For each node whose result an event shows, the event.

    An event that stands for several nodes (a delegate, a fused kernel) shows the results that leave the
    group: of nodes with a user outside. Where as many events as nodes share a handle, they belong together
    in order.
    """
    by_handle: dict[int, list[FxNode]] = {}
    for node in module.graph.nodes:
        handle = node.meta.get("debug_handle")
        if node.op == "call_function" and node.target is not operator.getitem and isinstance(handle, int):
            by_handle.setdefault(handle, []).append(node)
    event_of: dict[FxNode, Event] = {}
    for handle, nodes in by_handle.items():
        events = recorded.find(handle)
        if len(events) == len(nodes):
            event_of.update(zip(nodes, events, strict=True))
        elif events:
            event_of.update(dict.fromkeys(nodes, events[-1]))
    return {
        node: event
        for node, event in event_of.items()
        if not _users(node) or any(event_of.get(user) is not event for user in _users(node))
    }


def _users(node: FxNode) -> list[FxNode]:
    """The users of a node, looking through the picks of single results."""
    users: list[FxNode] = []
    for user in node.users:
        users.extend(_users(user) if user.target is operator.getitem else [user])
    return users


def _bind(program: ExportedProgram, inputs: Sequence[Any]) -> list[Any]:
    """The values of all placeholders: weights and buffers by name, then the user's inputs."""
    given = iter(pytree.tree_leaves(list(inputs)))
    values: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            try:
                value = next(given)
            except StopIteration:
                raise TraceError(
                    "too few inputs for the reference",
                    expected=str(len(program.graph_signature.user_inputs)),
                    found=str(len(inputs)),
                ) from None
        elif spec.target in program.state_dict:
            value = program.state_dict[spec.target]
        else:
            value = program.constants[spec.target]
        # The reference must not change the program's buffers.
        is_state = spec.kind == InputKind.BUFFER and isinstance(value, torch.Tensor)
        values.append(value.clone() if is_state else value)
    return values
