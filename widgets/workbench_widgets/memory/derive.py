"""Buffers and their lifetimes, read off a program: which tensors share memory, and when it is in use.

A file gives each tensor a place, not a lifetime. Tensors that share memory on purpose (a view and what it
views) stand at the same place as tensors that reuse memory which nobody needs any more; told apart by what
instructions do: memory that is read without having been written by an instruction of its own is a view of
what was written there last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from workbench.emit import ir
from workbench.memory import lifetimes
from workbench_widgets.program.instructions import effects, flat, name_of

__all__ = ["Derived", "derive", "labels"]


@dataclass(slots=True, eq=False)
class Derived:
    """One buffer.

    Attributes:
        arena: From 1.
        offset: Bytes from the start of the arena.
        nbytes: Of the largest of its tensors.
        values: Its tensors: value indices, the one that was first in use first.
        first: First moment of use: 0 when the inputs are given, `i + 1` at instruction `i`.
        last: Last moment of use, included.
        producer: Moment at which it is first written; 0 for inputs and states.
        writers: Instructions that write it.
        kind: `input`, `output`, `state` or `temporary`.
    """

    arena: int
    offset: int
    nbytes: int
    values: list[int] = field(default_factory=list)
    first: int = 0
    last: int = 0
    producer: int = 0
    writers: list[int] = field(default_factory=list)
    kind: str = "temporary"
    unread: bool = True


def derive(method: ir.Method) -> list[Derived]:
    """The buffers of a method, in the order in which they come into use."""
    return _Walk(method).run()


class _Walk:
    """One walk over the instructions."""

    def __init__(self, method: ir.Method) -> None:
        self.method = method
        self.buffers: dict[int, Derived] = {}
        self.occupant: dict[tuple[int, int], Derived] = {}
        self.order: list[Derived] = []
        self.states: list[Derived] = []

    def run(self) -> list[Derived]:
        method = self.method
        for index, tensor in method.tensors():
            if tensor.allocation is not None and tensor.buffer:
                self.states.append(self.new(index, 0))
        inputs = [self.new(index, 0) for index in self.placed(method.inputs) if index not in self.buffers]
        uses = [self.use(moment, item) for moment, (_, _, item) in enumerate(flat(method), start=1)]
        end = len(uses) + 1
        outputs = [self.read(index, end) for index in self.placed(method.outputs)]
        # As the emitter names them: a result keeps its own name, an input that is one is an input.
        for buffer in outputs:
            buffer.kind = "output"
        for buffer in inputs:
            buffer.kind = "input"
        for buffer in self.states:
            buffer.kind = "state"
        found = lifetimes(
            uses, at_start=inputs, at_end=outputs, always=self.states, loops=_loops(self.method)
        )
        for buffer, (first, last) in found.items():
            buffer.first, buffer.last = first, last
        return list(found)

    def placed(self, indices: Iterable[int]) -> Iterator[int]:
        for index in indices:
            value = self.method.values[index]
            if isinstance(value, ir.Tensor) and value.allocation is not None:
                yield index

    def new(self, index: int, moment: int) -> Derived:
        tensor = self.method.values[index]
        assert isinstance(tensor, ir.Tensor)
        assert tensor.allocation is not None
        made = Derived(*tensor.allocation, tensor.nbytes, [index], moment, moment, moment)
        self.buffers[index] = self.occupant[tensor.allocation] = made
        self.order.append(made)
        return made

    def join(self, index: int, buffer: Derived) -> Derived:
        tensor = self.method.values[index]
        assert isinstance(tensor, ir.Tensor)
        self.buffers[index] = buffer
        buffer.values.append(index)
        buffer.nbytes = max(buffer.nbytes, tensor.nbytes)
        return buffer

    def before(self, index: int) -> Derived | None:
        """What was last at a tensor's place."""
        tensor = self.method.values[index]
        assert isinstance(tensor, ir.Tensor)
        assert tensor.allocation is not None
        return self.occupant.get(tensor.allocation)

    def read(self, index: int, moment: int) -> Derived:
        buffer = self.buffers.get(index)
        if buffer is None:
            known = self.before(index)
            if known is None:
                # Read, though nothing wrote it: it keeps its content from one execution to the next.
                buffer = self.new(index, 0)
                self.states.append(buffer)
            else:
                buffer = self.join(index, known)
        buffer.unread = False
        buffer.last = moment
        return buffer

    def write(self, index: int, moment: int) -> Derived:
        buffer = self.buffers.get(index)
        if buffer is None:
            known = self.before(index)
            # Alive at this very moment: a view that an instruction sets up, or a result written in place.
            if known is not None and (known.last >= moment or known in self.states):
                buffer = self.join(index, known)
            else:
                buffer = self.new(index, moment)
        buffer.unread = True
        buffer.last = moment
        buffer.writers.append(moment - 1)
        return buffer

    def use(self, moment: int, instruction: ir.Instruction) -> list[Derived]:
        done = effects(self.method, instruction)
        used = [self.read(index, moment) for index in self.placed(done.reads)]
        used += [self.write(index, moment) for index in self.placed(done.writes)]
        if done.open:
            used += self.delegate(moment, list(self.placed(done.open)))
        return used

    def delegate(self, moment: int, indices: list[int]) -> list[Derived]:
        """Inputs, then outputs: outputs are the last ones that nothing has touched before."""
        split = len(indices)
        while (
            split
            and indices[split - 1] not in self.buffers
            and (split == len(indices) or not self.looks_read(indices[split - 1]))
        ):
            split -= 1
        split = min(split, len(indices) - 1)
        used = [self.read(index, moment) for index in indices[: max(split, 0)]]
        return used + [self.write(index, moment) for index in indices[max(split, 0) :]]

    def looks_read(self, index: int) -> bool:
        """Whether an untouched tensor is a view: what stands at its place was written and not read yet."""
        known, tensor = self.before(index), self.method.values[index]
        assert isinstance(tensor, ir.Tensor)
        return known is not None and known.unread and known.nbytes == tensor.nbytes


def _loops(method: ir.Method) -> list[tuple[int, int]]:
    """First and last instruction of each loop, inner loops before outer ones: jumps back."""
    found = []
    start = 0
    for chain in method.chains:
        for index, instruction in enumerate(chain.instructions):
            if isinstance(instruction, ir.JumpFalse) and instruction.destination <= index:
                found.append((start + instruction.destination, start + index))
        start += len(chain.instructions)
    return sorted(found, key=lambda loop: loop[1] - loop[0])


def labels(method: ir.Method, buffers: Iterable[Derived]) -> list[str]:
    """Names for buffers of which the file says none: what made them, counted."""
    operators = [_stem(name_of(method, item)) for _, _, item in flat(method)]
    counts: dict[str, int] = {}
    found = []
    for buffer in buffers:
        made = operators[buffer.producer - 1] if buffer.producer else buffer.kind
        stem = made if buffer.kind != "state" else buffer.kind
        count = counts.get(stem, 0)
        counts[stem] = count + 1
        found.append(f"{stem}_{count}" if count else stem)
    return found


def _stem(operator: str) -> str:
    """`aten::add.out` -> `add`."""
    return operator.rpartition("::")[2].partition(".")[0]
