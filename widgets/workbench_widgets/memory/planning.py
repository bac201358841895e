"""Plans with other choices: beside the one that holds, and in its place."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import numpy as np

from workbench import memory
from workbench.errors import MemoryPlanError, WorkbenchError
from workbench.memory import Buffer, MethodMemory
from workbench.recipe import MemoryOptions
from workbench_widgets.context import Context
from workbench_widgets.memory.contract import (
    ArenaChange,
    MemoryChoices,
    MemoryCode,
    MemoryEdit,
    MemoryPin,
    MemoryPreview,
)
from workbench_widgets.memory.plan import Plan, plan_of

__all__ = ["apply", "choices_of", "options_of", "preview", "python"]


def choices_of(options: MemoryOptions) -> MemoryChoices:
    """A recipe's options as views have them."""
    return MemoryChoices(
        options.planner,
        options.alignment,
        {str(arena): limit for arena, limit in options.arena_limits.items()},
        dict(options.arenas),
        {name: MemoryPin(arena, offset) for name, (arena, offset) in options.pins.items()},
    )


def options_of(choices: MemoryChoices, base: MemoryOptions) -> MemoryOptions:
    """Options with what a view chose; the rest as of `base`.

    Raises:
        RecipeError: A choice is out of range.
        MemoryPlanError: There is no such planner.
    """
    planner = choices.planner or base.planner
    if planner not in memory.planner_names():
        raise MemoryPlanError(
            "there is no such planner", expected=", ".join(memory.planner_names()), found=choices.planner
        )
    return dataclasses.replace(
        base,
        planner=planner,
        alignment=choices.alignment,
        arena_limits={int(arena): limit for arena, limit in choices.arena_limits.items()},
        arenas=dict(choices.arenas),
        pins={name: (pin.arena, pin.offset) for name, pin in choices.pins.items()},
    )


def preview(context: Context, edit: MemoryEdit) -> MemoryPreview:
    """The plan that other choices would give, without making it.

    Raises:
        MemoryPlanError: No such plan exists: a limit is too small, pins contradict each other.
    """
    plan = plan_of(context, edit.method)
    options = options_of(edit.choices, plan.options)
    _check_names(context, plan, options)
    start = time.perf_counter()
    offsets, arenas, report = _replan(plan, options)
    spent = (time.perf_counter() - start) * 1e3
    return _difference(plan, arenas, offsets, report, spent)


def _replan(plan: Plan, options: MemoryOptions) -> tuple[list[int], list[int], MethodMemory]:
    """Offset and arena of each row, as the pipeline would plan them."""
    buffers = []
    for row in plan.order:
        known = plan.buffers[row]
        pin = options.pins.get(known.name)
        arena = pin[0] if pin is not None else options.arenas.get(known.name, 1)
        buffers.append(
            Buffer(
                known.name,
                known.nbytes,
                known.first,
                known.last,
                arena,
                None if pin is None else pin[1],
                known.handles,
            )
        )
    found, report = memory.plan(
        buffers,
        planner_name=options.planner,
        alignment=options.alignment,
        arena_limits=options.arena_limits,
        method=plan.method.name,
    )
    offsets, arenas = [0] * len(buffers), [0] * len(buffers)
    for row, buffer, offset in zip(plan.order, buffers, found, strict=True):
        offsets[row], arenas[row] = offset, buffer.arena
    return offsets, arenas, report


def _check_names(context: Context, plan: Plan, options: MemoryOptions) -> None:
    """Refuse names that no method has; options hold for all methods."""
    known = {item.name for item in plan.buffers}
    if context.lowering is not None:
        reports = context.lowering.plan.report.methods.values()
        known.update(item.name for report in reports for item in report.buffers)
    for name in (*options.pins, *options.arenas):
        if name not in known:
            raise MemoryPlanError(
                f"`{name}` has no place of its own in the plan",
                stage="plan",
                expected=", ".join(sorted(known)[:8]) + ", ...",
                found=name,
            )


def _difference(
    plan: Plan, arenas: Sequence[int], offsets: Sequence[int], report: MethodMemory, spent: float
) -> MemoryPreview:
    before = {item.arena: item for item in plan.arenas}
    after = {item.arena: item for item in report.arenas}
    changes = []
    for arena in sorted({*before, *after}):
        old, new = before.get(arena), after.get(arena)
        shown = new or old
        assert shown is not None
        changes.append(
            ArenaChange(
                arena,
                old.size if old else 0,
                new.size if new else 0,
                new.lower_bound if new else 0,
                new.limit if new else None,
                shown.peak_moment,
            )
        )
    moved = [
        arena != known.arena or offset != place
        for known, place, arena, offset in zip(plan.buffers, plan.offsets, arenas, offsets, strict=True)
    ]
    return MemoryPreview(
        changes,
        sum(item.before for item in changes),
        sum(item.after for item in changes),
        np.array(arenas, np.int32),
        np.array(offsets, np.float64),
        np.array(moved, np.uint8),
        spent,
    )


def apply(context: Context, edit: MemoryEdit) -> MemoryPreview:
    """Plan again in place; says what changed.

    Raises:
        WorkbenchError: There is nothing to lower again, or the choices can't be met; nothing changes then.
    """
    lowering = context.lowering
    if lowering is None:
        raise WorkbenchError(
            "a program from a file keeps its plan", hint="lower the model and change the plan there"
        )
    before = plan_of(context, edit.method)
    start = time.perf_counter()
    options = options_of(edit.choices, lowering.recipe.memory)
    context.update(lowering.recipe.replace(memory=options))
    spent = (time.perf_counter() - start) * 1e3
    after = plan_of(context, edit.method)
    # Another plan is of the same buffers in the same order.
    arenas, offsets = [0] * len(before.buffers), [0] * len(before.buffers)
    for old, new in zip(before.order, after.order, strict=True):
        arenas[old], offsets[old] = after.buffers[new].arena, after.offsets[new]
    report = MethodMemory(edit.method, tuple(after.arenas), options.planner)
    return _difference(before, arenas, offsets, report, spent)


def python(context: Context, edit: MemoryEdit) -> MemoryCode:
    """The choices as Python, to be pasted into a cell."""
    base = context.lowering.recipe.memory if context.lowering is not None else MemoryOptions()
    options, default = options_of(edit.choices, base), MemoryOptions()
    names = [item.name for item in dataclasses.fields(options)]
    shown = [name for name in names if getattr(options, name) != getattr(default, name)]
    return MemoryCode(
        f"wb.MemoryOptions({', '.join(f'{name}={getattr(options, name)!r}' for name in shown)})"
    )
