"""How things are timed: one process per measurement, pinned to one core, medians."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def median_seconds(call: Callable[[], Any], *, budget: float, least: int = 3, warm_up: int = 2) -> float:
    """The median time of a call, seconds.

    Args:
        call: What is timed.
        budget: Seconds to spend; a call that takes longer than half of it is warmed up once only.
        least: Fewest timed calls.
        warm_up: Untimed calls before.
    """
    for turn in range(warm_up):
        start = time.perf_counter()
        call()
        if time.perf_counter() - start > budget / 2 and turn == 0:
            break
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def free_cores(count: int) -> set[int]:
    """The cores to pin to: the last ones that this process may use."""
    return set(sorted(os.sched_getaffinity(0))[-count:])


def in_worker(what: str, *arguments: str, cores: int = 1, timeout: float = 900.0) -> dict[str, Any]:
    """Run one measurement of `benchmarks.worker` in a process of its own, pinned to some cores.

    The worker gives each peer as many threads as it has cores.

    Returns:
        What it printed, or `{"error": why}`.
    """
    command = [sys.executable, "-m", "benchmarks.worker", what, *arguments]
    pinned = free_cores(cores)
    threads = str(len(pinned))
    environment = dict(os.environ, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads, HF_HUB_OFFLINE="1")
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, pinned),
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {timeout:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        tail = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"error": tail[:200]}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def resident_bytes(field: str) -> int:
    """`VmRSS` (resident now) or `VmHWM` (at most so far) of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/self/status has no {field}")


def forget_peak() -> None:
    """Set `VmHWM` to what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def processor() -> str:
    """Name and vector instructions of this machine's processor."""
    name, flags = "unknown processor", set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
        elif line.startswith("flags"):
            flags = set(line.split())
            break
    known = [flag for flag in ("avx2", "fma", "avx512f", "avx512_vnni", "amx_tile") if flag in flags]
    return f"{name} ({', '.join(known)})"
