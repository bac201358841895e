"""Capture of a model as an exported program, with errors that say where and what to do."""

from __future__ import annotations

import os
import re
import traceback
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.export import ExportedProgram

from workbench import provenance
from workbench.errors import ExportError, WorkbenchError
from workbench.export.hints import hint_for

__all__ = ["export", "load", "save"]

_TORCH = str(Path(torch.__file__).parent) + os.sep
_HERE = str(Path(__file__).parent) + os.sep
_CAUSED = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
TorchScript: TypeAlias = "torch.jit.ScriptModule | torch.jit.ScriptFunction[Any, Any]"


def export(
    model: torch.nn.Module | TorchScript | ExportedProgram | str | os.PathLike[str],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    strict: bool = False,
) -> ExportedProgram:
    """Capture a model as a graph of operators, with a source handle on every node.

    Args:
        model: A module, a TorchScript module, an exported program (which only gets its source handles), or
            the path of a `.pt2`, `.pt` or `.jit` file.
        args: Example inputs; their sizes and types hold for all runs, except what `dynamic_shapes` frees.
        kwargs: Example keyword inputs.
        dynamic_shapes: As of `torch.export.export`. Give each `torch.export.Dim` a `max`: memory is planned
            for it.
        strict: Trace through Python's bytecode (TorchDynamo) instead of running the model.

    Returns:
        The program; `workbench.provenance.source_map` tells where each node comes from.

    Raises:
        ExportError: The model cannot be captured; with the line of the model at fault and what to do.
    """
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    if isinstance(model, ExportedProgram):
        provenance.assign(model)
        return model
    _warn_if_training(model)
    if not isinstance(args, tuple):
        raise ExportError(
            "the example inputs must be a tuple",
            stage="export",
            expected="a tuple, `(x,)` for a single input",
            found=type(args).__name__,
        )
    try:
        if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            from workbench.export.torchscript import export_torchscript

            program = export_torchscript(model, args, dict(kwargs or {}), dynamic_shapes)
        else:
            program = torch.export.export(
                model, args, dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=strict
            )
    except WorkbenchError:
        raise
    except Exception as error:
        raise _explained(error, model) from error
    provenance.assign(program)
    return program


def load(path: str | os.PathLike[str]) -> torch.nn.Module | TorchScript | ExportedProgram:
    """Read a model from a `.pt2` (exported program), `.pt` or `.jit` (TorchScript) file.

    Raises:
        ExportError: The file is missing or neither of them. Pickled modules are not opened: that would run
            any code that the file holds.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise ExportError(f"there is no file `{name}`", stage="export")
    if not zipfile.is_zipfile(name):
        raise ExportError(
            f"`{name}` holds no TorchScript module and no exported program",
            stage="export",
            expected="an archive that torch.jit.save or torch.export.save wrote",
        )
    if name.endswith(".pt2"):
        program: ExportedProgram = _read(name, torch.export.load)
        return program
    try:
        return torch.jit.load(name, map_location="cpu")  # type: ignore[no-untyped-call,no-any-return]
    except Exception as script_error:
        try:
            return torch.export.load(name)
        except Exception:
            raise ExportError(
                f"`{name}` holds no TorchScript module and no exported program",
                stage="export",
                found=str(script_error).splitlines()[0],
                hint="save with torch.jit.save or torch.export.save; a state_dict needs its class first",
            ) from script_error


def save(program: ExportedProgram, path: str | os.PathLike[str]) -> None:
    """Write an exported program as a `.pt2` file; source handles go along."""
    torch.export.save(program, os.fspath(path))


def _read(name: str, reader: Any) -> Any:
    try:
        return reader(name)
    except Exception as error:
        raise ExportError(
            f"`{name}` could not be read",
            stage="export",
            found=(str(error) or type(error).__name__).splitlines()[0],
        ) from error


def _warn_if_training(model: Any) -> None:
    if not getattr(model, "training", False):
        return
    behaves_differently = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    affected = [
        name
        for name, module in model.named_modules()
        if module.training and isinstance(module, behaves_differently)
    ]
    if affected:
        warnings.warn(
            f"the model is in training mode, in which {len(affected)} of its modules "
            f"({affected[0] or 'itself'}, ...) behave differently; call model.eval() before export",
            stacklevel=3,
        )


def _explained(error: Exception, model: Any) -> ExportError:
    text = str(error).strip()
    first = text.splitlines()[0] if text else type(error).__name__
    kind = type(error).__name__
    return ExportError(
        f"{type(model).__name__} could not be captured: {first}",
        stage="export",
        source=_model_line(error),
        found=kind if kind not in ("RuntimeError", "Exception") else None,
        hint=hint_for(error, text),
    )


def _model_line(error: BaseException) -> str | None:
    """The innermost line outside torch and this package, of the traceback or of one quoted by the message."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [item for item in frames[1:] if not item[0].startswith((_TORCH, _HERE, "<"))]
    quoted = [(found["file"], int(found["line"])) for found in _CAUSED.finditer(str(error))]
    own += [item for item in quoted if not item[0].startswith((_TORCH, _HERE, "<"))]
    for file, line in reversed(own):
        if os.sep + "site-packages" + os.sep not in file:
            return f"{file}:{line}"
    return f"{own[-1][0]}:{own[-1][1]}" if own else None
