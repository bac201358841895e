"""Finds the native module.

It stands beside this file. The environment variable `LOWERING_WORKBENCH_NATIVE` names another folder (a
build folder) to take it from instead.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from workbench.errors import ExecutionError

__all__ = ["native"]

NAME = "workbench.runtime._native"


def _load() -> Any:
    folder = Path(os.environ.get("LOWERING_WORKBENCH_NATIVE") or Path(__file__).parent)
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"_native{suffix}"
        if not path.exists():
            continue
        spec = importlib.util.spec_from_file_location(NAME, path)
        if spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        spec.loader.exec_module(module)
        return module
    raise ExecutionError(
        f"the native module is not in {folder}",
        code="NotFound",
        hint="build it with `make native`",
    )


native: Any = _load()
