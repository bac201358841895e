"""`XnnpackBackend`: the ahead-of-time half of the XNNPACK delegate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from torch.export import ExportedProgram

from workbench.backends.base import BackendDetails, CompileSpec, PreprocessResult, WhyNot
from workbench.backends.blob import Blob
from workbench.backends.debug import DEBUG_HANDLE_KEY, DelegateMappingBuilder
from workbench.backends.named_data import NamedDataStore
from workbench.backends.registry import register_backend
from workbench.backends.xnnpack.builder import BACKEND_ID, build_graph
from workbench.backends.xnnpack.configs import ALL_CONFIGS, spec_of
from workbench.backends.xnnpack.configs.constants import MAKES_NUMBERS, name_of
from workbench.backends.xnnpack.configs.quantize import is_quantize
from workbench.backends.xnnpack.graph import Graph
from workbench.backends.xnnpack.passes import run_passes
from workbench.backends.xnnpack.read import read
from workbench.backends.xnnpack.serialize import Constants, serialize

__all__ = ["Summary", "XnnpackBackend"]


@dataclass(frozen=True)
class Summary:
    """What a partition became.

    Attributes:
        calls: How many calls there are.
        transposes: How many of them only change the order of dimensions.
        unfused: Operators that are quantized in the graph and compute on floats, and why.
    """

    calls: int
    transposes: int
    unfused: tuple[WhyNot, ...]

    def __str__(self) -> str:
        text = f"{self.calls} calls, {self.transposes} transposes"
        if self.unfused:
            text += f", {len(self.unfused)} on floats between integers"
        return text


@final
@register_backend(BACKEND_ID)
class XnnpackBackend(BackendDetails):
    """Turns partitions into XNNPACK's subgraph calls. It has no compile specs of its own."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Write one partition.

        Raises:
            PartitionError: It holds an operator that XNNPACK does not take.
        """
        del compile_specs
        return _compile(edge_program, Constants())

    @staticmethod
    def read_blob(data: memoryview) -> Blob | None:
        """The calls and values of a blob, ours or ExecuTorch's."""
        return read(data)

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: Mapping[str, Sequence[ExportedProgram]],
        compile_specs: Mapping[str, Sequence[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Write all partitions of all methods; each constant is hashed once, and stored once."""
        del compile_specs
        constants = Constants()
        return {
            method: [_compile(program, constants) for program in programs]
            for method, programs in edge_programs.items()
        }


def _compile(program: ExportedProgram, constants: Constants) -> PreprocessResult:
    graph = build_graph(program, spec_of(ALL_CONFIGS))
    run_passes(graph)
    handles = DelegateMappingBuilder()
    for number, call in enumerate(graph.calls, start=1):
        if any(node.meta.get(DEBUG_HANDLE_KEY) is not None for node in call.origins):
            handles.insert_delegate_mapping_entry(call.origins, identifier=number)
    store = NamedDataStore()
    blob = serialize(graph, store, constants, range(1, len(graph.calls) + 1))
    return PreprocessResult(
        blob, handles.get_delegate_mapping(), store.get_named_data_store_output(), _summary(graph)
    )


def _summary(graph: Graph) -> Summary:
    reasons: dict[str, WhyNot] = {}
    for call, why, form in graph.unfused:
        own = [node for node in call.origins if name_of(node) not in MAKES_NUMBERS and not is_quantize(node)]
        for node in own[:1]:
            reason = f"quantized but not fused by the backend: {why}"
            reasons.setdefault(node.name, WhyNot(node, reason, form, by=BACKEND_ID))
    return Summary(len(graph.calls), graph.count("StaticTranspose"), tuple(reasons.values()))
