"""Finds the libraries that run single kernels and operators for tests."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def newest(name: str) -> ctypes.CDLL | None:
    """The library of that name, or None when it has not been built.

    It is looked for in the folder that the environment variable LOWERING_WORKBENCH_HARNESS names, then below
    `build/` (the newest one).
    """
    folder = os.environ.get("LOWERING_WORKBENCH_HARNESS")
    found = [Path(folder) / name] if folder else list((ROOT / "build").glob(f"**/{name}"))
    found = [path for path in found if path.exists()]
    if not found:
        return None
    return ctypes.CDLL(str(max(found, key=lambda path: path.stat().st_mtime)))
