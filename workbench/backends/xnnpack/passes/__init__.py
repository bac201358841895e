"""The passes on a graph, in the order in which they run. Each is one file with one function, `run`."""

from __future__ import annotations

from collections.abc import Callable

from workbench.backends.xnnpack.graph import Graph
from workbench.backends.xnnpack.passes import (
    clamps,
    dequantize_late,
    duplicates,
    float_constants,
    integers,
    layout,
    outputs,
    pads,
    quantize_early,
    reshapes,
    scales,
    transposes,
)

__all__ = ["PASSES", "run_passes"]

PASSES: tuple[tuple[str, Callable[[Graph], int]], ...] = (
    ("duplicates", duplicates.run),
    ("reshapes", reshapes.run),
    ("scales", scales.run),
    ("pads", pads.run),
    ("clamps", clamps.run),
    ("quantize_early", quantize_early.run),
    ("dequantize_late", dequantize_late.run),
    ("integers", integers.run),
    ("dequantize_late", dequantize_late.run),
    ("float_constants", float_constants.run),
    ("layout", layout.run),
    ("transposes", transposes.run),
    ("reshapes", reshapes.run),
    ("clamps", clamps.run),
    ("duplicates", duplicates.run),
    ("outputs", outputs.run),
)


def run_passes(graph: Graph) -> dict[str, int]:
    """Run all passes; gives how often each changed something."""
    counts: dict[str, int] = {}
    for name, run in PASSES:
        counts[name] = counts.get(name, 0) + run(graph)
        graph.remove_unread()
    return counts
