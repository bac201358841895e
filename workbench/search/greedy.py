"""From the damage of each layer to a path of choices between floats and the smallest program.

Each layer has a curve: what it saves with each scheme, and what damage that does. Only the corners of the
lower convex hull of a curve are of use; all corners of all layers, in the order of damage per saving, are the
path. Noise of different layers is taken as independent, so that it adds up: that is what the candidates on
the path are measured for. The method is that of bit allocation by Lagrange multipliers (Shoham and Gersho,
1988).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Move", "hull", "path"]


@dataclass(frozen=True)
class Move:
    """A layer takes a scheme.

    Attributes:
        layer: The layer.
        scheme: The scheme.
        slope: Damage per saving, against the corner before.
    """

    layer: str
    scheme: str
    slope: float


def hull(options: Mapping[str, tuple[float, float]]) -> list[tuple[str, float]]:
    """The corners of the lower convex hull from (0, 0) on.

    Args:
        options: By scheme what it saves and what damage it does.

    Returns:
        Schemes with the damage per saving since the corner before, which grows.
    """
    corners: list[tuple[str, float]] = []
    saved, damage = 0.0, 0.0
    while True:
        best: tuple[float, float, str] | None = None
        for name, (saves, harms) in options.items():
            if saves > saved:
                slope = (harms - damage) / (saves - saved)
                if best is None or (slope, -saves, name) < best:
                    best = (slope, -saves, name)
        if best is None:
            return corners
        slope, saves, name = best
        corners.append((name, slope))
        saved, damage = -saves, options[name][1]


def path(layers: Mapping[str, Mapping[str, tuple[float, float]]]) -> list[Move]:
    """All moves, the cheapest first; those of one layer in order.

    Args:
        layers: By layer its options, as of `hull`.
    """
    moves = []
    for layer, options in layers.items():
        steepest = float("-inf")
        for scheme, slope in hull(options):
            steepest = max(steepest, slope)
            moves.append(Move(layer, scheme, steepest))
    return sorted(moves, key=lambda move: move.slope)  # stable: a layer's own moves keep their order
