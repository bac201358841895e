"""Runs the engine's own tests: native_runtime/engine/test*.cc."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAME = "native_runtime/engine/wb_engine_test"


def binary() -> Path:
    """The newest build of the CMake target `wb_engine_test`; `make native` makes one."""
    folder = os.environ.get("LOWERING_WORKBENCH_ENGINE_TEST")
    found = (
        [Path(folder)]
        if folder
        else sorted(ROOT.glob(f"build/*/{NAME}"), key=lambda path: path.stat().st_mtime)
    )
    assert found, f"no {NAME} below build/; build it with `make native`"
    return found[-1]


def test_core_keeps_its_promises_on_random_and_broken_graphs() -> None:
    run = subprocess.run([binary()], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "ok"
