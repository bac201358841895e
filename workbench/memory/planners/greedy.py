"""Greedy by size: largest buffer first, each into the smallest gap that holds it.

Algorithm "Greedy by Size for Offset Calculation" of Pisarchyk and Lee, "Efficient Memory Management for
Deep Neural Net Inference", arXiv:2001.03288; the planner of ExecuTorch and LiteRT.
"""

from __future__ import annotations

from workbench.memory.placement import place
from workbench.memory.problem import Problem

__all__ = ["plan"]


def plan(problem: Problem) -> list[int]:
    """Place by falling size, then by rising first moment. O(n log n) plus the pairs alive together."""
    order = sorted(range(len(problem)), key=lambda i: (-problem.sizes[i], problem.first[i], i))
    offsets = place(problem, order)
    assert offsets is not None
    return offsets
