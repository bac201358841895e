"""The ahead-of-time half of the example: trees of unary operators on float32 tensors, written as a list.

The layout of the blob is described in `unary_backend.cc`.
"""

from __future__ import annotations

import struct

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends import (
    BackendDetails,
    CapabilityPartitioner,
    CompileSpec,
    DelegateMappingBuilder,
    PreprocessResult,
    Supported,
    WhyNot,
    register_backend,
)
from workbench.errors import PartitionError

__all__ = ["UnaryBackend", "UnaryPartitioner"]

_OPCODES = {
    torch.ops.aten.neg.default: 0,
    torch.ops.aten.abs.default: 1,
    torch.ops.aten.relu.default: 2,
    torch.ops.aten.leaky_relu.default: 3,
    torch.ops.aten.tanh.default: 4,
}
_MAX_OPERATORS = 63


@register_backend
class UnaryBackend(BackendDetails):
    """Writes a tree of unary operators as a list."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Compile a program with one input.

        Raises:
            PartitionError: It has more inputs or operators than the backend can hold.
        """
        values: dict[Node, int] = {}
        operators = []
        for node in edge_program.graph.nodes:
            if node.op == "placeholder":
                if values:
                    raise PartitionError("UnaryBackend takes one input", node=node.name)
                values[node] = 0
            elif node.op == "call_function":
                slope = node.args[1] if len(node.args) > 1 else 0.01
                operators.append(struct.pack("<IIfI", _OPCODES[node.target], values[node.args[0]], slope, 0))
                values[node] = len(operators)
        if len(operators) > _MAX_OPERATORS:
            raise PartitionError(
                "UnaryBackend", expected=f"at most {_MAX_OPERATORS} operators", found=str(len(operators))
            )
        outputs = [values[node] for node in edge_program.graph.output_node().args[0]]
        header = struct.pack("<4sIII", b"UNRY", 1, len(operators), len(outputs))
        blob = b"".join([header, *operators, struct.pack(f"<{len(outputs)}I", *outputs)])
        # They run fused: one event of the native half stands for all of them.
        handles = DelegateMappingBuilder()
        handles.insert_delegate_mapping_entry([n for n in values if n.op == "call_function"], identifier=0)
        return PreprocessResult(blob, handles.get_delegate_mapping())


class UnaryPartitioner(CapabilityPartitioner):
    """Takes unary operators on float32 tensors, of static and of dynamic shape."""

    def __init__(self) -> None:
        super().__init__("UnaryBackend")

    def supports(self, node: Node, program: ExportedProgram) -> Supported | WhyNot:
        """True for the five operators on float32."""
        if node.target not in _OPCODES:
            return WhyNot(node, "it is no unary operator of the backend")
        if node.meta["val"].dtype != torch.float32:
            return WhyNot(node, f"it computes in {node.meta['val'].dtype}", "it were float32")
        return Supported()
