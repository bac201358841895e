"""What the tests of delegation share:

edge programs, and a backend and partitioners that record what they are given.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends import (
    BackendDetails,
    CapabilityPartitioner,
    CompileSpec,
    PreprocessResult,
    Supported,
    WhyNot,
    register_backend,
)
from workbench.backends.registry import unregister_backend
from workbench.passes.to_edge import to_edge_program


@pytest.fixture
def edge() -> Callable[..., ExportedProgram]:
    """Export a module and bring it to the edge dialect."""

    def make(module: torch.nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any = None) -> ExportedProgram:
        exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic_shapes)
        provenance.assign(exported)
        return to_edge_program(exported)[0]

    return make


@pytest.fixture
def recorder() -> Iterator[type[BackendDetails]]:
    """A backend whose blob lists the operators that it is given, registered as "Recorder"."""

    class Recorder(BackendDetails):
        programs: ClassVar[list[ExportedProgram]] = []

        @staticmethod
        def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
            Recorder.programs.append(edge_program)
            names = [str(n.target) for n in edge_program.graph.nodes if n.op == "call_function"]
            return PreprocessResult(";".join(names).encode())

    register_backend("Recorder")(Recorder)
    yield Recorder
    unregister_backend("Recorder")


class TakeOperators(CapabilityPartitioner):
    """Takes the operators that it is given, for the backend "Recorder"."""

    def __init__(self, operators: Sequence[object], backend_id: str = "Recorder", **options: Any) -> None:
        super().__init__(backend_id, **options)
        self.operators = set(operators)

    def supports(self, node: Node, program: ExportedProgram) -> Supported | WhyNot:
        if node.target in self.operators:
            return Supported()
        return WhyNot(node, f"{node.target} is not wanted", "it were")


@pytest.fixture
def take() -> type[TakeOperators]:
    """Makes a partitioner that takes the operators given."""
    return TakeOperators
