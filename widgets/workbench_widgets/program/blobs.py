"""Blobs of delegates, opened where their format is known.

A reader takes a blob and gives what is in it, or None where the blob is of another format. What it reads
nobody vouches for: whatever is wrong with it is a `SerializationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from workbench.errors import SerializationError

__all__ = ["Blob", "BlobStep", "BlobValue", "Section", "open_blob"]


@dataclass(frozen=True)
class Section:
    """A part of a blob.

    Attributes:
        name: What it holds.
        start: First byte, from the blob's start.
        size: Bytes.
    """

    name: str
    start: int
    size: int


@dataclass(frozen=True)
class BlobStep:
    """An instruction.

    Attributes:
        name: What it computes.
        inputs: Names of values.
        outputs: Names of values.
        detail: Options as text.
        identifier: By which the backend's debug map knows it; None where there is none.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    detail: str = ""
    identifier: int | None = None


@dataclass(frozen=True)
class BlobValue:
    """A value.

    Attributes:
        name: As steps call it.
        role: `input`, `output`, `constant` or `temporary`.
        text: Type and sizes.
        data: Name of the program's named data that a constant stands in; empty for others.
    """

    name: str
    role: str
    text: str
    data: str = ""


@dataclass(frozen=True)
class Blob:
    """What is in a blob.

    Attributes:
        format: Name of the format.
        facts: Names and values of the header.
        sections: In order, without overlaps; what lies between is padding.
        steps: In order.
        values: In order.
        note: What could not be read.
    """

    format: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    steps: tuple[BlobStep, ...] = ()
    values: tuple[BlobValue, ...] = ()
    note: str = ""


def open_blob(data: memoryview) -> Blob | None:
    """What is in a blob; None where its format is not known. A damaged one has its `note`."""
    for reader in _readers():
        try:
            found = reader(data)
        except SerializationError as error:
            return Blob(f"{reader.__module__.rpartition('.')[2].upper()}?", note=str(error))
        if found is not None:
            return found
    return None


def _readers() -> tuple[Callable[[memoryview], Blob | None], ...]:
    from workbench_widgets.program import demo, xnnpack

    return demo.read, xnnpack.read
