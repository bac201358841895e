"""What this machine reaches at most: arithmetic on one core, and traffic to its memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

__all__ = ["Peaks", "known_peaks", "measure_peaks"]

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
# A size of last-level cache where the system does not tell one.
_USUAL_CACHE = 32 << 20
_LARGEST_ARRAY = 96 << 20


@dataclass(frozen=True)
class Peaks:
    """The two limits of a roofline.

    Attributes:
        gflops: 1e9 operations a second of one core, float32: a matrix product of 384 x 384.
        gbytes: 1e9 bytes a second between one core and memory: a[i] = b[i] + s * c[i] on arrays beyond the
            caches; each read and each write counts once.
        cache_bytes: The last-level cache.
        array_bytes: Each of the three arrays.
        seconds: How long the measurement took.
    """

    gflops: float
    gbytes: float
    cache_bytes: int
    array_bytes: int
    seconds: float

    @property
    def ridge(self) -> float:
        """Operations per byte from where on arithmetic limits."""
        return self.gflops / self.gbytes


_known: Peaks | None = None
_lock = threading.Lock()


def known_peaks() -> Peaks | None:
    """What was measured in this process, or None."""
    return _known


def measure_peaks(*, again: bool = False) -> Peaks:
    """Measure, once a process: on one thread, the best of several tries.

    Args:
        again: Measure anew.
    """
    global _known
    with _lock:
        if _known is None or again:
            _known = _measure()
        return _known


def _measure() -> Peaks:
    began = time.perf_counter()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        gflops = _arithmetic()
        cache = _last_level_cache()
        array = min(max(cache, 16 << 20), _LARGEST_ARRAY)
        gbytes = _traffic(array)
    finally:
        torch.set_num_threads(threads)
    return Peaks(gflops, gbytes, cache, array, time.perf_counter() - began)


def _arithmetic(size: int = 384, budget: float = 0.3) -> float:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.rand(size, size, generator=generator) for _ in range(2))
    out = torch.empty(size, size)
    with torch.no_grad():
        torch.mm(a, b, out=out)
        best = _best(lambda: torch.mm(a, b, out=out), budget)
    return 2 * size**3 / best / 1e9


def _best(work: Callable[[], object], budget: float) -> float:
    """The shortest time of many short tries within so many seconds: others may use the machine, too."""
    best = float("inf")
    end = time.perf_counter() + budget
    for _ in range(400):
        start = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            break
    return best


def _traffic(array_bytes: int, budget: float = 0.25) -> float:
    count = array_bytes // 4
    # Ones, not zeros: pages of zeros are not backed by memory of their own until they are written.
    b, c = (torch.from_numpy(np.ones(count, np.float32)) for _ in range(2))
    out = torch.empty(count)
    with torch.no_grad():
        torch.add(b, c, alpha=0.5, out=out)
        best = _best(lambda: torch.add(b, c, alpha=0.5, out=out), budget)
    return 3 * array_bytes / best / 1e9


def _last_level_cache() -> int:
    sizes = []
    for index in _CACHES.glob("index*") if _CACHES.is_dir() else ():
        try:
            text = (index / "size").read_text().strip()
        except OSError:
            continue
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        digits = text.rstrip("KMG")
        if digits.isdigit():
            sizes.append(int(digits) * factor)
    if not sizes and hasattr(os, "sysconf"):
        known = os.sysconf_names.get("SC_LEVEL3_CACHE_SIZE")
        if known is not None:
            sizes.append(max(os.sysconf(known), 0))
    return max(sizes, default=0) or _USUAL_CACHE
