"""What a pass is: a named step on a program that says what it needs, what it leaves, and what it did.

A pass either works *in place* (the stage's private graph is changed and the same program handed back) or is
*functional* (a new program is handed back and the given one stays as it was). Which of both is declared by
the base class, and held to: a pass that breaks its word fails by name. Idea after onnx/ir-py's pass
infrastructure.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.program import graph_modules
from workbench.errors import LoweringError, WorkbenchError

__all__ = [
    "Condition",
    "FunctionalPass",
    "GraphPass",
    "InPlacePass",
    "Pass",
    "PassManager",
    "PassResult",
    "replace",
]


@dataclass(frozen=True)
class Condition:
    """A property of a program that a pass needs or leaves.

    Attributes:
        text: The property in words.
        violation: The first node that breaks the property with a description, or None.
    """

    text: str
    violation: Callable[[ExportedProgram], tuple[Node, str] | None]


@dataclass(frozen=True)
class PassResult:
    """What a pass did.

    Attributes:
        exported_program: The program after the pass.
        modified: Whether it differs from the one before.
        counts: How often each kind of change was made, by name.
    """

    exported_program: ExportedProgram
    modified: bool
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def graph_module(self) -> GraphModule:
        """The graph after the pass."""
        graph_module: GraphModule = self.exported_program.graph_module
        return graph_module


class Pass(abc.ABC):
    """One step on an exported program.

    Attributes:
        name: The name by which results and errors call the pass.
        in_place: Whether the pass changes the program that it is given.
        requires: Properties that the program must have before.
        ensures: Properties that it has after.
    """

    name: ClassVar[str]
    in_place: ClassVar[bool]
    requires: ClassVar[tuple[Condition, ...]] = ()
    ensures: ClassVar[tuple[Condition, ...]] = ()

    @abc.abstractmethod
    def __call__(self, program: ExportedProgram, *, check: bool = True) -> PassResult:
        """Run the pass; with `check`, hold it to its conditions."""

    def _hold(self, conditions: Sequence[Condition], program: ExportedProgram, when: str) -> None:
        for condition in conditions:
            found = condition.violation(program)
            if found is not None:
                node, description = found
                raise LoweringError(
                    f"pass `{self.name}`: the program {when} the pass breaks a condition",
                    node=node.name,
                    source=provenance.source_line(node),
                    expected=condition.text,
                    found=description,
                )


class InPlacePass(Pass):
    """A pass that changes the program that it is given."""

    in_place = True

    @abc.abstractmethod
    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Change the program; return the counts of what was done (all zero or empty: nothing)."""

    def __call__(self, program: ExportedProgram, *, check: bool = True) -> PassResult:
        """Run the pass; with `check`, hold it to its conditions."""
        if check:
            self._hold(self.requires, program, "before")
        counts = _guarded(self, self.run, program)
        modified = any(counts.values())
        if check:
            self._hold(self.ensures, program, "after")
        return PassResult(program, modified, counts)


class FunctionalPass(Pass):
    """A pass that hands back a new program and leaves the given one as it was."""

    in_place = False

    @abc.abstractmethod
    def run(self, program: ExportedProgram) -> tuple[ExportedProgram, Mapping[str, int]]:
        """The new program and the counts of what was done."""

    def __call__(self, program: ExportedProgram, *, check: bool = True) -> PassResult:
        """Run the pass; with `check`, hold it to its conditions and to leaving its input alone."""
        if check:
            self._hold(self.requires, program, "before")
        before = _shape_of(program) if check else None
        after, counts = _guarded(self, self.run, program)
        modified = any(counts.values())
        if modified and after is program:
            raise LoweringError(f"pass `{self.name}` is functional but handed back the program it was given")
        if check:
            if _shape_of(program) != before:
                raise LoweringError(f"pass `{self.name}` is functional but changed the program it was given")
            self._hold(self.ensures, after, "after")
        return PassResult(after, modified, counts)


class GraphPass(InPlacePass):
    """An in-place pass that treats every graph alike, control-flow branches included."""

    @abc.abstractmethod
    def run_graph(self, graph_module: GraphModule, program: ExportedProgram) -> Mapping[str, int]:
        """Change one graph; return the counts of what was done."""

    def run(self, program: ExportedProgram) -> Mapping[str, int]:
        """Run on the program's graph and on every branch."""
        total: dict[str, int] = {}
        for graph_module in list(graph_modules(program.graph_module)):
            for kind, count in self.run_graph(graph_module, program).items():
                total[kind] = total.get(kind, 0) + count
        return total


class PassManager:
    """An ordered list of passes, run as one.

    Args:
        passes: The passes, in order.
        check: Whether conditions are checked.
    """

    def __init__(self, passes: Sequence[Pass], *, check: bool = True) -> None:
        self.passes = tuple(passes)
        self.check = check

    def __call__(self, program: ExportedProgram) -> tuple[PassResult, ...]:
        """Run all passes; each is given what the one before handed back.

        Returns:
            One result per pass, in order.
        """
        results = []
        for step in self.passes:
            result = step(program, check=self.check)
            program = result.exported_program
            results.append(result)
        return tuple(results)


def replace(old: Node, new: Node) -> None:
    """Let a node's users read another node, hand over its source handles, and erase it."""
    if new.op == "call_function":
        # Inputs and parameters keep their own identity: a removed no-op is not where an input comes from.
        provenance.transfer((old,), new)
    old.replace_all_uses_with(new)
    old.graph.erase_node(old)


def _guarded(step: Pass, function: Callable[[ExportedProgram], Any], program: ExportedProgram) -> Any:
    try:
        return function(program)
    except WorkbenchError:
        raise
    except Exception as error:
        raise LoweringError(
            f"pass `{step.name}` failed: {type(error).__name__}: {error}",
            stage="edge",
            hint="this is a fault of the pass, not of the model",
        ) from error


def _shape_of(program: ExportedProgram) -> tuple[Any, ...]:
    nodes = tuple((node.op, node.name, node.target, node.args) for node in program.graph.nodes)
    specs = program.graph_signature
    return (id(program.graph), len(nodes), str(nodes), str(specs.input_specs), str(specs.output_specs))
