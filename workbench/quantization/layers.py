"""Reading and changing the weights of a program's layers."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.edge.fake import fake_mode
from workbench.edge.program import add_constant, constant_tensor, remove_inputs
from workbench.quantization.patterns.convolution import TRANSPOSED

__all__ = ["Weights", "input_axis", "output_axis"]

aten = torch.ops.aten
_CONVOLUTIONS = frozenset(
    {
        aten.conv1d.default,
        aten.conv2d.default,
        aten.conv1d.padding,
        aten.conv2d.padding,
        *TRANSPOSED,
    }
)


class Weights:
    """The weights of one program, which is changed in place; tensors that it shares with others are not.

    Args:
        program: A copy of one's own.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self._mode = fake_mode(program.graph_module)

    def of(self, layer: Node, position: int) -> torch.Tensor | None:
        """The constant at a position of a layer's arguments; None where there is none."""
        found = layer.args[position] if len(layer.args) > position else None
        if not isinstance(found, Node) or found.op != "placeholder":
            return None
        tensor = constant_tensor(self.program, found)
        return None if tensor is None else tensor.detach()

    def alone(self, layer: Node, position: int) -> bool:
        """Whether nobody else reads the constant."""
        found: Any = layer.args[position]
        return isinstance(found, Node) and len(found.users) == 1

    def set(self, layer: Node, position: int, tensor: torch.Tensor) -> None:
        """Put a new constant at a position of a layer's arguments; a bias may be missing so far."""
        old = layer.args[position] if len(layer.args) > position else None
        made = add_constant(self.program, tensor.contiguous(), self._mode, stem="_changed_weight")
        provenance.transfer([old] if isinstance(old, Node) else [layer], made)
        args = [*layer.args, *[None] * (position + 1 - len(layer.args))]
        args[position] = made
        layer.args = tuple(args)
        if isinstance(old, Node) and not old.users:
            remove_inputs(self.program, [old])


def output_axis(layer: Node) -> int | None:
    """The axis of a layer's weight along which its output channels lie; None where it is no such layer."""
    if layer.target is aten.linear.default:
        return 0
    if layer.target in _CONVOLUTIONS:
        return 1 if layer.target in TRANSPOSED else 0
    return None


def input_axis(layer: Node) -> int | None:
    """The axis of the input channels; None for grouped convolutions, whose channels lie otherwise."""
    if layer.target is aten.linear.default:
        return 1
    if layer.target in _CONVOLUTIONS and groups_of_layer(layer) == 1:
        return 0 if layer.target in TRANSPOSED else 1
    return None


def groups_of_layer(layer: Node) -> int:
    """The groups of a convolution."""
    names = [argument.name for argument in layer.target._schema.arguments]  # type: ignore[union-attr]
    if "groups" not in names:
        return 1
    position = names.index("groups")
    given: Any = layer.args[position] if len(layer.args) > position else layer.kwargs.get("groups", 1)
    return int(given)
