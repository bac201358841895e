"""Memory of one method: which tensors need a place, for how long, and where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench import memory
from workbench.emit import ir
from workbench.emit.config import MemoryPlanning
from workbench.emit.emitter import MethodEmitter
from workbench.errors import MemoryPlanError
from workbench.memory import Buffer, MethodMemory
from workbench.passes.spec_propagation import TensorSpec

__all__ = ["check_pins", "plan_memory"]


def plan_memory(
    emitter: MethodEmitter, inputs: list[int], outputs: list[int], planning: MemoryPlanning
) -> tuple[list[int], MethodMemory]:
    """Give each tensor that needs one a place: `spec.mem_id`, `spec.offset`, and `allocation` of its value.

    Returns:
        The sizes of the arenas, entry 0 reserved, and the report.

    Raises:
        MemoryPlanError: See `workbench.memory.plan`.
    """
    specs = emitter.table.specs
    roots = {index: spec.root for index, spec in specs.items()}
    uses = _uses(emitter, roots)
    found = memory.lifetimes(
        uses,
        at_start=[roots[index] for index in inputs if index in roots],
        at_end=[roots[index] for index in outputs if index in roots],
        always=[root for root in roots.values() if root.mutable],
        loops=emitter.loops,
    )
    sizes: dict[TensorSpec, int] = {}
    for index, root in roots.items():
        sizes[root] = max(sizes.get(root, 0), specs[index].nbytes)
    planned = [root for root in found if _is_planned(root, planning)]
    buffers = [_buffer(root, sizes[root], found[root], planning) for root in planned]
    offsets, report = memory.plan(
        buffers,
        planner_name=planning.planner,
        alignment=planning.alignment,
        arena_limits=planning.arena_limits,
        method=emitter.name,
    )
    for root, buffer, offset in zip(planned, buffers, offsets, strict=True):
        root.mem_id, root.offset = buffer.arena, offset
        root.lifetime = (buffer.first, buffer.last)
    for index, root in roots.items():
        if root.mem_id is not None and root.offset is not None:
            spec, value = specs[index], emitter.table.values[index]
            spec.mem_id, spec.offset, spec.lifetime = root.mem_id, root.offset, root.lifetime
            assert isinstance(value, ir.Tensor)
            value.allocation = (root.mem_id, root.offset)
    arenas = report.arena_sizes
    return [0, *(arenas.get(arena, 0) for arena in range(1, max(arenas, default=0) + 1))], report


def _uses(emitter: MethodEmitter, roots: dict[int, TensorSpec]) -> Iterator[list[TensorSpec]]:
    values = emitter.table.values
    lists = {
        index: [roots[item] for item in value.items if item in roots]
        for index, value in enumerate(values)
        if isinstance(value, (ir.TensorList, ir.OptionalTensorList))
    }
    for instruction in emitter.instructions:
        if isinstance(instruction, (ir.KernelCall, ir.DelegateCall)):
            used = [roots[index] for index in instruction.args if index in roots]
            if lists:
                for index in instruction.args:
                    used += lists.get(index, ())
        elif isinstance(instruction, ir.JumpFalse):
            used = [roots[instruction.condition]] if instruction.condition in roots else []
        elif isinstance(instruction, ir.Move):
            used = [roots[item] for item in (instruction.source, instruction.target) if item in roots]
        else:
            used = [roots[instruction.value]] if instruction.value in roots else []
        yield used


def _is_planned(root: TensorSpec, planning: MemoryPlanning) -> bool:
    if root.const:
        return False
    if root.is_input and not planning.plan_inputs:
        return False
    return planning.plan_outputs or not root.is_output or root.mutable


def _buffer(root: TensorSpec, nbytes: int, lifetime: tuple[int, int], planning: MemoryPlanning) -> Buffer:
    pin = planning.pins.get(root.name)
    chosen = planning.arenas(root) if callable(planning.arenas) else planning.arenas.get(root.name)
    arena = pin[0] if pin is not None else chosen
    return Buffer(
        root.name,
        nbytes,
        *lifetime,
        arena=1 if arena is None else arena,
        pin=None if pin is None else pin[1],
        handles=root.handles,
    )


def check_pins(plannings: Mapping[str, MemoryPlanning], plans: Mapping[str, MethodMemory]) -> None:
    """Refuse pins that name no tensor of any method that they are meant for.

    Args:
        plannings: By method, how its memory was planned; methods may share one.
        plans: By method, its plan.

    Raises:
        MemoryPlanError: A pin names no tensor.
    """
    for planning in {id(item): item for item in plannings.values()}.values():
        methods = [name for name, item in plannings.items() if item is planning and name in plans]
        known = {buffer.name for name in methods for buffer in plans[name].buffers}
        for name in planning.pins:
            if name not in known:
                raise MemoryPlanError(
                    f"a pin names `{name}`, which has no place of its own in the plan",
                    stage="plan",
                    expected=", ".join(sorted(known)[:8]) + ", ...",
                    found=name,
                    hint="views share the place of what they view: pin that",
                )
