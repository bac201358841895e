"""What the rules of operators read and write: elements by node, and what parameters are to layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.fx import Node

from workbench.pruning.elements import Axes, Elements, Ids, Reason

__all__ = ["Graph", "Role", "Rule", "argument", "permutation"]


@dataclass(frozen=True)
class Role:
    """What a dimension of a parameter is to a layer.

    Attributes:
        parameter: The parameter's placeholder.
        dim: The dimension.
        kind: `"out"`: a layer's results lie along it; `"in"`: a layer sums over it; `"scale"`: a factor of a
            batch norm.
        node: The layer's operator.
    """

    parameter: Node
    dim: int
    kind: str
    node: Node


@dataclass
class Graph:
    """What the rules read and write.

    Attributes:
        elements: The elements.
        axes: By node the axes of its result; a list where it has several.
        parameters: Placeholders of parameters, buffers and constants.
        roles: What dimensions of parameters are to the layers.
        choices: By reshape (node name and group) which of its candidates may be removed along.
        asked: By reshape the candidates, as elements.
        unknown: Nodes without a rule that read parameters.
    """

    elements: Elements
    axes: dict[Node, Any] = field(default_factory=dict)
    parameters: set[Node] = field(default_factory=set)
    roles: list[Role] = field(default_factory=list)
    choices: dict[tuple[str, int], int] = field(default_factory=dict)
    asked: dict[tuple[str, int], list[Ids]] = field(default_factory=dict)
    unknown: list[Node] = field(default_factory=list)

    def of(self, value: Any) -> Axes | None:
        """The axes of an argument, if it is a tensor."""
        found = self.axes.get(value) if isinstance(value, Node) else None
        return found if isinstance(found, Axes) else None

    def fix(self, node: Node, text: str, axes: Axes | None, *dims: int) -> None:
        """Fix dimensions of a tensor; all of them where none is named."""
        if axes is None:
            return
        for dim in dims or range(len(axes)):
            self.elements.fix(axes[dim], Reason(node.name, text))

    def same(self, left: Axes, right: Axes) -> None:
        """Tie the trailing dimensions of two tensors where they have equal sizes; size 1 is broadcast."""
        for dim in range(1, min(len(left), len(right)) + 1):
            if len(left[-dim]) == len(right[-dim]):
                self.elements.tie(left[-dim], right[-dim])

    def parameter_dim(self, value: Any, dim: int) -> tuple[Node, int] | None:
        """The parameter's dimension that a dimension of a value is, looking through transpositions."""
        while isinstance(value, Node) and value not in self.parameters:
            rank = len(self.of(value) or ())
            permuted = permutation(value, rank)
            if permuted is None:
                return None
            dim, value = permuted[dim % rank], value.args[0]
        return (value, dim) if isinstance(value, Node) else None

    def play(self, kind: str, node: Node, value: Any, dim: int) -> bool:
        """Note what a parameter's dimension is to a node; false where the value is no parameter."""
        found = self.parameter_dim(value, dim)
        if found is not None:
            self.roles.append(Role(found[0], found[1], kind, node))
        return found is not None


Rule = Callable[[Graph, Node], None]


def argument(node: Node, name: str) -> Any:
    """An argument of a call by its name in the schema, or its default."""
    for position, known in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if known.name == name:
            if position < len(node.args):
                return node.args[position]
            return node.kwargs.get(name, known.default_value)
    raise KeyError(name)


def permutation(node: Node, rank: int) -> list[int] | None:
    """Which dimension of the input each of the result is."""
    if node.op != "call_function" or not rank:
        return None
    name = str(getattr(node.target, "overloadpacket", "")).removeprefix("aten.").removesuffix("_copy")
    order = list(range(rank))
    if name == "permute":
        return [dim % rank for dim in argument(node, "dims")]
    if name in ("t", "numpy_T") and rank <= 2:
        return order[::-1]
    if name in ("transpose", "swapaxes"):
        dims: Any = node.args
        first, second = dims[1] % rank, dims[2] % rank
        order[first], order[second] = order[second], order[first]
        return order
    return None
