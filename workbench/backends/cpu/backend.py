"""`CpuBackend`: the ahead-of-time half. The native half is `native_runtime/backends/cpu`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from torch.export import ExportedProgram

from workbench.backends.base import BackendDetails, CompileSpec, PreprocessResult
from workbench.backends.blob import Blob
from workbench.backends.cpu.blob import write
from workbench.backends.cpu.constants import Constants
from workbench.backends.cpu.emitter import Emitter
from workbench.backends.cpu.nodes import entries
from workbench.backends.cpu.read import read_blob
from workbench.backends.debug import DelegateMappingBuilder
from workbench.backends.named_data import NamedDataStore
from workbench.backends.registry import register_backend

__all__ = ["CpuBackend"]


@final
@register_backend
class CpuBackend(BackendDetails):
    """Runs float32 and float16 graphs on the engine of this runtime.

    Compile specs, each one byte: `fuse` (1: run several operators as one) and `trial` (1: measure methods
    while loading).
    """

    @staticmethod
    def read_blob(data: memoryview) -> Blob | None:
        """The graph of a blob."""
        return read_blob(data)

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Write one partition.

        Raises:
            PartitionError: It holds what the engine can't run.
        """
        return _compile(edge_program, Constants())

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: Mapping[str, Sequence[ExportedProgram]],
        compile_specs: Mapping[str, Sequence[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Write all partitions of all methods; weights that they share are stored once.

        Raises:
            PartitionError: One holds what the engine can't run.
        """
        constants = Constants()
        return {
            method: [_compile(program, constants) for program in programs]
            for method, programs in edge_programs.items()
        }


def _compile(program: ExportedProgram, constants: Constants) -> PreprocessResult:
    store = NamedDataStore()
    emitter = Emitter(program, entries(), constants, store)
    graph = emitter.run()
    # The engine names an event after the sources that it stands for, joined by "+".
    handles = DelegateMappingBuilder()
    for index, node in enumerate(emitter.sources):
        handles.insert_delegate_mapping_entry(node, identifier=str(index))
    return PreprocessResult(
        write(graph),
        handles.get_delegate_mapping(),
        store.get_named_data_store_output(),
        delegate_info=f"{len(graph.nodes)} nodes",
    )
