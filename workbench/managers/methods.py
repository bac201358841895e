"""Programs by the names of their methods."""

from __future__ import annotations

from collections.abc import Mapping

from torch.export import ExportedProgram

from workbench.errors import LoweringError

__all__ = ["Programs", "by_method", "method"]

Programs = ExportedProgram | dict[str, ExportedProgram]


def by_method(programs: Programs) -> dict[str, ExportedProgram]:
    """Programs by method name; a single one is called "forward".

    Raises:
        LoweringError: Something is not an exported program.
    """
    named = programs if isinstance(programs, dict) else {"forward": programs}
    for name, program in named.items():
        if not isinstance(program, ExportedProgram):
            raise LoweringError(
                f"method `{name}` is not an exported program",
                expected="torch.export.ExportedProgram",
                found=type(program).__name__,
                hint="capture the model with workbench.export or torch.export.export first",
            )
    return named


def method(programs: Mapping[str, ExportedProgram], name: str) -> ExportedProgram:
    """A program by its method's name.

    Raises:
        LoweringError: There is no such method.
    """
    if name not in programs:
        raise LoweringError(f"there is no method `{name}`", expected=", ".join(sorted(programs)), found=name)
    return programs[name]
