"""Programs for the tests of passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from workbench.backends.programs import copy_program
from workbench.edge.config import EdgeCompileConfig
from workbench.edge.invariants import verify
from workbench.edge.program import sync_outputs
from workbench.export import export
from workbench.passes.base import Pass, PassResult
from workbench.passes.to_edge import decompose, to_edge_program


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


class Lab:
    """Makes programs of functions and modules, runs passes on them, and compares with eager."""

    def __init__(self) -> None:
        self.model: Any = None
        self.inputs: tuple[Any, ...] = ()

    def exported(self, model: Any, *inputs: Any, dynamic_shapes: Any = None) -> ExportedProgram:
        self.model = model.eval() if isinstance(model, nn.Module) else Function(model)
        self.inputs = inputs
        return export(self.model, inputs, dynamic_shapes=dynamic_shapes)

    def decomposed(self, model: Any, *inputs: Any, dynamic_shapes: Any = None) -> ExportedProgram:
        return decompose(self.exported(model, *inputs, dynamic_shapes=dynamic_shapes))

    def edge(self, model: Any, *inputs: Any, dynamic_shapes: Any = None) -> ExportedProgram:
        # Batch norms stay, for the pass that folds them.
        config = EdgeCompileConfig(fold_batch_norm=False)
        return to_edge_program(self.exported(model, *inputs, dynamic_shapes=dynamic_shapes), config)[0]

    def run(self, program: ExportedProgram, *steps: Pass) -> PassResult:
        """Run passes in place, and check that the program still is one and computes the same."""
        results = [step(program) for step in steps]
        sync_outputs(program)
        program.graph_module.recompile()
        verify(program, "exported")
        self.agrees(program)
        return results[-1]

    def agrees(self, program: ExportedProgram, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        inputs = [item.clone() if isinstance(item, torch.Tensor) else item for item in self.inputs]
        with torch.no_grad():
            found = torch.utils._pytree.tree_leaves(copy_program(program).module()(*inputs))
            expected = torch.utils._pytree.tree_leaves(self.model(*self.inputs))
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            torch.testing.assert_close(left, right, rtol=rtol, atol=atol, equal_nan=True)


def operators(program: ExportedProgram) -> Counter[str]:
    """How often each operator occurs, by short name (`view_copy.default`)."""
    return Counter(
        str(node.target).removeprefix("aten.").removeprefix("workbench.")
        for node in program.graph.nodes
        if node.op == "call_function"
    )


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def count() -> Callable[[ExportedProgram], Counter[str]]:
    return operators
