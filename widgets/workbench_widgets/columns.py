"""What documents are made of: columns of numbers and of text.

A document is a dataclass whose fields are numbers, text, lists, other dataclasses, and columns. A column of
numbers is a one-dimensional numpy array, annotated with one of the names below; it travels as its bytes. A
column of text is a `Strings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

__all__ = ["F32", "F64", "I32", "U8", "U16", "U32", "Strings"]

F64 = Annotated[npt.NDArray[np.float64], "float64"]
F32 = Annotated[npt.NDArray[np.float32], "float32"]
I32 = Annotated[npt.NDArray[np.int32], "int32"]
U32 = Annotated[npt.NDArray[np.uint32], "uint32"]
U16 = Annotated[npt.NDArray[np.uint16], "uint16"]
U8 = Annotated[npt.NDArray[np.uint8], "uint8"]


class Strings:
    """A column of text, each different text once.

    Args:
        items: The texts, one a row.

    Attributes:
        codes: For each row the position of its text in `values`, uint32.
        values: The different texts, in the order of their first row.
    """

    __slots__ = ("codes", "values")

    def __init__(self, items: Iterable[str]) -> None:
        known: dict[str, int] = {}
        codes = [known.setdefault(item, len(known)) for item in items]
        self.codes = np.array(codes, np.uint32)
        self.values = list(known)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        return self.values[int(self.codes[row])]

    def __iter__(self) -> Iterator[str]:
        return (self.values[code] for code in self.codes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strings) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Strings {len(self)} rows, {len(self.values)} different>"
