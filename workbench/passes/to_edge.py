"""From an exported program to the edge dialect: one decomposition trace, then a list of in-place passes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram

from workbench import provenance
from workbench.edge.config import EdgeCompileConfig
from workbench.edge.decompositions import decomposition_table
from workbench.edge.dialect import EdgeVerifier
from workbench.edge.program import sync_outputs
from workbench.errors import LoweringError, WorkbenchError
from workbench.passes.base import Pass, PassManager, PassResult
from workbench.passes.branch_outputs import BranchOutputs
from workbench.passes.constant_folding import ConstantFolding
from workbench.passes.cse import Cse
from workbench.passes.dead_code import DeadCode
from workbench.passes.dim_order import DimOrder
from workbench.passes.fold_batch_norm import FoldBatchNorm
from workbench.passes.normalize_symbols import NormalizeSymbols
from workbench.passes.promote_types import PromoteTypes
from workbench.passes.remove_asserts import RemoveAsserts
from workbench.passes.remove_noops import RemoveNoops
from workbench.passes.scalars_to_tensors import ScalarsToTensors
from workbench.passes.split_dequantize import SplitDequantize
from workbench.passes.views_to_copies import ViewsToCopies

__all__ = ["decompose", "edge_passes", "to_edge_program"]


def edge_passes(
    config: EdgeCompileConfig, *, cache: MutableMapping[Any, torch.Tensor] | None = None
) -> list[Pass]:
    """The passes that bring a decomposed program to the edge dialect, in order.

    Args:
        config: Options.
        cache: Folded constants, shared between the methods of one program.
    """
    steps: list[Pass] = [
        RemoveAsserts(only_metadata=True),
        NormalizeSymbols(),
        ViewsToCopies(),
        ScalarsToTensors(),
        PromoteTypes(),
        RemoveNoops(),
        ConstantFolding(limit=config.fold_constants_limit, cache=cache),
        *([FoldBatchNorm(cache=cache)] if config.fold_batch_norm else []),
        Cse(),
        BranchOutputs(),
        DeadCode(),
        SplitDequantize(),
    ]
    if not config._skip_dim_order:
        steps.append(DimOrder())
    return steps


def decompose(
    program: ExportedProgram,
    preserve: Collection[OpOverload] = (),
    preserve_at: Mapping[OpOverload, frozenset[int]] | None = None,
) -> ExportedProgram:
    """Run the edge dialect's decompositions.

    Args:
        program: Only gets source handles; it is not changed otherwise.
        preserve: Operators that are kept everywhere.
        preserve_at: Operators that are kept at the exported nodes with these handles.

    Returns:
        A new program with a graph of its own; weights are shared.

    Raises:
        LoweringError: If torch cannot decompose the program.
    """
    sources = provenance.assign(program)
    table = decomposition_table(preserve, dict(preserve_at or {}))
    try:
        with warnings.catch_warnings():
            # torch copies tree specs of a kind that it deprecates itself.
            warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
            decomposed: ExportedProgram = program.run_decompositions(table)
    except WorkbenchError:
        raise
    except Exception as error:
        raise LoweringError(
            f"torch could not decompose the program: {type(error).__name__}: {error}",
            stage="edge",
            hint="if one operator is at fault, keep it with EdgeCompileConfig(preserve_ops=[...])",
        ) from error
    # torch lets both programs share these tables; passes write to them.
    decomposed._constants = dict(decomposed.constants)
    decomposed._state_dict = dict(decomposed.state_dict)
    provenance.attach(decomposed, sources)
    return decomposed


def to_edge_program(
    program: ExportedProgram,
    config: EdgeCompileConfig | None = None,
    *,
    preserve: Collection[OpOverload] = (),
    preserve_at: Mapping[OpOverload, frozenset[int]] | None = None,
    cache: MutableMapping[Any, torch.Tensor] | None = None,
) -> tuple[ExportedProgram, tuple[PassResult, ...]]:
    """Bring one exported program to the edge dialect.

    Args:
        program: As `torch.export` made it, or already decomposed.
        config: Options.
        preserve: Operators that are kept from decomposition, beside those of the options.
        preserve_at: Operators that are kept only at exported nodes with these source handles.
        cache: Folded constants, shared between the methods of one program.

    Returns:
        The edge program and what each pass did.
    """
    config = config or EdgeCompileConfig()
    edge = decompose(program, {*config.preserve_ops, *preserve}, preserve_at)
    results = PassManager(edge_passes(config, cache=cache), check=config._check_ir_validity)(edge)
    edge._verifiers = [EdgeVerifier]
    sync_outputs(edge)
    edge.graph_module.recompile()
    return edge, results
