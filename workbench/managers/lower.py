"""From exported programs to a manager of edge programs, and on to delegated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram

from workbench.backends import Partitioner
from workbench.backends.debug import ensure_debug_handles
from workbench.edge.config import EdgeCompileConfig
from workbench.errors import PartitionError
from workbench.managers.edge import EdgeProgramManager, Passes
from workbench.managers.methods import Programs, by_method
from workbench.passes.preserve import check_preserved, preserved_operators
from workbench.passes.to_edge import to_edge_program

__all__ = ["to_edge", "to_edge_transform_and_lower"]

Partitioners = Partitioner | Sequence[Partitioner] | Mapping[str, Partitioner | Sequence[Partitioner]]


def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """Bring exported programs to the edge dialect.

    Args:
        programs: One program, then called "forward", or several by method name.
        constant_methods: Methods that return a constant: a number, a string, a tensor, or a tuple of them.
        compile_config: Options.
        generate_etrecord: Keep what `ExecutorchProgramManager.get_etrecord` needs.

    Raises:
        LoweringError: A program cannot be decomposed, or a pass fails.
        VerificationError: A program breaks a rule of the edge dialect.
    """
    config = compile_config or EdgeCompileConfig()
    return _edge_manager(by_method(programs), constant_methods, config, {}, generate_etrecord)


def to_edge_transform_and_lower(
    programs: Programs,
    transform_passes: Passes | None = None,
    partitioner: Partitioners | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """Bring programs to the edge dialect, run passes, and lower what the partitioners take.

    Unlike `to_edge` and `to_backend` in turn, this keeps the operators whole that a partitioner asks for with
    `ops_to_not_decompose`. Where it asks for an operator and then does not take it, that is an error here.

    Args:
        programs: One program, then called "forward", or several by method name.
        transform_passes: Passes for all methods, or by method.
        partitioner: One, or a list that is run in order, for all methods or by method.
        constant_methods: As of `to_edge`.
        compile_config: Options.
        generate_etrecord: Keep what `ExecutorchProgramManager.get_etrecord` needs.

    Raises:
        LoweringError: A program cannot be decomposed, a pass fails, or a preserved operator was not
            delegated.
        PartitionError: A partition is illegal, or a backend fails.
        VerificationError: A program breaks a rule of the edge dialect.
    """
    config = compile_config or EdgeCompileConfig()
    exported = by_method(programs)
    chosen = _partitioners(partitioner, exported)
    manager = _edge_manager(exported, constant_methods, config, chosen, generate_etrecord)
    if transform_passes is not None:
        manager = manager.transform(transform_passes)
    for turn in range(max((len(items) for items in chosen.values()), default=0)):
        manager = manager.to_backend(
            {name: items[turn] for name, items in chosen.items() if turn < len(items)}
        )
    for name in chosen:
        check_preserved(name, manager.exported_program(name), manager._preserved - set(config.preserve_ops))
    return manager


def _edge_manager(
    programs: dict[str, ExportedProgram],
    constant_methods: Mapping[str, Any] | None,
    config: EdgeCompileConfig,
    partitioners: Mapping[str, Sequence[Partitioner]],
    keep_record: bool,
) -> EdgeProgramManager:
    cache: dict[Any, torch.Tensor] = {}
    edge, results = {}, {}
    preserved: set[OpOverload] = set()
    for name, program in programs.items():
        everywhere, somewhere = preserved_operators(program, partitioners.get(name, ()))
        preserved.update(everywhere, somewhere)
        edge[name], results[name] = to_edge_program(
            program, config, preserve=everywhere, preserve_at=somewhere, cache=cache
        )
        # Set once here, they stay the same in all later stages: by them a trace finds its way back.
        ensure_debug_handles(edge[name])
    return EdgeProgramManager(
        edge,
        constant_methods,
        config,
        preserved=frozenset(preserved),
        pass_results=results,
        recorded=(programs, edge) if keep_record else None,
    )


def _partitioners(
    partitioner: Partitioners | None, programs: Mapping[str, ExportedProgram]
) -> dict[str, list[Partitioner]]:
    if partitioner is None:
        return {}
    if isinstance(partitioner, Mapping):
        unknown = sorted(set(partitioner) - set(programs))
        if unknown:
            raise PartitionError(
                f"there is a partitioner for `{unknown[0]}`, but no such method", expected=", ".join(programs)
            )
        return {name: _listed(item) for name, item in partitioner.items()}
    return {name: _listed(partitioner) for name in programs}


def _listed(item: Partitioner | Sequence[Partitioner]) -> list[Partitioner]:
    return list(item) if isinstance(item, Sequence) else [item]
