"""A program with all that the documents need of it, worked out once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench.serialize.program_reader import Parts, read_parts
from workbench_widgets.context import Context
from workbench_widgets.program.blobs import Blob, open_blob
from workbench_widgets.program.instructions import (
    Effects,
    Origin,
    argument_names,
    effects,
    flat,
    method_of,
    name_of,
    origins,
)
from workbench_widgets.program.naming import Named, addresses, names_of

__all__ = ["MethodModel", "Model", "Use", "model_of"]


@dataclass(frozen=True, slots=True)
class Use:
    """An instruction that names a piece of data.

    Attributes:
        method: Its method.
        row: Its row among the method's instructions.
        argument: What the argument is called, or nothing.
    """

    method: str
    row: int
    argument: str


@dataclass
class MethodModel:
    """One method.

    Attributes:
        method: The method.
        rows: Chain, index, instruction.
        names: Operator or backend of each.
        effects: What each reads and writes.
        origins: Where each comes from.
    """

    method: ir.Method
    rows: list[tuple[int, int, ir.Instruction]]
    names: list[str]
    effects: list[Effects]
    origins: list[Origin]


@dataclass
class Model:
    """A program and its file.

    Attributes:
        parts: The file and where its parts lie.
        methods: By name.
        named: By number the name of a constant; of states with `state` before the number.
        uses: Who names a piece of data: by kind (`constant`, `state`, `delegate`) and number.
    """

    parts: Parts
    methods: dict[str, MethodModel]
    named: Mapping[tuple[str, int], Named]
    uses: dict[tuple[str, int], list[Use]] = field(default_factory=dict)

    @property
    def program(self) -> ir.Program:
        """The program as the file has it."""
        return self.parts.program

    @cached_property
    def blobs(self) -> list[Blob | None]:
        """The blobs of delegates, opened."""
        return [open_blob(data) for data in self.program.delegate_data]

    @cached_property
    def tensors(self) -> dict[tuple[str, int], ir.Tensor]:
        """A tensor that a piece of data is the content of, by kind and number."""
        found: dict[tuple[str, int], ir.Tensor] = {}
        for method in self.methods.values():
            for _, tensor in method.method.tensors():
                if tensor.buffer and not tensor.external:
                    key = ("constant" if tensor.allocation is None else "state", tensor.buffer)
                    found.setdefault(key, tensor)
        return found

    @cached_property
    def same(self) -> dict[tuple[str, int], int]:
        """Groups of pieces with equal content, numbered; only those with another of their kind.

        Pieces that share bytes in the file are one piece already.
        """
        program = self.program
        pieces: list[tuple[tuple[str, int], memoryview]] = [
            *((("constant", i), data) for i, data in enumerate(program.constants) if i),
            *((("state", i), data) for i, data in enumerate(program.states) if i),
            *((("delegate", i), data) for i, data in enumerate(program.delegate_data)),
            *((("data", i), item.data) for i, item in enumerate(program.named_data.values())),
        ]
        places = addresses(data for _, data in pieces)
        distinct = {place: piece for place, piece in zip(places, pieces, strict=True) if place}
        sizes: dict[int, list[tuple[tuple[str, int], memoryview]]] = {}
        for key, data in distinct.values():
            sizes.setdefault(len(data), []).append((key, data))
        # Only what is of equal size is worth the hashing.
        equal: dict[bytes, list[tuple[str, int]]] = {}
        for members in (members for members in sizes.values() if len(members) > 1):
            for key, data in members:
                digest = hashlib.blake2b(data, digest_size=16).digest()
                equal.setdefault(digest, []).append(key)
        groups = [keys for keys in equal.values() if len(keys) > 1]
        return {key: number for number, keys in enumerate(groups) for key in keys}


class _Kept:
    """The model of the program that a context showed last."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.program: Any = None
        self.model: Model | None = None

    def get(self) -> Model:
        program = self.context.program
        if self.model is None or self.program is not program:
            self.program, self.model = program, _made(self.context, program)
        return self.model


def model_of(context: Context) -> Model:
    """The model of a context's program.

    Raises:
        WorkbenchError: There is no program yet.
    """
    return context.state(_Kept).get()


def _made(context: Context, program: ir.Program) -> Model:
    parts = _parts(context)
    methods = {method.name: _method(context, parts.program, method.name) for method in program.methods}
    found = Model(parts, methods, _named(context, program))
    for name, method in methods.items():
        _collect(found.uses, name, method)
    return found


def _parts(context: Context) -> Parts:
    if context.opened is not None:
        return context.opened.parts
    stage: Any = context.stage("program")
    return read_parts(stage.serialized.buffer)


def _method(context: Context, program: ir.Program, name: str) -> MethodModel:
    method = method_of(program, name)
    rows = list(flat(method))
    return MethodModel(
        method,
        rows,
        [name_of(method, item) for _, _, item in rows],
        list(_effects(context, method, rows)),
        origins(context, name),
    )


def _effects(
    context: Context, method: ir.Method, rows: list[tuple[int, int, ir.Instruction]]
) -> Iterator[Effects]:
    """Effects with the results of delegates: as many as the lowering knows of.

    A file does not say; there what nothing has touched before stands last, and is taken for them.
    """
    known = _results(context, method.name)
    touched = set(method.inputs)
    touched.update(index for index, tensor in method.tensors() if tensor.buffer or tensor.external)
    for row, (_, _, instruction) in enumerate(rows):
        done = effects(method, instruction)
        if done.open:
            count = known.get(row, 0)
            while not known and count < len(done.open) and done.open[-1 - count] not in touched:
                count += 1
            split = len(done.open) - max(count, 1)
            done = Effects(done.open[:split], done.open[split:])
        touched.update(done.reads, done.writes)
        yield done


def _results(context: Context, method: str) -> Mapping[int, int]:
    """By instruction the number of a delegate's results; nothing for a program from a file."""
    try:
        stage: Any = context.stage("planned")
    except WorkbenchError:
        return {}
    found: Mapping[int, int] = stage.emitted.instruction_id_to_num_outs.get(method, {})
    return found


def _named(context: Context, program: ir.Program) -> dict[tuple[str, int], Named]:
    names = names_of(context)
    if not names:
        return {}
    pools = {"constant": program.constants, "state": program.states}
    return {
        (kind, index): names[place]
        for kind, pool in pools.items()
        for index, place in enumerate(addresses(pool))
        if index and place in names
    }


def _collect(uses: dict[tuple[str, int], list[Use]], name: str, method: MethodModel) -> None:
    for row, (_, _, instruction) in enumerate(method.rows):
        if isinstance(instruction, ir.DelegateCall):
            blob = method.method.delegates[instruction.delegate].data
            uses.setdefault(("delegate", blob), []).append(Use(name, row, ""))
        touched = _touched(method.method, instruction)
        labels = argument_names(method.names[row], len(touched))
        for place, index in enumerate(touched):
            for value in _inside(method.method, index):
                if value.buffer and not value.external:
                    key = ("state" if value.allocation else "constant", value.buffer)
                    entries = uses.setdefault(key, [])
                    if not entries or (entries[-1].method, entries[-1].row) != (name, row):
                        entries.append(Use(name, row, labels[place]))


def _touched(method: ir.Method, instruction: ir.Instruction) -> tuple[int, ...]:
    if isinstance(instruction, (ir.KernelCall, ir.DelegateCall)):
        return instruction.args
    if isinstance(instruction, ir.Move):
        return instruction.source, instruction.target
    return (instruction.condition if isinstance(instruction, ir.JumpFalse) else instruction.value,)


def _inside(method: ir.Method, index: int) -> list[ir.Tensor]:
    value = method.values[index]
    items = value.items if isinstance(value, (ir.TensorList, ir.OptionalTensorList)) else (index,)
    found = [method.values[item] for item in items if item >= 0]
    return [item for item in found if isinstance(item, ir.Tensor)]
