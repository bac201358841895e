"""The end of a method: what it writes back to its buffers, and what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from workbench.emit.config import MemoryPlanning
from workbench.passes.spec_propagation import SPEC_KEY, TensorSpec

if TYPE_CHECKING:
    from workbench.emit.emitter import MethodEmitter

__all__ = ["emit_results"]

_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def emit_results(emitter: MethodEmitter, program: ExportedProgram) -> list[int]:
    """Write the buffers back and collect the results.

    A value that lies in a buffer which is written now is copied out first: the new value of one buffer may be
    the old one of another, and a result may be the old value of a buffer.

    Returns:
        The values of the user's results.
    """
    returned: Any = program.graph.output_node().args[0]
    specs = program.graph_signature.output_specs
    targets = _targets(emitter, program)
    results = []
    moves = []
    for spec, item in zip(specs, returned, strict=True):
        emitter.node = item if isinstance(item, Node) else None
        value = emitter.env[item] if isinstance(item, Node) else emitter.table.constant(item)
        if spec.kind in _MUTATIONS:
            target = targets[spec.kind, str(spec.target)]
            if value != target:
                moves.append((_kept(emitter, value, targets, target), target))
        elif spec.kind == OutputKind.USER_OUTPUT:
            results.append(_kept(emitter, value, targets, None))
    for value, target in moves:
        emitter.assign(value, target)
    return results


def own_memory(emitter: MethodEmitter, results: list[int], planning: MemoryPlanning) -> list[int]:
    """Copy results that lie in memory that is somebody else's.

    These are inputs in the caller's memory and, if the caller gives memory for the results, also constants
    and values that are returned twice.

    Returns:
        The values of the results.
    """
    table = emitter.table
    seen: set[int] = set()
    owned = []
    for value in results:
        spec = table.specs.get(value)
        if spec is not None and _is_elsewhere(spec, value in seen, planning):
            copied = emitter.temporary(spec, f"{spec.name}.result")
            table.specs[copied].is_output = True
            emitter.clone(value, copied)
            value = copied
        seen.add(value)
        owned.append(value)
    return owned


def _is_elsewhere(spec: TensorSpec, again: bool, planning: MemoryPlanning) -> bool:
    if spec.root.is_input and not planning.plan_inputs:
        return True
    if planning.plan_outputs:
        return False
    return again or spec.base is not None or spec.root.is_input or spec.root.data is not None


def _targets(emitter: MethodEmitter, program: ExportedProgram) -> dict[tuple[OutputKind, str], int]:
    """The values that the method writes back to."""
    found = {}
    for spec, node in zip(
        program.graph_signature.input_specs, program.graph.find_nodes(op="placeholder"), strict=True
    ):
        item = node.meta[SPEC_KEY]
        if isinstance(item, TensorSpec) and item.mutable:
            if item.is_input:
                found[OutputKind.USER_INPUT_MUTATION, node.name] = emitter.env[node]
            else:
                found[OutputKind.BUFFER_MUTATION, str(spec.target)] = emitter.env[node]
    return found


def _kept(emitter: MethodEmitter, value: int, targets: dict[Any, int], own: int | None) -> int:
    """The value, or a copy of it if it lies in memory that is written back to."""
    spec = emitter.table.specs.get(value)
    if spec is None or not spec.root.mutable:
        return value
    written = {index for index in targets.values() if emitter.table.specs[index] is spec.root}
    if not written:
        return value
    held = emitter.temporary(spec, f"{spec.name}.held")
    emitter.table.specs[held].is_output = own is None
    emitter.clone(value, held)
    return held
