"""The plan of one method in one form, whether a lowering made it or a file brought it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench.memory import ArenaReport, Buffer, Problem
from workbench.memory.report import arena_report
from workbench.recipe import MemoryOptions
from workbench_widgets.context import Context
from workbench_widgets.memory.derive import Derived, derive, labels
from workbench_widgets.program.instructions import Origin, method_of, origins

__all__ = ["Plan", "plan_of"]


@dataclass(frozen=True)
class Plan:
    """The plan of one method.

    Attributes:
        method: The method.
        buffers: The buffers, by arena, offset and time.
        offsets: Where each lies, in bytes.
        derived: For each buffer what the program says about it.
        order: Rows of `buffers` in the order in which planners see them.
        arenas: The arenas.
        options: What the plan was made with.
        origins: Where each instruction comes from.
        from_file: Nothing is known but the program.
    """

    method: ir.Method
    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]
    derived: tuple[Derived, ...]
    order: tuple[int, ...]
    arenas: tuple[ArenaReport, ...]
    options: MemoryOptions
    origins: tuple[Origin, ...]
    from_file: bool


def plan_of(context: Context, name: str) -> Plan:
    """The plan of a method.

    Raises:
        WorkbenchError: There is no such method, or no plan yet.
    """
    report = _report(context, name)
    method = method_of(_program(context), name)
    found = tuple(origins(context, name))
    derived = derive(method)
    if report is None:
        return _from_file(method, derived, found)
    options = context.lowering.recipe.memory if context.lowering is not None else MemoryOptions()
    return _from_report(method, derived, report, options, found)


def _report(context: Context, name: str) -> Any:
    try:
        stage: Any = context.stage("planned")
    except WorkbenchError:
        return None
    return stage.report.methods.get(name)


def _program(context: Context) -> ir.Program:
    if context.lowering is not None:
        # Without waiting for the file: the plan comes before it.
        program: ir.Program = context.lowering.plan.emitted.program
        return program
    return context.program


def _from_report(
    method: ir.Method, derived: list[Derived], report: Any, options: MemoryOptions, found: tuple[Origin, ...]
) -> Plan:
    known = {_place(item): item for item in derived}
    tensors = [item for arena in report.arenas for item in arena.tensors]
    ordered = sorted(range(len(tensors)), key=lambda row: _place(tensors[row]))
    # Branches of control flow repeat names, so a name alone does not say which buffer it is.
    waiting: dict[tuple[Any, ...], list[int]] = {}
    for row, index in enumerate(ordered):
        waiting.setdefault(_identity(tensors[index]), []).append(row)
    order = [waiting[_identity(item)].pop(0) for item in report.buffers]
    buffers: list[Any] = [None] * len(order)
    for item, row in zip(report.buffers, order, strict=True):
        buffers[row] = item
    return Plan(
        method,
        tuple(buffers),
        tuple(tensors[index].offset for index in ordered),
        tuple(known.get(_place(tensors[index])) or _alone(tensors[index]) for index in ordered),
        tuple(order),
        report.arenas,
        options,
        found,
        False,
    )


def _identity(item: Any) -> tuple[Any, ...]:
    return item.name, item.arena, item.first, item.last, item.nbytes


def _alone(item: Any) -> Derived:
    """What is known of a tensor that no instruction names: its place."""
    return Derived(item.arena, item.offset, item.nbytes, [], item.first, item.last, item.first)


def _from_file(method: ir.Method, derived: list[Derived], found: tuple[Origin, ...]) -> Plan:
    names = labels(method, derived)
    alignment = _alignment(derived)
    rows = sorted(range(len(derived)), key=lambda row: _place(derived[row]))
    buffers, order = [], [0] * len(rows)
    for place, row in enumerate(rows):
        item = derived[row]
        order[row] = place
        handles = frozenset(handle for index in item.writers for handle in found[index].handles)
        buffers.append(Buffer(names[row], item.nbytes, item.first, item.last, item.arena, None, handles))
    arenas = []
    for arena in range(1, len(method.arena_sizes)):
        members = [row for row, item in enumerate(buffers) if item.arena == arena]
        problem = Problem([buffers[row] for row in members], alignment)
        offsets = [derived[rows[row]].offset for row in members]
        arenas.append(arena_report(arena, problem, offsets, method.arena_sizes[arena], None))
    options = MemoryOptions(
        alignment=alignment, arenas={item.name: item.arena for item in buffers if item.arena != 1}
    )
    return Plan(
        method,
        tuple(buffers),
        tuple(derived[row].offset for row in rows),
        tuple(derived[row] for row in rows),
        tuple(order),
        tuple(arenas),
        options,
        found,
        True,
    )


def _place(item: Any) -> tuple[int, int, int, int]:
    return item.arena, item.offset, item.first, item.last


def _alignment(derived: list[Derived]) -> int:
    """The largest power of two, 64 at most, that all offsets are multiples of; 16 where there are none."""
    together = 0
    for item in derived:
        together |= item.offset
    return min(together & -together, 64) if together else 16
