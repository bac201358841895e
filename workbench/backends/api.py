"""`to_backend`: lower a whole program, or the parts of it that a partitioner tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node

from workbench.backends.base import (
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
)
from workbench.backends.debug import ensure_debug_handles
from workbench.backends.extract import Extracted, extract_tags, insert_delegates, release_constants
from workbench.backends.graphs import graphs_of
from workbench.backends.legality import verify_partition
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.backends.partitioning import note_reasons, partition
from workbench.backends.programs import FlatProgram, copy_program, flat_program
from workbench.backends.registry import get_backend
from workbench.errors import PartitionError, WorkbenchError

__all__ = ["MethodProgramsPartitionerSpec", "lower_partitions", "to_backend"]


@dataclass
class MethodProgramsPartitionerSpec:
    """Programs and partitioners by method, as one argument for `to_backend`.

    Attributes:
        method_to_edge_program: The methods.
        method_to_partitioner: Their partitioners; a method without one stays as it is.
    """

    method_to_edge_program: Mapping[str, ExportedProgram]
    method_to_partitioner: Mapping[str, Partitioner]


@singledispatch
def to_backend(program: Any, *args: Any) -> Any:
    """Lower programs to backends.

    The first argument decides:

    - `to_backend(backend_id: str, edge_program, compile_specs) -> LoweredBackendModule`: the whole program.
    - `to_backend(edge_program: ExportedProgram, partitioner) -> ExportedProgram`: what the partitioner tags.
    - `to_backend({method: edge_program}, partitioner or {method: partitioner}) -> {method:
      ExportedProgram}`, and the same with a `MethodProgramsPartitionerSpec`: several methods together, so
      that a backend can share data between them.

    Programs that are passed in are never changed.

    Raises:
        PartitionError: A partition is illegal (with tag, nodes and path), a backend is unknown or fails.
    """
    raise PartitionError(
        "to_backend doesn't know what to do with its first argument",
        expected="a backend identifier, an ExportedProgram or a dict of them",
        found=type(program).__name__,
    )


@to_backend.register
def _(
    backend_id: str, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
) -> LoweredBackendModule:
    backend = get_backend(backend_id)
    _check_results(backend_id, edge_program)
    original = flat_program(edge_program)
    ensure_debug_handles(original)
    result = _guarded(backend_id, "", backend.preprocess, copy_program(original), compile_specs)
    signature = edge_program.module_call_graph[0].signature
    call_spec = None if signature is None else (signature.in_spec, signature.out_spec)
    return _lowered(original, DelegationSpec(backend_id, list(compile_specs)), result, call_spec)


@to_backend.register
def _(edge_program: ExportedProgram, partitioner: Partitioner) -> ExportedProgram:
    return _to_backend_methods({"forward": edge_program}, {"forward": partitioner})["forward"]


@to_backend.register(dict)
def _(
    programs: dict[str, ExportedProgram], partitioner: Partitioner | Mapping[str, Partitioner]
) -> dict[str, ExportedProgram]:
    chosen = dict.fromkeys(programs, partitioner) if isinstance(partitioner, Partitioner) else partitioner
    return _to_backend_methods(programs, chosen)


@to_backend.register
def _(spec: MethodProgramsPartitionerSpec) -> dict[str, ExportedProgram]:
    return _to_backend_methods(spec.method_to_edge_program, spec.method_to_partitioner)


def _check_results(backend_id: str, program: ExportedProgram) -> None:
    """A delegate returns tensors, and writes no inputs."""
    results: Any = program.graph.output_node().args[0]
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        value = result.meta.get("val") if isinstance(result, Node) else result
        if not isinstance(value, torch.Tensor) or spec.kind == OutputKind.USER_INPUT_MUTATION:
            writes = spec.kind == OutputKind.USER_INPUT_MUTATION
            raise PartitionError(
                f"a whole module for '{backend_id}' must return tensors and leave its inputs alone",
                stage="lower",
                node=result.name if isinstance(result, Node) else None,
                found=f"the input '{spec.target}' is written" if writes else f"the result {result!r}",
                hint="lower a part of the module with a partitioner",
            )


def lower_partitions(results: Mapping[str, PartitionResult]) -> dict[str, ExportedProgram]:
    """Lower tagged programs: preprocess every tag and put delegate calls into the graphs.

    Args:
        results: By method what `partition` returned (possibly edited since). The tagged programs are
            consumed.

    Returns:
        By method the lowered program.

    Raises:
        PartitionError: A partition is illegal, or a backend fails.
    """
    parts: dict[str, list[tuple[GraphModule, list[Extracted]]]] = {}
    for method, result in results.items():
        verify_partition(result.tagged_exported_program, result.partition_tags)
        program = result.tagged_exported_program
        parts[method] = [(graph, extract_tags(program, graph)) for _, graph in graphs_of(program)]
    lowered = _preprocess(results, parts)
    finished = {}
    for method, result in results.items():
        program = result.tagged_exported_program
        note_reasons(result)
        # Inner graphs first: recompiling an outer graph module doesn't touch them, but the order reads
        # naturally.
        for graph, extracted in reversed(parts[method]):
            insert_delegates(program, graph, [(part, lowered[id(part)]) for part in extracted])
            if graph is program.graph_module:
                release_constants(program, extracted)
            graph.recompile()
        ensure_debug_handles(program)
        program.validate()  # type: ignore[no-untyped-call]
        finished[method] = program
    return finished


def _to_backend_methods(
    programs: Mapping[str, ExportedProgram], partitioners: Mapping[str, Partitioner]
) -> dict[str, ExportedProgram]:
    unknown = sorted(set(partitioners) - set(programs))
    if unknown:
        raise PartitionError(
            f"there is a partitioner for '{unknown[0]}', but no such method",
            stage="partition",
            expected=", ".join(programs),
        )
    results = {method: partition(programs[method], chosen) for method, chosen in partitioners.items()}
    lowered = lower_partitions(results)
    return {method: lowered.get(method, program) for method, program in programs.items()}


def _preprocess(
    results: Mapping[str, PartitionResult], parts: Mapping[str, list[tuple[GraphModule, list[Extracted]]]]
) -> dict[int, LoweredBackendModule]:
    """Run each backend once, over its partitions of all methods.

    The result is keyed by `id` of the partition.
    """
    work: dict[str, dict[str, list[Extracted]]] = {}
    for method, graphs in parts.items():
        for part in (part for _, extracted in graphs for part in extracted):
            backend_id = results[method].partition_tags[part.tag].backend_id
            work.setdefault(backend_id, {}).setdefault(method, []).append(part)
    lowered: dict[int, LoweredBackendModule] = {}
    for backend_id, methods in work.items():
        specs = {m: [results[m].partition_tags[p.tag] for p in listed] for m, listed in methods.items()}
        tags = ", ".join(p.tag for listed in methods.values() for p in listed)
        processed = _guarded(
            backend_id,
            tags,
            get_backend(backend_id).preprocess_multimethod,
            {m: [copy_program(p.program) for p in listed] for m, listed in methods.items()},
            {m: [spec.compile_specs for spec in listed] for m, listed in specs.items()},
        )
        for method, listed in methods.items():
            for part, spec, result in zip(listed, specs[method], processed[method], strict=True):
                lowered[id(part)] = _lowered(part.program, spec, result, None)
    return lowered


def _guarded(backend_id: str, tags: str, function: Any, *args: Any) -> Any:
    """Call a backend; whatever it raises becomes an error that names it."""
    try:
        return function(*args)
    except WorkbenchError:
        raise
    except Exception as error:
        where = f" (tags {tags})" if tags else ""
        raise PartitionError(
            f"the backend '{backend_id}' failed{where}: {type(error).__name__}: {error}", stage="lower"
        ) from error


def _lowered(
    program: FlatProgram, spec: DelegationSpec, result: PreprocessResult, call_spec: Any
) -> LoweredBackendModule:
    if not isinstance(result, PreprocessResult):
        raise PartitionError(
            f"the backend '{spec.backend_id}' must return a PreprocessResult",
            stage="lower",
            found=type(result).__name__,
        )
    module = LoweredBackendModule(
        program,
        spec.backend_id,
        bytes(result.processed_bytes),
        list(spec.compile_specs),
        result.data_store_output,
        call_spec=call_spec,
    )
    module.meta = {"debug_handle_map": result.debug_handle_map, "delegate_info": result.delegate_info}
    return module
