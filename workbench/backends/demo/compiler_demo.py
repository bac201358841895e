"""`BackendWithCompilerDemo`: the ahead-of-time half of a backend that lowers whole modules."""

from __future__ import annotations

from typing import final

import torch
from torch.export import ExportedProgram

from workbench.backends.base import BackendDetails, CompileSpec, PreprocessResult
from workbench.backends.blob import Blob
from workbench.backends.demo.bytecode import Opcode, compile_program
from workbench.backends.demo.read import read
from workbench.backends.registry import register_backend

__all__ = ["BackendWithCompilerDemo"]

_OPCODES: dict[object, Opcode] = {
    torch.ops.aten.sin.default: Opcode.SIN,
    torch.ops.aten.add.Tensor: Opcode.ADD,
    torch.ops.aten.mm.default: Opcode.MM,
    torch.ops.aten.linear.default: Opcode.LINEAR,
}


@final
@register_backend
class BackendWithCompilerDemo(BackendDetails):
    """Runs sin, add, mm and linear on static float32 tensors.

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
        return compile_program("BackendWithCompilerDemo", edge_program, _OPCODES, compile_specs)
