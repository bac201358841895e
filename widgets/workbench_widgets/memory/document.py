"""The memory view's document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from workbench import memory, tables
from workbench.emit import ir
from workbench.memory import Problem
from workbench_widgets.columns import F64, I32, Strings
from workbench_widgets.context import Context
from workbench_widgets.memory.contract import KINDS, MemoryArena, MemoryDocument
from workbench_widgets.memory.derive import Derived
from workbench_widgets.memory.plan import Plan, plan_of
from workbench_widgets.memory.planning import choices_of
from workbench_widgets.program.instructions import flat, name_of

__all__ = ["csr", "memory_document"]


def memory_document(context: Context, key: str) -> MemoryDocument:
    """The memory of a method.

    Args:
        context: A lowering, its plan, or a program.
        key: The method's name; the first one's where it is empty.

    Raises:
        WorkbenchError: There is no such method, or no plan yet.
    """
    return document_of(plan_of(context, key or context.methods[0]), context)


def document_of(plan: Plan, context: Context) -> MemoryDocument:
    """The document of a plan."""
    method, buffers, derived = plan.method, plan.buffers, plan.derived
    peaks = {arena.arena: arena.peak_moment for arena in plan.arenas}
    names = ["inputs", *(name_of(method, item) for _, _, item in flat(method)), "results"]
    sources = ["", *(origin.source for origin in plan.origins), ""]
    moment_starts, moment_handles = csr([(), *(origin.handles for origin in plan.origins), ()])
    starts, handles = csr(sorted(item.handles) for item in buffers)
    lives = [_live(plan, arena.arena) for arena in plan.arenas]
    choices = choices_of(plan.options)
    first = [_first(method, item) for item in derived]
    return MemoryDocument(
        method=method.name,
        origin="file" if plan.from_file else "plan",
        can_apply=context.lowering is not None,
        why_not=_why_not(context, plan),
        planners=memory.planner_names(),
        choices=dataclasses.replace(choices, planner="") if plan.from_file else choices,
        plan_inputs=plan.options.plan_inputs,
        plan_outputs=plan.options.plan_outputs,
        arenas=[_arena(item) for item in plan.arenas],
        moments=len(names),
        moment_name=Strings(names),
        moment_source=Strings(sources),
        moment_handle_start=moment_starts,
        moment_handles=moment_handles,
        live_start=np.cumsum([0, *(len(live) for live in lives)], dtype=np.int32),
        live_moment=np.array([moment for live in lives for moment, _ in live], np.int32),
        live_bytes=np.array([alive for live in lives for _, alive in live], np.float64),
        name=Strings(item.name for item in buffers),
        arena=_ints(item.arena for item in buffers),
        offset=np.array(plan.offsets, np.float64),
        bytes=_floats(item.nbytes for item in buffers),
        first=_ints(item.first for item in buffers),
        last=_ints(item.last for item in buffers),
        producer=_ints(item.producer for item in derived),
        at_peak=np.array([item.first <= peaks[item.arena] <= item.last for item in buffers], np.uint8),
        pinned=np.array([item.pin is not None for item in buffers], np.uint8),
        kind=np.array([KINDS.index(item.kind) for item in derived], np.uint8),
        shape=Strings("" if tensor is None else str(list(tensor.sizes)) for tensor in first),
        dtype=Strings("" if tensor is None else tables.dtype_name(tensor) for tensor in first),
        views=_ints(max(0, len(item.values) - 1) for item in derived),
        source=Strings(sources[item.producer] if item.producer < len(sources) else "" for item in derived),
        handle_start=starts,
        handles=handles,
    )


def _why_not(context: Context, plan: Plan) -> str:
    if context.lowering is not None:
        return ""
    if plan.from_file:
        return "A program from a file keeps its plan; lower the model to change it."
    return "This stage outlived its lowering; show the lowering to change its plan."


def _arena(item: memory.ArenaReport) -> MemoryArena:
    return MemoryArena(
        item.arena,
        item.size,
        item.lower_bound,
        item.peak_moment,
        item.limit,
        item.total,
        item.fragmentation,
        len(item.tensors),
    )


def _live(plan: Plan, arena: int) -> list[tuple[int, int]]:
    members = [item for item in plan.buffers if item.arena == arena]
    return Problem(members, plan.options.alignment).load


def _first(method: ir.Method, item: Derived) -> ir.Tensor | None:
    """The tensor that a buffer was made for."""
    value = method.values[item.values[0]] if item.values else None
    return value if isinstance(value, ir.Tensor) else None


def _ints(items: Iterable[int]) -> I32:
    return np.fromiter(items, np.int32)


def _floats(items: Iterable[int]) -> F64:
    return np.fromiter(items, np.float64)


def csr(rows: Iterable[Iterable[int]]) -> tuple[I32, I32]:
    """Lists of numbers as two columns: where each begins, and the numbers."""
    starts = [0]
    values: list[int] = []
    for row in rows:
        values.extend(row)
        starts.append(len(values))
    return np.array(starts, np.int32), np.array(values, np.int32)
