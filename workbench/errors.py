"""The errors that the workbench raises to its users.

Every error carries, where they are known, the stage of lowering, the node, the line of the user's source,
what was expected, what was found, and a hint at what to do. The message comes first; `str()` prints the rest
line by line, so that a traceback in a notebook reads without further tools.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CalibrationError",
    "CalibrationWarning",
    "DisplayError",
    "EmitError",
    "ExecutionError",
    "ExportError",
    "LoweringError",
    "MemoryPlanError",
    "MissingKernelError",
    "PartitionError",
    "QuantizationError",
    "RecipeError",
    "SearchError",
    "SelectionError",
    "SerializationError",
    "TraceError",
    "VerificationError",
    "WorkbenchError",
    "WorkerDiedError",
]

_FIELDS = ("stage", "node", "source", "expected", "found", "hint")


class WorkbenchError(Exception):
    """Base of all errors that the workbench raises to its users.

    Args:
        message: What went wrong, in one sentence.
        stage: The stage of lowering, for example `"edge"`.
        node: The name of the node in that stage's graph.
        source: `file:line` in the user's model.
        expected: What would have been right.
        found: What stood there instead.
        hint: What the user can do about it.
    """

    def __init__(
        self,
        message: str,
        *,
        stage: str | None = None,
        node: str | None = None,
        source: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.node = node
        self.source = source
        self.expected = expected
        self.found = found
        self.hint = hint

    @property
    def details(self) -> dict[str, str]:
        """The fields that are present, in the order in which they are printed."""
        values = ((name, getattr(self, name)) for name in _FIELDS)
        return {name: str(value) for name, value in values if value is not None}

    def __str__(self) -> str:
        details = self.details
        if not details:
            return self.message
        width = max(len(name) for name in details)
        indent = " " * (width + 4)
        lines = [f"  {name:<{width}}: {value}" for name, value in details.items()]
        return "\n".join([self.message, *(line.replace("\n", "\n" + indent) for line in lines)])

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only fields are not in `args`; without this an error of a worker process would not unpickle.
        return _rebuild, (type(self), self.message, dict(self.__dict__))


def _rebuild(kind: type[WorkbenchError], message: str, state: dict[str, Any]) -> WorkbenchError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class ExportError(WorkbenchError):
    """The model could not be captured as a graph."""


class VerificationError(WorkbenchError):
    """A graph or program breaks an invariant of its stage."""


class LoweringError(WorkbenchError):
    """A step between the exported graph and the program failed."""


class MissingKernelError(LoweringError):
    """An operator that is left in the program has no kernel in the target runtime."""


class QuantizationError(LoweringError):
    """A program can't be quantized as it was asked for."""


class CalibrationError(QuantizationError):
    """Calibration data, or a value that it led to, gives no usable range."""


class CalibrationWarning(UserWarning):
    """Calibration data gave a range that is safe, but probably not what was meant."""


class PartitionError(WorkbenchError):
    """A partition is illegal, or a backend could not preprocess its part."""


class MemoryPlanError(WorkbenchError):
    """No memory plan within the limits exists, or a plan is wrong."""


class EmitError(WorkbenchError):
    """A planned graph could not be written as values and instructions."""


class SerializationError(WorkbenchError):
    """A file could not be written, or is not what it claims to be."""


class ExecutionError(WorkbenchError):
    """The native runtime refused or failed.

    Args:
        message: What went wrong.
        code: The name of the native error, for example `"InvalidArgument"`.
        **details: As of `WorkbenchError`.
    """

    def __init__(self, message: str, *, code: str = "Internal", **details: str | None) -> None:
        super().__init__(message, **details)
        self.code = code

    @property
    def details(self) -> dict[str, str]:
        """As of `WorkbenchError`, with the native code first."""
        return {"code": self.code, **super().details}


class RecipeError(WorkbenchError):
    """An entry of a recipe is malformed or could not be honoured."""


class TraceError(WorkbenchError):
    """A trace could not be recorded, read or joined with its program."""


class SearchError(WorkbenchError):
    """A search for a compressed model can't begin, or found nothing within its budget."""


class WorkerDiedError(SearchError):
    """A worker of a search ended without an answer."""


class SelectionError(WorkbenchError):
    """What shall be selected is not there."""


class DisplayError(WorkbenchError):
    """There is no such view, or what draws it is not installed."""
