"""Documents whose bytes are kept in `common/golden.json`; both sides of the contract are tested with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench_widgets.columns import F32, F64, I32, U8, U16, U32, Strings


@dataclass(frozen=True)
class Inner:
    title: str
    ratio: float | None


@dataclass(frozen=True)
class Golden:
    name: str
    count: int
    exact: bool
    nothing: str | None
    inner: list[Inner]
    table: dict[str, int]
    names: Strings
    f64: F64
    f32: F32
    i32: I32
    u32: U32
    u16: U16
    u8: U8
    empty: F64


def golden() -> dict[str, Any]:
    """A document that is sent as it is, and one that is long enough to be deflated."""
    return {"plain": _made(3), "deflated": _made(1000)}


def _made(rows: int) -> Golden:
    return Golden(
        name="Größe → 1",
        count=rows,
        exact=True,
        nothing=None,
        inner=[Inner("a", 0.5), Inner("b", None)],
        table={"x": 1, "y": -2},
        names=Strings(f"row {index % 3}" for index in range(rows)),
        f64=np.array([np.nan, np.inf, *range(rows - 2)], np.float64),
        f32=np.arange(rows, dtype=np.float32) / 4,
        i32=-np.arange(rows, dtype=np.int32),
        u32=np.arange(rows, dtype=np.uint32) + np.uint32(4_000_000_000),
        u16=np.arange(rows, dtype=np.uint16),
        u8=(np.arange(rows) % 200).astype(np.uint8),
        empty=np.zeros(0),
    )
