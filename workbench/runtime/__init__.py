"""The native runtime: loads programs, runs them, says what it can do.

The interface is that of `executorch.runtime`, so that a script ports by changing its import:

    from workbench.runtime import Runtime

    method = Runtime.get().load_program("model.pte").load_method("forward")
    outputs = method.execute([torch.ones(2, 2)])
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from workbench.runtime._load import native
from workbench.runtime.program import (
    Instruction,
    Method,
    MethodStats,
    Program,
    Verification,
    default_data_files,
)

__all__ = [
    "BackendRegistry",
    "Instruction",
    "Method",
    "MethodMeta",
    "MethodStats",
    "OperatorRegistry",
    "Program",
    "Runtime",
    "TensorInfo",
    "TraceSession",
    "Verification",
    "include_dir",
    "now_ns",
    "set_threads",
    "threads",
]

MethodMeta = native.MethodMeta
TensorInfo = native.TensorInfo
TraceSession = native.TraceSession
now_ns = native.now_ns


def include_dir() -> Path:
    """The folder to give to a compiler with `-I` for `#include <workbench_native/core/plugin.h>`.

    Raises:
        FileNotFoundError: The headers are not installed.
    """
    folder = Path(__file__).resolve().parent.parent / "include"
    if not (folder / "workbench_native" / "core" / "plugin.h").exists():
        raise FileNotFoundError(f"no headers in {folder}; `make native` installs them")
    return folder


def threads() -> int:
    """The number of threads that delegates may use, the calling one included.

    It starts as the number of processors that this process may run on, or as the environment variable
    `LOWERING_WORKBENCH_THREADS` says.
    """
    return int(native.threads())


def set_threads(count: int) -> None:
    """Set the number of threads that delegates may use, in the whole process.

    A method keeps the memory of its threads: one that was loaded with fewer never uses more than these.

    Args:
        count: From 1 (nothing but the calling thread) to 128.

    Raises:
        ValueError: `count` is out of range.
    """
    if not 1 <= count <= 128:
        raise ValueError(f"threads: expected 1 to 128, found {count}")
    native.set_threads(count)


class BackendRegistry:
    """The backends that programs may delegate to."""

    @property
    def registered_backend_names(self) -> list[str]:
        """Their identifiers."""
        return [name for name, _, _ in native.backends()]

    def is_available(self, backend_name: str) -> bool:
        """True if the backend is registered and can run on this machine."""
        return any(name == backend_name and available for name, available, _ in native.backends())

    @property
    def sources(self) -> dict[str, str]:
        """Where each backend was registered: a source file of the build, or the path of a plug-in."""
        return {name: source for name, _, source in native.backends()}


class OperatorRegistry:
    """The operators that have a kernel."""

    @property
    def operator_names(self) -> set[str]:
        """Their names, such as `aten::add.out`."""
        return {name for name, _ in native.kernels()}

    @property
    def sources(self) -> dict[str, str]:
        """The source of each kernel: "the runtime", a source file of the build, or a plug-in's path."""
        return dict(native.kernels())


class Runtime:
    """The runtime of this process.

    Attributes:
        backend_registry: The backends that are known.
        operator_registry: The operators that are known.
    """

    def __init__(self) -> None:
        self.backend_registry = BackendRegistry()
        self.operator_registry = OperatorRegistry()

    @staticmethod
    @functools.lru_cache(maxsize=1)
    def get() -> Runtime:
        """The one instance."""
        return Runtime()

    def load_program(
        self,
        data: Any,
        *,
        data_map: Any = None,
        data_path: Any = None,
        verification: Verification = Verification.InternalConsistency,
        trace: Any = None,
    ) -> Program:
        """Load a program.

        Args:
            data: A path, which is mapped; `bytes`, which are used in place; another buffer or a binary file,
                which is copied.
            data_map: `.ptd` files with data that the program keeps outside: one or a list of paths or
                buffers.
            data_path: The same under the name that `executorch.runtime` has for it.
            verification: For compatibility; everything is always checked.
            trace: Takes the events of loading, also of methods that are loaded later.

        Raises:
            ExecutionError: The file can't be read (`AccessFailed`, `NotFound`) or is broken
                (`InvalidProgram`, `InvalidExternalData`); the message says what and where.
            TypeError: `data` is none of these.
        """
        del verification
        files = default_data_files(data_map) + default_data_files(data_path)
        return Program(data, files, trace=trace)

    def load_plugin(self, path: str | os.PathLike[str]) -> None:
        """Take in the kernels and backends of a shared library, all or none.

        The library exports `workbench_plugin` (see `core/plugin.h` in `include_dir()`), and stays loaded.
        Loading it again does nothing.

        Raises:
            ExecutionError: The library can't be loaded (`AccessFailed`), is no plug-in (`InvalidArgument`),
                was built for other headers (`NotSupported`), or holds a name that is taken
                (`RegistrationAlreadyRegistered`; the message names both sources).
        """
        native.load_plugin(os.fspath(Path(path).resolve()))

    @property
    def active_isa(self) -> str:
        """The instruction set that kernels were compiled for and that is in use, such as `avx2`.

        The environment variable `LOWERING_WORKBENCH_ISA` chooses another before the first program is loaded.
        """
        return str(native.active_isa())

    @property
    def compiled_isas(self) -> list[str]:
        """The instruction sets in this build, best first."""
        return list(native.compiled_isas())
