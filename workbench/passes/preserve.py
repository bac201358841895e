"""Operators that are kept whole for partitioners, which ask for them with `ops_to_not_decompose`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.errors import LoweringError

__all__ = ["AsksForOperators", "check_preserved", "left_whole", "preserved_operators"]


class AsksForOperators(Protocol):
    """The part of a partitioner that is asked before decomposition."""

    def ops_to_not_decompose(
        self, program: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """The operators to keep, and at which nodes (None: wherever they occur)."""
        ...


def preserved_operators(
    program: ExportedProgram, partitioners: Sequence[AsksForOperators]
) -> tuple[set[OpOverload], dict[OpOverload, frozenset[int]]]:
    """What the partitioners of one method want to keep.

    Args:
        program: The exported program; gets its source handles.
        partitioners: The partitioners.

    Returns:
        The operators that are kept wherever they occur, and for others the source handles of the exported
        nodes at which they are kept.
    """
    everywhere: set[OpOverload] = set()
    somewhere: dict[OpOverload, frozenset[int]] = {}
    for partitioner in partitioners:
        operators, wanted = partitioner.ops_to_not_decompose(program)
        legal = {operator for operator in operators if _may_preserve(operator, type(partitioner).__name__)}
        if wanted is None:
            everywhere |= legal
            continue
        provenance.assign(program)
        for operator in legal:
            somewhere.setdefault(operator, frozenset())
        for node in provenance.nodes_of(program.graph_module):
            if node.target in legal and wanted(node):
                somewhere[node.target] |= provenance.handles(node)
    return everywhere, somewhere


def check_preserved(method: str, program: ExportedProgram, preserved: Collection[OpOverload]) -> None:
    """Require that partitioners took what was kept whole for them.

    Args:
        method: The method's name, for the error.
        program: The method after delegation.
        preserved: The operators that were kept for partitioners alone.

    Raises:
        LoweringError: An operator was left behind that nothing else can run.
    """
    for node in left_whole(program, preserved)[:1]:
        raise LoweringError(
            f"method `{method}`: {node.target} was kept whole for a partitioner, which left it behind",
            stage="lowered",
            node=node.name,
            source=provenance.source_line(node),
            expected="each operator of `ops_to_not_decompose` in a partition",
            hint="let the partitioner's `ops_to_not_decompose` filter refuse the node, or take it",
        )


def left_whole(program: ExportedProgram, preserved: Collection[OpOverload]) -> list[Node]:
    """The nodes whose operators were kept for partitioners, stand in no partition, and have no kernel whole.

    Args:
        program: A method after delegation.
        preserved: The operators that were kept for partitioners alone.
    """
    foreign = {item for item in preserved if item.namespace == "aten" and torch.Tag.core not in item.tags}
    return [node for node in provenance.nodes_of(program.graph_module) if node.target in foreign]


def _may_preserve(operator: OpOverload, asker: str) -> bool:
    schema = operator._schema
    aliases = any(result.alias_info is not None for result in schema.returns)
    if not schema.is_mutable and not aliases:
        return True
    what = "writes to an argument" if schema.is_mutable else "returns an alias of its input"
    warnings.warn(f"{asker} asks to keep {operator}, which {what}; it is decomposed", stacklevel=3)
    return False
