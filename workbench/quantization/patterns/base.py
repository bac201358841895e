"""What the families of patterns share.

A family says for the operators that it knows which of their tensors are quantized. It writes PT2E
annotations, and returns what it decided, so that nothing is skipped in silence.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from workbench.quantization import pt2e
from workbench.quantization.lifting import attribute

__all__ = [
    "ACTIVATIONS",
    "Context",
    "Family",
    "Outcome",
    "float_tensor",
    "fused_activation",
    "is_float",
    "is_operator",
]

aten = torch.ops.aten

# What is computed at the end of an integer operator, before its result is rounded.
ACTIVATIONS = frozenset(
    {
        aten.relu.default,
        aten.relu_.default,
        aten.relu6.default,
        aten.relu6_.default,
        aten.hardtanh.default,
        aten.hardtanh_.default,
        aten.clamp.default,
        aten.clamp_.default,
        aten.clamp_min.default,
    }
)


@dataclass(frozen=True)
class Outcome:
    """What a family decided about a node.

    Attributes:
        how: How it is quantized; empty where it stays in floats.
        why: Why it stays in floats.
        nodes: What is computed along with it (a fused activation).
    """

    how: str = ""
    why: str = ""
    nodes: tuple[Node, ...] = ()


@dataclass
class Context:
    """What a family may ask.

    Attributes:
        module: The module that is annotated.
        wanted: Nodes whose results reach an operator that computes on integers, through others at most that
            only take the numbers along.
        config_of: A node -> its config, or None.
        explicit: Whether somebody asked for this node by its type or name.
    """

    module: GraphModule
    wanted: set[Node] = field(default_factory=set)
    config_of: Callable[[Node], Any] = lambda node: None
    explicit: Callable[[Node], bool] = lambda node: False

    def constant(self, node: Any) -> torch.Tensor | None:
        """The tensor behind a weight or constant."""
        if not isinstance(node, Node) or node.op != "get_attr":
            return None
        found = attribute(self.module, str(node.target))
        return found if isinstance(found, torch.Tensor) else None

    def quantized(self, node: Any) -> bool:
        """Whether the result of a node is quantized for all of its readers."""
        annotation = node.meta.get(pt2e.ANNOTATION_KEY) if isinstance(node, Node) else None
        return annotation is not None and annotation.output_qspec is not None

    def annotate(self, node: Node, inputs: Mapping[Node, Any] | None = None, output: Any = None) -> None:
        """Write an annotation; specs that are None say nothing."""
        given = {source: spec for source, spec in (inputs or {}).items() if spec is not None}
        node.meta[pt2e.ANNOTATION_KEY] = pt2e.QuantizationAnnotation(
            input_qspec_map=given, output_qspec=output, _annotated=True
        )


Family: TypeAlias = Callable[[Node, Any, Context], Outcome]


def is_operator(node: Node) -> bool:
    """Whether a node computes something; picking one of several results does not."""
    return node.op == "call_function" and node.target is not operator.getitem


def is_float(node: Any) -> bool:
    """Whether a node's result is one float32 tensor."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def float_tensor(node: Any) -> str:
    """Why a tensor can't be quantized, or empty where it can."""
    if is_float(node):
        return ""
    value = node.meta.get("val") if isinstance(node, Node) else None
    kind = str(value.dtype) if isinstance(value, torch.Tensor) else "no tensor"
    return f"`{node}` is {kind}: only float32 tensors are quantized"


def fused_activation(node: Node) -> Node | None:
    """The activation that is computed along with a node: its only reader."""
    if len(node.users) != 1:
        return None
    reader = next(iter(node.users))
    return reader if reader.target in ACTIVATIONS and reader.args[0] is node else None
