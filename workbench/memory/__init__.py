"""Memory planning: lifetimes, planners, the check of every plan, and the report.

`plan` places buffers into arenas; what the buffers of a method are is decided by the emitter, from the
instructions that it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.errors import MemoryPlanError
from workbench.memory.lifetimes import lifetimes
from workbench.memory.planners import names as planner_names
from workbench.memory.planners import planner, register
from workbench.memory.problem import Buffer, Problem, align
from workbench.memory.report import ArenaReport, MemoryReport, MethodMemory, Placed, arena_report, largest
from workbench.memory.verify import check_plan
from workbench.passes.spec_propagation import Dynamism, TensorSpec

__all__ = [
    "ArenaReport",
    "Buffer",
    "Dynamism",
    "MemoryReport",
    "MethodMemory",
    "Placed",
    "Problem",
    "TensorSpec",
    "align",
    "check_plan",
    "lifetimes",
    "plan",
    "planner_names",
    "register",
]


def plan(
    buffers: Sequence[Buffer],
    *,
    planner_name: str = "best",
    alignment: int = 16,
    arena_limits: Mapping[int, int] | None = None,
    method: str = "forward",
) -> tuple[list[int], MethodMemory]:
    """Place buffers into their arenas.

    Args:
        buffers: The buffers.
        planner_name: Which planner; see `planner_names`.
        alignment: Of each offset, in bytes.
        arena_limits: Bytes that an arena may take.
        method: What messages and the report call it.

    Returns:
        An offset for each buffer, in bytes, and the report.

    Raises:
        MemoryPlanError: There is no such planner, an arena is too small, pins contradict each other, or the
            planner made a wrong plan.
    """
    function = planner(planner_name)
    offsets = [0] * len(buffers)
    reports = []
    for arena in sorted({item.arena for item in buffers}):
        if arena < 1:
            raise MemoryPlanError("arenas are counted from 1", stage="plan", found=str(arena))
        members = [index for index, item in enumerate(buffers) if item.arena == arena]
        problem = Problem([buffers[index] for index in members], alignment)
        found = function(problem)
        if len(found) != len(members):
            raise MemoryPlanError(f"the planner `{planner_name}` did not place every buffer", stage="plan")
        size = align(problem.peak(found), alignment)
        check_plan(problem.buffers, found, alignment, size)
        limit = (arena_limits or {}).get(arena)
        if limit is not None and size > limit:
            raise _too_small(arena, limit, size, problem, method)
        for index, offset in zip(members, found, strict=True):
            offsets[index] = offset
        reports.append(arena_report(arena, problem, found, size, limit))
    return offsets, MethodMemory(method, tuple(reports), planner_name, tuple(buffers))


def _too_small(arena: int, limit: int, size: int, problem: Problem, method: str) -> MemoryPlanError:
    moment, alive = max(problem.load, key=lambda item: item[1])
    at_peak = [item for item in problem.buffers if item.first <= moment <= item.last]
    possible = problem.lower_bound <= limit
    return MemoryPlanError(
        f"method `{method}` does not fit arena {arena}",
        stage="plan",
        expected=f"at most {limit:,} bytes",
        found=f"{size:,} bytes; {alive:,} are alive at once, most of them {largest(at_peak)}",
        hint="another planner may fit it, the lower bound does"
        if possible
        else "put tensors into another arena, delegate the nodes around the peak, or lower the upper bounds "
        "of dynamic sizes",
    )
