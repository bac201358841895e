"""Programs and methods of the native runtime, with the interface of `executorch.runtime`."""

from __future__ import annotations

import functools
import mmap
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from workbench.runtime._load import native

__all__ = ["Instruction", "Method", "MethodStats", "Program", "Verification"]

# What stands for a program or a data file: a path, bytes (or another buffer), or an open binary file.
Source = Any


class Verification(IntEnum):
    """How much of a program is checked when it is loaded.

    Both members check all of it: the flatbuffer, and every index, size, offset and type in it. The names are
    those of `executorch.runtime`.
    """

    Minimal = 0
    InternalConsistency = 1


class Instruction(NamedTuple):
    """One instruction of a method: where it stands, what kind it is, and the operator's or backend's name."""

    chain: int
    instruction: int
    kind: str
    name: str


class MethodStats(NamedTuple):
    """What loading a method took.

    Attributes:
        load_ns: Nanoseconds of loading, preparation included.
        prepare_ns: Nanoseconds in kernels' preparation (packing of weights) and delegates' initialization.
        arena_bytes: Planned memory.
        scratch_bytes: Memory that instructions share for their own use.
        method_bytes: All memory that the method took: values, arenas, packed weights, scratch.
    """

    load_ns: int
    prepare_ns: int
    arena_bytes: int
    scratch_bytes: int
    method_bytes: int


def native_source(source: Source) -> Any:
    """What the native module takes: a path as `str`, or a buffer."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if hasattr(source, "read") and not isinstance(source, mmap.mmap):
        return source.read()
    return source


def session_of(trace: Any) -> Any:
    """The native `TraceSession` of a trace, which may be one itself or have one as `.session`."""
    return getattr(trace, "session", trace)


def _to_torch(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_torch(item) for item in value]
    if type(value).__name__ != "PyCapsule":
        return value
    return _dlpack().from_dlpack(value)


@functools.cache
def _dlpack() -> Any:
    # Not at the top: a program that gets and gives NumPy arrays runs without torch's import.
    from torch.utils import dlpack

    return dlpack


def _from_torch(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    # torch hands out no memory of tensors that track gradients, and none of lazily conjugated or negated
    # ones.
    if value.requires_grad:
        value = value.detach()
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    # A tensor's `__dlpack__` does the same in Python, and takes ten times as long: 2 us.
    return _dlpack().to_dlpack(value) if value.is_cpu else value


class Method:
    """A method that is ready to be executed.

    One execution at a time: a second one that starts meanwhile, in another thread, gets an `ExecutionError`
    of code `InvalidState`. Different methods, also two that are loaded from the same program, run side by
    side.
    """

    def __init__(self, native_method: Any, metadata: Any) -> None:
        self._method = native_method
        self._metadata = metadata

    def execute(
        self,
        inputs: Sequence[Any] = (),
        *,
        trace: Any = None,
        copy_outputs: bool = True,
        max_instructions: int = 0,
    ) -> list[Any]:
        """Run the method.

        Args:
            inputs: One value for each input: anything with `__dlpack__` or the buffer protocol (torch
                tensors, NumPy arrays) with the dtype, rank and sizes (at most the bounds) of `metadata`, in
                any layout. Memory is used in place where the program leaves that open and the layout fits,
                else copied. Numbers, strings and None must be those of the export.
            trace: A `TraceSession`, or an object that has one as `.session`; takes the events of this
                execution.
            copy_outputs: False gives tensors that refer to the method's own memory: valid as long as they
                live (they keep the method alive), but the next execution writes to them.
            max_instructions: Stop with an error after so many instructions; 0 for no limit.

        Returns:
            The outputs: torch tensors, numbers, strings, None.

        Raises:
            ExecutionError: An input does not fit (`InvalidArgument`), the method is being executed
                (`InvalidState`), it was stopped (`Cancelled`), or an instruction failed. The method can be
                executed again after that.
            TypeError: An input is no tensor, number, string or None.
        """
        found = self._method.execute(
            [_from_torch(value) for value in inputs], session_of(trace), copy_outputs, max_instructions
        )
        return [_to_torch(value) for value in found]

    __call__ = execute

    def cancel(self) -> None:
        """Stop the execution that is under way, if any, before its next instruction. Thread-safe."""
        self._method.cancel()

    @property
    def metadata(self) -> Any:
        """What the program says of the method (`MethodMeta`)."""
        return self._metadata

    @property
    def stats(self) -> MethodStats:
        """What loading took."""
        return MethodStats(**self._method.stats())

    @property
    def load_ms(self) -> float:
        """Milliseconds that loading took."""
        return self.stats.load_ns / 1e6

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions, in the order in which they stand in the program."""
        return [Instruction(*entry) for entry in self._method.instructions()]

    def attribute(self, name: str) -> Any:
        """A copy of a mutable buffer of the model, as a torch tensor.

        Raises:
            ExecutionError: There is no such buffer (`NotFound`).
        """
        return _to_torch(self._method.attribute(name))


class Program:
    """A loaded program: everything in it has been checked, nothing has been copied.

    The file stays mapped as long as the program, one of its methods or one of its tensors lives; it must not
    be shortened meanwhile.
    """

    def __init__(self, source: Source, data_files: Iterable[Source] = (), *, trace: Any = None) -> None:
        self._trace = trace
        files = [native.DataFile(native_source(file)) for file in data_files]
        self._program = native.Program(native_source(source), files, session_of(trace))
        self._names: list[str] = self._program.method_names()
        self._methods: dict[str, Method] = {}
        self._lock = threading.Lock()

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        return set(self._names)

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return int(self._program.nbytes)

    @property
    def named_data_keys(self) -> list[str]:
        """The keys of the data that the program stores by name."""
        return list(self._program.named_data())

    def load_method(
        self,
        name: str = "forward",
        *,
        fresh: bool = False,
        arena_limits: Sequence[int] = (),
        memory_limit: int = 0,
        trace: Any = None,
    ) -> Method:
        """Load a method: give it memory, resolve its operators, prepare its kernels and delegates.

        Args:
            name: One of `method_names`.
            fresh: Load it once more, with memory and state of its own. Otherwise a program loads each method
                once and gives the same object again.
            arena_limits: Bytes that each arena may have; 0 for no limit.
            memory_limit: Bytes that the method may take altogether; 0 for no limit.
            trace: Takes the events of loading.

        Raises:
            ExecutionError: No such method (`NotFound`), a kernel or backend is missing (`OperatorMissing`,
                `NotFound`), a kernel refuses its arguments, or there is not enough memory.
        """
        trace = trace if trace is not None else self._trace
        with self._lock:
            if not fresh and name in self._methods:
                return self._methods[name]
            loaded = native.Method(self._program, name, list(arena_limits), memory_limit, session_of(trace))
            method = Method(loaded, self.metadata(name))
            if not fresh:
                self._methods[name] = method
            return method

    def metadata(self, method_name: str) -> Any:
        """What the program says of a method (`MethodMeta`), without loading it.

        Raises:
            ExecutionError: There is no such method (`NotFound`).
        """
        return self._program.method_meta(method_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __repr__(self) -> str:
        return f"Program(methods={self._names}, nbytes={self.nbytes})"


def default_data_files(data: Source) -> list[Source]:
    """The sources in what a caller gives as `data_map` or `data_path`: None, one source, or several."""
    if data is None:
        return []
    if isinstance(data, (list, tuple)):
        return list(data)
    if isinstance(data, Path) and data.is_dir():
        return sorted(data.glob("*.ptd"))
    return [data]
