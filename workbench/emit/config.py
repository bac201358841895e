"""Options of `to_executorch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.fx import Node

from workbench.errors import EmitError, MemoryPlanError

__all__ = ["ExecutorchBackendConfig", "MemoryPlanning"]


@dataclass
class MemoryPlanning:
    """How memory is planned.

    Attributes:
        planner: Name of a planner (`workbench.memory.planners`).
        alignment: Of each tensor, in bytes; a power of two.
        plan_inputs: Inputs lie in the arena; otherwise the caller's memory is used.
        plan_outputs: Outputs lie in the arena; otherwise the caller gives memory.
        arena_limits: Bytes that an arena (from 1) may take.
        arenas: Which arena a tensor goes to: by the name of its node, or a function of its spec; arena 1
            where it says nothing.
        pins: Tensors that the user puts in place: by node name, arena and offset.
    """

    planner: str = "best"
    alignment: int = 16
    plan_inputs: bool = True
    plan_outputs: bool = True
    arena_limits: Mapping[int, int] = field(default_factory=dict)
    arenas: Mapping[str, int] | Callable[[Any], int | None] = field(default_factory=dict)
    pins: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise MemoryPlanError("the alignment is no power of two", found=str(self.alignment))


@dataclass
class ExecutorchBackendConfig:
    """Options between the last edge graph and the program. Names are ExecuTorch's where it has the option.

    Attributes:
        passes: Passes of the user, run on a method's graph before everything else here; callables from a
            graph module as torch has them, or passes of `workbench.passes`.
        memory_planning: How memory is planned, for all methods or by method.
        emit_stacktrace: Write the stack trace of each instruction into the file.
        extract_delegate_segments: Delegates' blobs go into segments, not into the flatbuffer.
        segment_alignment: Of each segment's offset in the file, in bytes; a power of two.
        constant_tensor_alignment: Of each constant's offset, in bytes; None means 16.
        delegate_alignment: Of delegate data inside the flatbuffer, in bytes; None means 16.
        remove_view_copy: Views share memory; otherwise they are copied.
        external_constants: True puts all constants into one `.ptd` file; a function from a placeholder node
            to the name of a file (or None for the program itself) decides for each.
        emit_mutable_buffer_names: Write the names of mutable buffers.
        init_mutable_buffers: Keep the initial values of mutable buffers; otherwise they start undefined.
        check_kernels: Refuse operators that the runtime has no kernel for.
        fold_weights: Compute ahead what depends on weights alone; not with `external_constants`.
    """

    passes: Sequence[Any] = ()
    memory_planning: MemoryPlanning | Mapping[str, MemoryPlanning] = field(default_factory=MemoryPlanning)
    emit_stacktrace: bool = False
    extract_delegate_segments: bool = True
    segment_alignment: int = 128
    constant_tensor_alignment: int | None = None
    delegate_alignment: int | None = None
    remove_view_copy: bool = True
    external_constants: bool | Callable[[Node], str | None] = False
    emit_mutable_buffer_names: bool = False
    init_mutable_buffers: bool = True
    check_kernels: bool = True
    fold_weights: bool = True

    def __post_init__(self) -> None:
        for name in ("segment_alignment", "constant_tensor_alignment", "delegate_alignment"):
            value = getattr(self, name)
            if value is not None and (value < 1 or value & (value - 1)):
                raise EmitError(f"`{name}` is no power of two", found=str(value))

    def planning(self, method: str) -> MemoryPlanning:
        """How the memory of a method is planned."""
        if isinstance(self.memory_planning, MemoryPlanning):
            return self.memory_planning
        return self.memory_planning.get(method) or MemoryPlanning()
