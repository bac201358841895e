"""Passes of others: anything that ExecuTorch's `transform` takes, run as a pass of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule

from workbench.edge.program import sync_outputs
from workbench.errors import LoweringError, WorkbenchError
from workbench.passes.base import Pass, PassResult

__all__ = ["AnyPass", "apply"]

AnyPass = Pass | Callable[[GraphModule], Any]
"""A pass of this package, or a callable from a graph module to a `PassResult`, a graph module or None."""


def apply(
    program: ExportedProgram, passes: Sequence[AnyPass]
) -> tuple[ExportedProgram, tuple[PassResult, ...]]:
    """Run passes of both kinds in order.

    Args:
        program: A private copy; changed in place by passes that work so.
        passes: The passes.

    Returns:
        The program after the last pass, and what each did.

    Raises:
        LoweringError: A pass fails or hands back something else; the error names it.
    """
    results = []
    for step in passes:
        result = step(program) if isinstance(step, Pass) else _foreign(step, program)
        program = result.exported_program
        results.append(result)
    sync_outputs(program)
    program.graph_module.recompile()
    return program, tuple(results)


def _foreign(step: Callable[[GraphModule], Any], program: ExportedProgram) -> PassResult:
    name = getattr(step, "__name__", type(step).__name__)
    try:
        found = step(program.graph_module)
    except WorkbenchError:
        raise
    except Exception as error:
        raise LoweringError(f"pass `{name}` failed: {type(error).__name__}: {error}", stage="edge") from error
    graph_module = getattr(found, "graph_module", found)
    if graph_module is None or graph_module is program.graph_module:
        return PassResult(program, bool(getattr(found, "modified", True)), {})
    if not isinstance(graph_module, GraphModule):
        raise LoweringError(
            f"pass `{name}` handed back something that is no graph",
            expected="a PassResult, a GraphModule, or None for a change in place",
            found=type(found).__name__,
        )
    _take_over(program, graph_module)
    return PassResult(program, bool(getattr(found, "modified", True)), {})


def _take_over(program: ExportedProgram, graph_module: GraphModule) -> None:
    """Let a program have the graph that a pass made; its inputs are matched by position."""
    specs = program.graph_signature.input_specs
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    if len(placeholders) != len(specs):
        raise LoweringError(
            "a pass on a graph changed the number of inputs",
            expected=str(len(specs)),
            found=str(len(placeholders)),
            hint="a pass that adds or removes constants must work on the exported program: derive it from "
            "workbench.passes.base.InPlacePass",
        )
    for spec, node in zip(specs, placeholders, strict=True):
        spec.arg.name = node.name
    graph_module.meta.update({**program.graph_module.meta, **graph_module.meta})
    program._graph_module = graph_module
