"""Nodes of several lowerings, and events of their runs, put together by what they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.fx import Node

from workbench import provenance
from workbench.emit import ir
from workbench.errors import TraceError, WorkbenchError
from workbench.inspector import Event
from workbench.lowering import Lowering
from workbench.run import Run, Runnable
from workbench.stages import Lowered

__all__ = ["Entry", "Group", "Inside", "Joined", "Part", "Side", "error", "join"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A node of a lowered graph, or an instruction of a program from a file.

    Attributes:
        name: Its name.
        operator: Its operator, or the backend that it calls.
        shape: Dtype and sizes of what it writes.
        nbytes: Bytes that it writes; dynamic sizes count as in the example input.
        handles: Its source handles.
    """

    name: str
    operator: str
    shape: str
    nbytes: int
    handles: frozenset[int]


@dataclass(frozen=True, slots=True)
class Inside:
    """Something that ran inside a delegate.

    Attributes:
        name: The backend's own identifier.
        milliseconds: Median time of one execution; None where only values were recorded.
        handles: Source handles of what it stands for; empty where the backend does not tell.
    """

    name: str
    milliseconds: float | None
    handles: frozenset[int]


@dataclass(slots=True)
class Part:
    """What one side has in a group: as of `workbench.compare.Cell`."""

    nodes: list[Entry] = field(default_factory=list)
    milliseconds: float | None = None
    value: torch.Tensor | None = None
    inside: list[Inside] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """Nodes that come from the same exported nodes: their names, and by the number of a side its part."""

    origins: set[str] = field(default_factory=set)
    parts: dict[int, Part] = field(default_factory=dict)


@dataclass(frozen=True)
class Joined:
    """Groups in the order of the first side, then of the others."""

    sides: Sequence[Side]
    groups: Sequence[Group]


class Side:
    """What is compared: nodes by what they come from, with what a run says about them.

    Attributes:
        ran: It is a run.
        by_instruction: Nothing is known of where its nodes come from: they are the instructions.
        method: The method of its program.
        family: The same object for sides whose source handles mean the same.
        handles: By the name of an exported node its source handle.
        sources: By the name of an exported node what is known of it.
        entries: Each node with the names of what it comes from.
        events: The Inspector's events of a run.
        arena_bytes: Planned memory.
        program_bytes: Size of the file.
    """

    def __init__(self, side: Runnable | Run, of: Lowering | None, method: str) -> None:
        self.ran = isinstance(side, Run)
        self.events: list[Event] = []
        if isinstance(side, Run):
            self.events = list(side.events_of(method, None if of is None else of.symbols))
        self.handles: Mapping[str, int] = {}
        self.sources: Mapping[str, provenance.Source] = {}
        self.by_instruction = of is None
        owner = side.of if isinstance(side, Run) else side
        program = owner._program() if of is None else of._program()
        names = [item.name for item in program.methods]
        if method not in names:
            raise WorkbenchError(f"a side has no method '{method}'", expected=", ".join(names))
        self.method = program.method(method)
        self.arena_bytes = sum(self.method.arena_sizes)
        self.family: Any = owner.selection if of is None else of.selection
        if of is None:
            self.program_bytes = _size(owner)
            self._names: Mapping[int, str] = {}
            self.entries = [(frozenset((entry.name,)), entry) for entry in _instructions(self.method)]
            self.handles = {entry.name: index + 1 for index, (_, entry) in enumerate(self.entries)}
            return
        self.program_bytes = len(of.program.serialized.buffer)
        sources = provenance.source_map(of.lowered._programs[method])
        # Names, not numbers: the exported graphs of two sides may count differently.
        self._names = {source.handle: source.name for source in sources if source.target != source.name}
        self.handles = {name: handle for handle, name in reversed(self._names.items())}
        self.sources = {source.name: source for source in sources}
        self.entries = [
            (self._origins(entry.handles) or frozenset((f"{id(self)}:{entry.name}",)), entry)
            for entry in _nodes(of.lowered, method)
        ]

    def origins_of(self, event: Event) -> frozenset[str]:
        """What an event of the run comes from."""
        if self.by_instruction:
            instructions = self.method.instructions
            known = 0 <= event.instruction < len(instructions)
            return frozenset((self.entries[event.instruction][1].name,)) if known else frozenset()
        return self._origins(handle for node in event.nodes for handle in node.source_handles)

    def _origins(self, handles: Iterable[int]) -> frozenset[str]:
        return frozenset(self._names[handle] for handle in handles if handle in self._names)


class _Groups:
    """Disjoint sets of exported nodes."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        root = name
        while (parent := self._parent.setdefault(root, root)) != root:
            root = parent
        while self._parent[name] != root:
            self._parent[name], name = root, self._parent[name]
        return root

    def join(self, names: frozenset[str]) -> None:
        first, *others = (self.find(name) for name in names)
        for other in others:
            self._parent[self.find(other)] = self.find(first)


def join(given: Sequence[Runnable | Run], method: str) -> Joined:
    """Put sides together.

    Args:
        given: Lowerings, programs from files, and runs of either.
        method: The method.

    Raises:
        WorkbenchError: A side has no such method, or nothing says how the sides belong together.
    """
    owners = _lowerings(given)
    sides = [Side(side, of, method) for side, of in zip(given, owners, strict=True)]
    _check_instructions(sides)
    sets = _Groups()
    for side in sides:
        for origins, _ in side.entries:
            sets.join(origins)
    groups: dict[str, Group] = {}
    for index, side in enumerate(sides):
        for origins, entry in side.entries:
            group = groups.setdefault(sets.find(next(iter(origins))), Group())
            group.origins |= origins
            group.parts.setdefault(index, Part()).nodes.append(entry)
    for index, side in enumerate(sides):
        _add_events(index, side, sets, groups)
    return Joined(sides, list(groups.values()))


def _add_events(index: int, side: Side, sets: _Groups, groups: Mapping[str, Group]) -> None:
    """Add the times and values of a run to the groups of the nodes that they are of."""
    # Each way through control flow has events of its own for the same instruction.
    times: dict[tuple[int, int | str | None], tuple[Part, Event, list[float]]] = {}
    for event in side.events:
        origins = side.origins_of(event)
        group = groups.get(sets.find(min(origins))) if origins else None
        part = None if group is None else group.parts.get(index)
        if part is None:
            continue
        raw = [] if event.perf_data is None else event.perf_data.raw
        key = (event.instruction, event.delegate_debug_identifier)
        times.setdefault(key, (part, event, []))[2].extend(raw)
        tensors = [value for value in event.debug_data if isinstance(value, torch.Tensor)]
        if tensors and event.delegate_debug_identifier is None:
            part.value = tensors[-1]
    found = _medians([raw for _, _, raw in times.values()])
    for (part, event, _), milliseconds in zip(times.values(), found, strict=True):
        if event.delegate_debug_identifier is not None:
            # It is part of the time of the delegate's call.
            handles = frozenset(handle for node in event.nodes for handle in node.source_handles)
            part.inside.append(Inside(str(event.delegate_debug_identifier), milliseconds, handles))
        elif milliseconds is not None:
            part.milliseconds = (part.milliseconds or 0.0) + milliseconds


def _medians(lists: Sequence[Sequence[float]]) -> list[float | None]:
    """The median of each list, None for an empty one: lists of one length at once."""
    found: list[float | None] = [None] * len(lists)
    by_length: dict[int, list[int]] = {}
    for place, values in enumerate(lists):
        by_length.setdefault(len(values), []).append(place)
    for length, places in by_length.items():
        if length:
            middle = np.median(np.array([lists[place] for place in places]), axis=1)
            for place, value in zip(places, middle.tolist(), strict=True):
                found[place] = value
    return found


# ---- what a side is ----------------------------------------------------------------------------------------


def _lowerings(given: Sequence[Runnable | Run]) -> list[Lowering | None]:
    """For each side the lowering that tells where its nodes come from; None for all where there is none."""
    found: list[Lowering | None] = []
    for side in given:
        if not isinstance(side, Runnable | Run):
            raise WorkbenchError(
                "that can't be compared", expected="lowerings, runs, opened programs", found=repr(side)[:80]
            )
        lowering = side if isinstance(side, Lowering) else None
        if isinstance(side, Run) and side.joined:
            lowering = side.lowering
        found.append(lowering)
    known = [lowering for lowering in found if lowering is not None]
    if not known:
        return found
    for place, side in enumerate(given):
        if found[place] is None:
            content = _content(side.of if isinstance(side, Run) else side)
            found[place] = next((item for item in known if item.program.buffer == content), None)
            if found[place] is None:
                raise TraceError(
                    "nothing says which nodes of the lowering a program from a file has",
                    hint="compare it with runs of itself, or lowerings with one another",
                )
    return found


def _check_instructions(sides: Sequence[Side]) -> None:
    """Programs from files are compared by instructions: these must be the same."""
    for side in sides[1:]:
        if side.by_instruction:
            ours, theirs = (
                [(entry.name, entry.operator) for _, entry in item.entries] for item in (sides[0], side)
            )
            if ours != theirs:
                raise TraceError(
                    "programs from files can be compared with runs of the same program only",
                    expected=f"{len(ours)} instructions of the first side",
                    found=f"{len(theirs)} others",
                    hint="compare lowerings: their nodes know what they come from",
                )


def _content(program: Runnable) -> bytes:
    source = program._source()
    return source if isinstance(source, bytes) else Path(source).read_bytes()


def _size(program: Runnable) -> int:
    source = program._source()
    return len(source) if isinstance(source, bytes) else Path(source).stat().st_size


_entries: WeakKeyDictionary[Lowered, dict[str, list[Entry]]] = WeakKeyDictionary()


def _nodes(stage: Lowered, method: str) -> list[Entry]:
    """The operators and delegate calls of a lowered graph."""
    known = _entries.setdefault(stage, {})
    if method not in known:
        known[method] = [
            Entry(node.name, operator, _shape(value), _nbytes(value), provenance.handles(node))
            for node in provenance.nodes_of(stage._programs[method].graph_module)
            if node.op == "call_function" and (operator := _operator(node)) != "getitem"
            for value in (node.meta.get("val"),)
        ]
    return known[method]


def _instructions(method: ir.Method) -> Iterator[Entry]:
    for index, instruction in enumerate(method.instructions):
        name, written = _KINDS.get(type(instruction), "?"), None
        if isinstance(instruction, ir.KernelCall):
            name = method.operator_name(instruction.operator)
            written = method.values[instruction.args[-1]]
        elif isinstance(instruction, ir.DelegateCall):
            name = method.delegates[instruction.delegate].backend_id
            written = method.values[instruction.args[-1]] if instruction.args else None
        shape, nbytes = "", 0
        if isinstance(written, ir.Tensor):
            shape = f"torch.{ir.TYPE_NAMES.get(written.scalar_type, '?')}{written.sizes}"
            nbytes = written.nbytes
        yield Entry(f"{index}: {name}", name, shape, nbytes, frozenset((index + 1,)))


_KINDS: Mapping[type, str] = {ir.Move: "move", ir.JumpFalse: "jump_false", ir.Free: "free"}


def _operator(node: Node) -> str:
    target = node.target
    return str(target) if hasattr(target, "_schema") else str(getattr(target, "__name__", target))


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        yield value


def _shape(value: Any) -> str:
    return "; ".join(f"{tensor.dtype}{tuple(map(str, tensor.shape))}" for tensor in _tensors(value))


def _nbytes(value: Any) -> int:
    """Bytes of a result; symbolic sizes count with the size of the example input."""
    total = 0
    for tensor in _tensors(value):
        count = tensor.dtype.itemsize
        for size in tensor.shape:
            count *= size if isinstance(size, int) else int(size.node.hint or 1)
        total += count
    return total


def error(reference: torch.Tensor, value: torch.Tensor) -> tuple[float, float]:
    """Signal to noise ratio in dB, and the largest absolute difference.

    The ratio is infinite where both are equal, minus infinity where all is noise, and NaN where a value is.

    Args:
        reference: Any shape.
        value: The same shape.
    """
    wanted = reference.detach().double().reshape(-1).numpy()
    found = value.detach().double().reshape(-1).numpy()
    if not wanted.size:
        return math.inf, 0.0
    with np.errstate(all="ignore"):
        difference = np.where(found == wanted, 0.0, found - wanted)  # the same infinity is no difference
        noise, signal = float(difference @ difference), float(wanted @ wanted)
        largest = float(np.abs(difference).max())
    if noise == 0:
        return math.inf, largest
    if math.isnan(noise) or math.isnan(signal):
        return math.nan, largest
    if signal == 0 or math.isinf(noise):
        return -math.inf, largest
    return 10 * (math.log10(signal) - math.log10(noise)) if math.isfinite(signal) else math.nan, largest
