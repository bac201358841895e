"""How long one execution takes: pinned to one core, the fastest and the median of many short runs."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from workbench.runtime import Runtime

__all__ = ["latency", "pinned"]


@contextmanager
def pinned() -> Iterator[None]:
    """Keep this thread on the last core that it may use; does nothing where the system can't."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def latency(program: str, inputs: Sequence[Any], seconds: float = 0.25) -> tuple[float, float]:
    """Fastest and median execution of a `.pte` file in milliseconds.

    Args:
        program: The file.
        inputs: What it is run with.
        seconds: How long is measured.
    """
    with pinned():
        method = Runtime.get().load_program(program).load_method("forward")
        given = list(inputs)
        for _ in range(3):
            method.execute(given)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < 10 or time.perf_counter() < end:
            start = time.perf_counter_ns()
            method.execute(given)
            times.append((time.perf_counter_ns() - start) / 1e6)
    return min(times), statistics.median(times)
