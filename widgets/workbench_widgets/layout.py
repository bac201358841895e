"""Layout of the boxes and edges of one container, for pictures that are made in Python.

The views use the same engine compiled to WebAssembly (`widgets/layout/engine.ts`); both give the same places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.errors import DisplayError

__all__ = ["Layout", "layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of n boxes and polylines of m edges, in px; x grows to the right, y downwards.

    Attributes:
        x: float32[n], left borders.
        y: float32[n], top borders.
        width: Of everything with its margin.
        height: Of everything with its margin.
        edge_start: int32[m + 1]; edge `e` has the points `edge_start[e]` up to `edge_start[e + 1]`.
        points: float32[k, 2], x and y of all points; parts of a line are horizontal or vertical.
    """

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]
    width: float
    height: float
    edge_start: npt.NDArray[np.int32]
    points: npt.NDArray[np.float32]

    def line(self, edge: int) -> npt.NDArray[np.float32]:
        """The points of one edge, from its source to its target: float32[k, 2]."""
        return self.points[self.edge_start[edge] : self.edge_start[edge + 1]]


def layout(
    width: npt.ArrayLike,
    height: npt.ArrayLike,
    src: npt.ArrayLike,
    dst: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    anchor_x: npt.ArrayLike | None = None,
    anchor_y: npt.ArrayLike | None = None,
    *,
    gap_x: float = 24.0,
    gap_y: float = 36.0,
    margin: float = 16.0,
    sweeps: int = 8,
    max_span: int = 32,
) -> Layout:
    """Places boxes in rows and routes the edges between them; deterministic, in near linear time.

    Args:
        width: float32[n], px. Boxes stand in topological order; an edge to an earlier box runs at the side.
        height: float32[n], px.
        src: int32[m], indices of boxes; -1 comes in from the top border.
        dst: int32[m], indices of boxes; -1 leaves through the bottom border.
        weight: int32[m], how much an edge should be straight; ones by default.
        anchor_x: float32[n], px: where a box stood before, NaN for new ones. An anchored box keeps its place
            exactly, unless it would lie on another one or above its producer.
        anchor_y: float32[n], px.
        gap_x: Between the boxes of a row, px.
        gap_y: Between rows, px; more where many edges run in between.
        margin: Around everything, px.
        sweeps: Barycentre sweeps, each down or up.
        max_span: Rows up to which an edge runs between the boxes; longer ones take a lane at the side.

    Raises:
        DisplayError: The engine was not built, or an argument is out of its range.
    """
    try:
        from workbench_widgets import _layout
    except ImportError as error:
        raise DisplayError("The layout engine is not built.", hint="Build it with `make native`.") from error
    sources = _column("src", src, np.int32)
    weights = np.ones(len(sources), np.int32) if weight is None else _column("weight", weight, np.int32)
    nowhere = np.zeros(0, np.float32)
    try:
        x, y, total_width, total_height, edge_start, points = _layout.layout(
            _column("width", width, np.float32),
            _column("height", height, np.float32),
            sources,
            _column("dst", dst, np.int32),
            weights,
            nowhere if anchor_x is None else _column("anchor_x", anchor_x, np.float32),
            nowhere if anchor_y is None else _column("anchor_y", anchor_y, np.float32),
            float(gap_x),
            float(gap_y),
            float(margin),
            int(sweeps),
            int(max_span),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise DisplayError("The graph cannot be laid out.", expected=str(error)) from error
    return Layout(x, y, total_width, total_height, edge_start, points.reshape(-1, 2))


def _column(name: str, values: npt.ArrayLike, kind: type[Any]) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, kind)
    if array.ndim != 1 or array.dtype.kind not in ("iuf" if kind is np.float32 else "iu"):
        raise DisplayError(
            "The graph cannot be laid out.",
            expected=f"{name}: a column of {kind.__name__}",
            found=f"{array.dtype}{list(array.shape)}",
        )
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(array, kind)
    if kind is np.int32 and not np.array_equal(converted, array):
        raise DisplayError("The graph cannot be laid out.", expected=f"{name}: numbers that fit in int32")
    return converted
