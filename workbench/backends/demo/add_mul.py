"""`AddMulPartitionerDemo` and its backend: chains of additions and multiplications."""

from __future__ import annotations

from typing import final

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from workbench.backends.base import BackendDetails, CompileSpec, PreprocessResult, Supported, WhyNot
from workbench.backends.blob import Blob
from workbench.backends.capability import CapabilityPartitioner
from workbench.backends.demo.bytecode import Opcode, compile_program, max_rank_of, supports
from workbench.backends.demo.read import read
from workbench.backends.registry import register_backend

__all__ = ["AddMulBackendDemo", "AddMulPartitionerDemo"]

_OPCODES: dict[object, Opcode] = {
    torch.ops.aten.add.Tensor: Opcode.ADD,
    torch.ops.aten.mul.Tensor: Opcode.MUL,
    torch.ops.aten.mm.default: Opcode.MM,
}


@final
@register_backend
class AddMulBackendDemo(BackendDetails):
    """Runs add, mul and mm on static float32 tensors.

    Compile spec `max_value`: the largest rank (default 4).
    """

    @staticmethod
    def read_blob(data: memoryview) -> Blob | None:
        """The instruction list of a blob."""
        return read(data)

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Write the program as an instruction list.

        Raises:
            PartitionError: It holds anything else.
        """
        return compile_program("AddMulBackendDemo", edge_program, _OPCODES, compile_specs)


@final
class AddMulPartitionerDemo(CapabilityPartitioner):
    """Gathers add, mul and mm into partitions for `AddMulBackendDemo`; the rest is left, with reasons."""

    def __init__(self) -> None:
        super().__init__("AddMulBackendDemo", [CompileSpec("max_value", bytes([4]))])
        self._max_rank = max_rank_of(self.delegation_spec.compile_specs)

    def supports(self, node: Node, program: ExportedProgram) -> Supported | WhyNot:
        """True for the three operators on static, contiguous float32 tensors of at most rank 4."""
        return supports(node, _OPCODES, self._max_rank)
