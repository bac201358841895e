"""Names of constants: from the graph that the program was made of, or from what uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import provenance
from workbench.edge.program import input_specs
from workbench.errors import WorkbenchError
from workbench_widgets.context import Context

__all__ = ["Named", "names_of"]


@dataclass(frozen=True)
class Named:
    """What a constant is in the model.

    Attributes:
        name: Fully qualified name, or the node's.
        module: Path of the module that it belongs to.
        handles: Source handles of the node that stands for it.
        note: What else is known: that it was folded.
    """

    name: str
    module: str
    handles: frozenset[int]
    note: str = ""


def names_of(context: Context) -> dict[int, Named]:
    """The names of constants and states, by the address of their bytes in memory.

    Nothing for a program from a file. A constant of the program lies where the graph's tensor lies, since the
    emitter does not copy; where it did copy (a tensor that was not contiguous), there is no name.
    """
    try:
        stage: Any = context.stage("planned")
    except WorkbenchError:
        return {}
    found: dict[int, Named] = {}
    for method, program in stage._programs.items():
        exported = _targets(context, method)
        sources = provenance.source_map(program)
        of_node = {node.name: provenance.handles(node) for node in program.graph.nodes}
        for name, target, tensor in _tensors(program):
            handles = of_node.get(name, frozenset())
            known = [exported[s.name] for s in sources.resolve(handles) if s.name in exported]
            folded = target not in known and bool(known)
            path = known[0] if known else target
            note = f"computed ahead from {', '.join(known)}" if folded else ""
            found.setdefault(_address(tensor), Named(path, path.rpartition(".")[0], handles, note))
    return found


def _tensors(program: Any) -> Iterator[tuple[str, str, Any]]:
    """Placeholder, fully qualified name and tensor of everything that the program holds."""
    for name, spec in input_specs(program).items():
        if spec.target is None:
            continue
        table = program.state_dict if spec.target in program.state_dict else program.constants
        tensor = table.get(spec.target)
        if tensor is not None and hasattr(tensor, "data_ptr") and tensor.numel():
            yield name, spec.target, tensor


def _targets(context: Context, method: str) -> dict[str, str]:
    """By placeholder of the exported graph, the fully qualified name that the user knows."""
    if context.lowering is None:
        return {}
    program = context.lowering.exported._programs[method]
    return {name: spec.target for name, spec in input_specs(program).items() if spec.target is not None}


def _address(tensor: Any) -> int:
    address: int = tensor.data_ptr()
    return address


def addresses(views: Iterable[memoryview]) -> list[int]:
    """Where bytes lie in memory; 0 for none."""
    return [np.frombuffer(v, np.uint8).__array_interface__["data"][0] if len(v) else 0 for v in views]
