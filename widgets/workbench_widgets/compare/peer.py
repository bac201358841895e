"""ExecuTorch's own runtime as another side of a comparison."""

from __future__ import annotations

from workbench.compare import compare
from workbench.errors import WorkbenchError
from workbench.lowering import Run
from workbench.opened import OpenedProgram
from workbench_widgets.compare.contract import PeerAdded, PeerOptions
from workbench_widgets.compare.document import comparison_of, subject_of
from workbench_widgets.context import Context

__all__ = ["add_peer"]

_MOST = 1000


def add_peer(context: Context, options: PeerOptions) -> PeerAdded:
    """Run the first side's program in ExecuTorch's runtime, and put the run beside.

    Raises:
        WorkbenchError: ExecuTorch is not installed, or can't run the program.
    """
    if not 1 <= options.repeat <= _MOST:
        raise WorkbenchError(
            "a run has at least one execution", expected=f"1 to {_MOST}", found=str(options.repeat)
        )
    comparison = comparison_of(context)
    first, method = comparison.sides[0], comparison.method
    subject = subject_of(first)
    # The very inputs of the run beside, if that is one: then the errors say something.
    inputs = list(first.inputs) if isinstance(first, Run) else []
    if not inputs:
        inputs = (
            subject.random_inputs(method)
            if isinstance(subject, OpenedProgram)
            else subject.example_inputs(method)
        )
    # Values are compared only where the others recorded theirs.
    values = any(cell.value is not None for row in comparison.rows for cell in row.cells.values())
    run = subject.run(
        *inputs,
        method=method,
        profile=True,
        values=values,
        repeat=options.repeat,
        runtime="executorch",
    )
    name = _free("ExecuTorch", comparison.names)
    names = [*comparison.names, name]
    context.comparison = compare(*comparison.sides, run, names=names, method=method)
    context.changed("compare", "compare.graph", "about")
    return PeerAdded(name)


def _free(name: str, taken: tuple[str, ...]) -> str:
    number = 1
    while name in taken:
        number += 1
        name = f"{name.split()[0]} {number}"
    return name
