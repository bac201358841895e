"""What is left undelegated is prepared for the runtime, before memory is planned."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from torch.export import ExportedProgram

from workbench.edge.program import sync_outputs
from workbench.passes.base import Pass, PassManager, PassResult
from workbench.passes.branch_outputs import BranchOutputs
from workbench.passes.constant_folding import ConstantFolding
from workbench.passes.cse import Cse
from workbench.passes.dead_code import DeadCode
from workbench.passes.dim_order import DimOrder
from workbench.passes.legalize_dim_order import LegalizeDimOrder
from workbench.passes.remove_asserts import RemoveAsserts
from workbench.passes.remove_noops import RemoveNoops
from workbench.passes.safe_softmax import SafeSoftmax
from workbench.passes.simplify_views import SimplifyViews

__all__ = ["prepare_for_runtime", "runtime_passes"]


def runtime_passes(*, fold_weights: bool = True, cache: MutableMapping[Any, Any] | None = None) -> list[Pass]:
    """The passes between the last edge graph and the memory plan, in order.

    Args:
        fold_weights: Compute what depends on trained weights alone (their transposes).
        cache: Folded constants, shared between the methods of one program.
    """
    steps: list[Pass] = [RemoveAsserts(), DimOrder()]
    if fold_weights:
        steps.append(ConstantFolding(layouts=True, cache=cache))
    return [
        *steps,
        SafeSoftmax(),
        LegalizeDimOrder(),
        SimplifyViews(),
        RemoveNoops(),
        Cse(),
        BranchOutputs(),
        DeadCode(),
    ]


def prepare_for_runtime(
    program: ExportedProgram, *, fold_weights: bool = True, cache: MutableMapping[Any, Any] | None = None
) -> tuple[PassResult, ...]:
    """Run the passes of `runtime_passes` on a private copy of an edge program, in place.

    Args:
        program: The program; changed in place.
        fold_weights: As of `runtime_passes`.
        cache: As of `runtime_passes`.

    Returns:
        What each pass did.
    """
    results = PassManager(runtime_passes(fold_weights=fold_weights, cache=cache))(program)
    sync_outputs(program)
    return results
