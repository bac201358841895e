"""A program from anywhere, looked at and run: `wb.open`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import svg, tables
from workbench.emit import ir
from workbench.errors import ExecutionError, SerializationError
from workbench.run import Runnable
from workbench.selection import Selection
from workbench.serialize.program_reader import read_parts

__all__ = ["OpenedProgram", "open"]


def open(source: str | os.PathLike[str] | bytes) -> OpenedProgram:
    """Open a `.pte`, whoever wrote it.

    Args:
        source: A path, or the file's bytes.

    Raises:
        SerializationError: There is no such file, or it is no sound program; the error says what and where.
    """
    if not isinstance(source, bytes) and not Path(source).is_file():
        raise SerializationError(f"there is no file {os.fspath(source)}")
    return OpenedProgram(source)


class OpenedProgram(Runnable):
    """A program that was opened. Tables are DataFrames.

    Attributes:
        program: The program in memory (`workbench.emit.ir.Program`).
        parts: Where the parts of the file lie (`workbench.serialize.program_reader.Parts`).
        source: Its path or bytes.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self.source = source
        self.parts = read_parts(source)
        self.program = self.parts.program
        methods = self.program.methods
        super().__init__(Selection(methods[0].name if methods else None))

    def _source(self) -> str | bytes:
        return self.source if isinstance(self.source, bytes) else os.fspath(self.source)

    def _program(self) -> ir.Program:
        return self.program

    @property
    def methods(self) -> pd.DataFrame:
        """One row per method."""
        return tables.method_table(self.program)

    @property
    def instructions(self) -> pd.DataFrame:
        """One row per instruction; by its handle it is selected (see `selection`)."""
        table = tables.instruction_table(self.program)
        return table.assign(handles=[(index + 1,) for index in table["index"]])

    @property
    def values(self) -> pd.DataFrame:
        """One row per value."""
        return tables.value_table(self.program)

    @property
    def operators(self) -> pd.DataFrame:
        """One row per operator that is called."""
        return tables.operator_table(self.program)

    @property
    def delegates(self) -> pd.DataFrame:
        """One row per delegate."""
        return tables.delegate_table(self.program)

    @property
    def plan(self) -> pd.DataFrame:
        """One row per tensor in an arena."""
        return tables.plan_table(self.program)

    @property
    def sizes(self) -> pd.DataFrame:
        """Where the bytes are."""
        return tables.size_table(self.program)

    def random_inputs(self, method: str = "forward", *, seed: int = 0) -> list[Any]:
        """Inputs that fit a method: random numbers, zeros for integers, upper bounds for dynamic sizes.

        Raises:
            ExecutionError: There is no such method.
        """
        import torch

        known = {item.name: item for item in self.program.methods}
        if method not in known:
            raise ExecutionError(
                f"there is no method '{method}'", code="InvalidArgument", expected=", ".join(known)
            )
        generator = torch.Generator().manual_seed(seed)
        made: list[Any] = []
        for index in known[method].inputs:
            value = known[method].values[index]
            if not isinstance(value, ir.Tensor):
                made.append(getattr(value, "value", None))
                continue
            dtype = getattr(torch, str(tables.dtype_name(value)))
            if dtype.is_floating_point:
                tensor = torch.randn(value.sizes, generator=generator).to(dtype)
            else:
                tensor = torch.zeros(value.sizes, dtype=dtype)
            if len(value.sizes) == 4 and tuple(value.dim_order) == (0, 2, 3, 1):
                tensor = tensor.to(memory_format=torch.channels_last)
            made.append(tensor)
        return made

    def __repr__(self) -> str:
        name = f"{len(self.source):,} bytes" if isinstance(self.source, bytes) else os.fspath(self.source)
        methods = ", ".join(
            f"{row.method}({row.inputs}) -> {row.outputs}" for row in self.methods.itertuples(index=False)
        )
        return f"<Program {name}: {methods}>"

    def _static_html(self) -> str:
        sizes = self.sizes
        picture = svg.bars(list(zip(sizes["segment"], sizes["bytes"], strict=True)), unit="bytes")
        parts = [str(self.methods.to_html(index=False, border=0)), picture]
        for title, table in (
            ("operators", self.operators),
            ("delegates", self.delegates),
            ("plan", self.plan),
        ):
            if len(table):
                rows = str(table.head(60).to_html(index=False, border=0))
                parts.append(f"<details><summary>{len(table)} {title}</summary>{rows}</details>")
        return "<div>" + "".join(parts) + "</div>"
