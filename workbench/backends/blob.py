"""Blobs of delegates, opened where their format is known.

A backend's `read_blob` gives what is in a blob, or None where the blob is of another format. What it reads
nobody vouches for: whatever is wrong with it is a `SerializationError`.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """What is in a blob; None where no backend knows its format. A damaged one has its `note`.

    Every backend that can be found is asked, since equal blobs of a program are stored once.
    """
    from workbench.backends.registry import backend_ids, get_backend

    for identifier in backend_ids():
        try:
            found = get_backend(identifier).read_blob(data)
        except SerializationError as error:
            return Blob(f"{identifier}?", note=str(error))
        if found is not None:
            return found
    return None
