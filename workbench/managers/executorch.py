"""The end of lowering: a planned and emitted program, ready to be written."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any, TextIO

from torch.export import ExportedProgram

from workbench.emit import EmitResult, ExecutorchBackendConfig
from workbench.errors import LoweringError
from workbench.managers.methods import method
from workbench.serialize import SerializedProgram, write_named_data, write_program
from workbench.serialize.etrecord import ETRecord, generate_etrecord

__all__ = ["ExecutorchProgramManager", "Recorded"]

Recorded = tuple[Mapping[str, ExportedProgram], Mapping[str, ExportedProgram]]
"""The exported programs and the edge programs before delegation, kept for a record."""


class ExecutorchProgramManager:
    """A planned and emitted program, ready to be written.

    Made by `EdgeProgramManager.to_executorch`; not by hand.
    """

    def __init__(
        self,
        execution_programs: Mapping[str, ExportedProgram],
        config_methods: Mapping[str, Any],
        backend_config: ExecutorchBackendConfig,
        emitted: EmitResult,
        recorded: Recorded | None = None,
    ) -> None:
        self.backend_config = backend_config
        self._execution_programs = dict(execution_programs)
        self._config_methods = dict(config_methods)
        self._emitted = emitted
        self._recorded = recorded
        self._serialized: SerializedProgram | None = None

    @property
    def methods(self) -> set[str]:
        """The names of the methods."""
        return set(self._execution_programs)

    @property
    def config_methods(self) -> set[str]:
        """The names of the constant methods."""
        return set(self._config_methods)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The planned program of a method.

        Raises:
            LoweringError: There is no such method.
        """
        return method(self._execution_programs, method_name)

    @property
    def executorch_program(self) -> Any:
        """The program in memory, as it is written (`workbench.emit.ir.Program`)."""
        return self._emitted.program

    @property
    def debug_handle_map(self) -> Any:
        """By method and instruction the debug handles of the nodes that it stands for."""
        return self._emitted.debug_handle_map

    @property
    def delegate_map(self) -> Any:
        """By method and instruction what a delegate says about its inside."""
        return self._emitted.delegate_map

    @property
    def instruction_id_to_num_outs_map(self) -> Any:
        """By method and instruction how many results it has."""
        return self._emitted.instruction_id_to_num_outs

    @property
    def memory_report(self) -> Any:
        """Offsets, sizes, lifetimes and peak of the memory plan."""
        return self._emitted.memory_report

    @property
    def serialized(self) -> SerializedProgram:
        """The program as flatbuffer and segments, written on first use."""
        if self._serialized is None:
            self._serialized = write_program(self._emitted.program)
        return self._serialized

    @property
    def buffer(self) -> bytes:
        """The `.pte` file as one string of bytes; `write_to_file` needs less memory."""
        return self.serialized.buffer

    def write_to_file(self, open_file: io.BufferedIOBase) -> None:
        """Write the `.pte` file; segments go from where they lie to the file."""
        self.serialized.write_to_file(open_file)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the `.pte` file to a path.

        Raises:
            ValueError: The path does not end in `.pte`.
        """
        if not os.fspath(path).endswith(".pte"):
            raise ValueError(f"Path {os.fspath(path)} does not end with .pte")
        with open(path, "wb") as file:
            self.write_to_file(file)

    def write_tensor_data_to_file(self, outdir: str | os.PathLike[str]) -> None:
        """Write the `.ptd` files of external constants, one per tag, into a folder."""
        for name, data in self._emitted.program.external_data.items():
            target = os.path.join(outdir, name if name.endswith(".ptd") else f"{name}.ptd")
            with open(target, "wb") as file:
                write_named_data(data).write_to_file(file)

    def dump_executorch_program(self, verbose: bool = False, out: TextIO | None = None) -> None:
        """Print the program: one line per value and instruction; `verbose` with all fields."""
        text = self._emitted.program.format(verbose=verbose)
        print(text, file=out)

    def get_etrecord(self) -> ETRecord:
        """The record by which an Inspector joins traces of this program with the graphs before it.

        Raises:
            LoweringError: The program was lowered without `generate_etrecord=True`.
        """
        if self._recorded is None:
            raise LoweringError(
                "there is no record of this lowering",
                hint="lower with to_edge(..., generate_etrecord=True) or to_edge_transform_and_lower",
            )
        exported, edge = self._recorded
        return generate_etrecord(None, edge, self, exported.get("forward"))
