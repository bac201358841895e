"""ExecuTorch's own runtime as another engine for the same programs, if it is installed.

It is never a dependency: it is imported when a run asks for it. A method of it has the interface of
`workbench.runtime.Method`, and its events arrive in the form of our own runtime's, so that traces, tables,
timelines and comparisons need not know where a program ran.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.emit import ir
from workbench.errors import ExecutionError, MissingKernelError, TraceError
from workbench.inspector.names import EXECUTE_EVENT, OVERHEAD_EVENT
from workbench.inspector.trace import EVENT_DTYPE, Kind
from workbench.serialize.etdump import DebugEvent, ETDump, ProfileEvent, TensorRef, read_etdump

__all__ = ["PeerMethod", "PeerSession"]

# Numbers of executorch::runtime::Error, which stand in its messages.
_CODES = {
    0x01: "Internal",
    0x02: "InvalidState",
    0x10: "NotSupported",
    0x11: "NotImplemented",
    0x12: "InvalidArgument",
    0x13: "InvalidType",
    0x14: "OperatorMissing",
    0x20: "NotFound",
    0x21: "MemoryAllocationFailed",
    0x22: "AccessFailed",
    0x23: "InvalidProgram",
    0x24: "InvalidExternalData",
    0x25: "OutOfResources",
    0x30: "DelegateInvalidCompatibility",
    0x31: "DelegateMemoryAllocationFailed",
    0x32: "DelegateInvalidHandle",
}
_MOVES = {"MOVE_CALL": "move", "JF_CALL": "jump_false", "FREE_CALL": "free"}
# Room for the alignment of each recorded value.
_PADDING = 64


class PeerSession:
    """Takes the events of executions in ExecuTorch's runtime.

    Has what a `Trace` asks of a session of the native runtime.

    Args:
        values: Record what instructions wrote in the first execution, too.
    """

    dropped = 0
    outputs_dropped = 0

    def __init__(self, *, values: bool = False) -> None:
        self.values = values
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        self._pending: list[tuple[bytes, ir.Method]] = []
        self._lock = threading.Lock()
        self._executions = 0
        self._outputs: list[dict[str, Any]] = []
        self._buffer = b""

    def take(self, dump: bytes, method: ir.Method, buffer: bytes = b"") -> None:
        """Add what one execution recorded.

        Args:
            dump: The bytes of its ETDump.
            method: What was executed.
            buffer: Its debug buffer.
        """
        with self._lock:
            self._pending.append((dump, method))
            self._buffer = self._buffer or buffer

    def drain(self) -> bytes:
        """The events that are new, packed as `EVENT_DTYPE`."""
        with self._lock:
            pending, self._pending = self._pending, []
            rows = [row for dump, method in pending for row in self._rows(read_etdump(dump), method)]
        return np.array(rows, EVENT_DTYPE).tobytes() if rows else b""

    def outputs(self) -> list[dict[str, Any]]:
        """The values that were recorded."""
        return self._outputs

    def debug_buffer(self) -> bytes:
        """The bytes that `outputs` refer to."""
        return self._buffer

    def _rows(self, dump: ETDump, method: ir.Method) -> Iterator[tuple[int, ...]]:
        for block in dump.blocks:
            executed = block.name.startswith("Execute")
            places: dict[tuple[int, int, Any], int] = {}
            for event in block.events:
                if isinstance(event, ProfileEvent) and event.name != OVERHEAD_EVENT:
                    yield self._row(event, method)
                elif isinstance(event, DebugEvent) and not event.value.is_output:
                    self._record(event, places)
            self._executions += executed

    def _row(self, event: ProfileEvent, method: ir.Method) -> tuple[int, ...]:
        number, text, instruction = -1, "", event.instruction
        if event.delegate_id is not None:
            kind, name = Kind.DELEGATE, str(event.delegate_id)
            number, text = (event.delegate_id, "") if isinstance(event.delegate_id, int) else (-1, name)
        elif event.name == EXECUTE_EVENT:
            kind, name, instruction = Kind.EXECUTE, method.name, -1
        elif event.chain < 0:  # loading
            kind, name, instruction = Kind.LOAD, event.name, -1
        else:
            kind, name = Kind.INSTRUCTION, _instruction_name(event, method)
        return (
            event.start,
            event.end,
            self._name(name),
            self._name(text) if text else -1,
            event.chain,
            instruction,
            number,
            self._executions,
            kind,
        )

    def _name(self, text: str) -> int:
        index = self._index.setdefault(text, len(self.names))
        if index == len(self.names):
            self.names.append(text)
        return index

    def _record(self, event: DebugEvent, places: dict[tuple[int, int, Any], int]) -> None:
        payload = event.value.payload
        key = (event.chain, event.instruction, event.delegate_id)
        for ref in payload if isinstance(payload, list) else [payload]:
            if not isinstance(ref, TensorRef):
                continue
            index = places[key] = places.get(key, -1) + 1
            delegate = event.delegate_id
            self._outputs.append(
                {
                    "instruction": event.instruction,
                    "chain": event.chain,
                    "execution": self._executions,
                    "index": index,
                    "delegate_id": delegate if isinstance(delegate, int) else -1,
                    "delegate_name": delegate if isinstance(delegate, str) else "",
                    "dtype": ref.dtype,
                    "sizes": ref.sizes,
                    "dim_order": _dim_order(ref),
                    "offset": ref.offset,
                }
            )


class PeerMethod:
    """A method of a program in ExecuTorch's runtime.

    Args:
        source: The program: its path, or its bytes.
        program: The same, read.
        name: The method.

    Raises:
        ExecutionError: ExecuTorch is not installed (`NotFound`), lacks a backend (`NotFound`), or refuses the
            program.
        MissingKernelError: It has no kernel for an operator.
    """

    def __init__(self, source: str | bytes, program: ir.Program, name: str) -> None:
        known = {method.name: method for method in program.methods}
        if name not in known:
            raise ExecutionError(
                f"there is no method '{name}'", code="InvalidArgument", expected=", ".join(known)
            )
        self._source, self._method = source, known[name]
        self._library = _library()
        _check(self._library, self._method)
        self._plain: Any = None
        self._traced: Any = None

    def execute(self, inputs: Sequence[Any] = (), *, trace: Any = None) -> list[Any]:
        """Run the method.

        Args:
            inputs: One value for each input; tensors are laid out as the program has them.
            trace: A `PeerSession`, or an object that has one as `.session`.

        Raises:
            ExecutionError: The runtime refuses the inputs, or an instruction failed.
            TraceError: Values are to be recorded of a program that loops.
        """
        session = getattr(trace, "session", trace)
        given = self._laid_out(inputs)
        if session is None:
            self._plain = self._plain or self._load()
            return self._call(self._plain, given)
        if session.values and not session.debug_buffer():
            return self._recorded(given, session)
        self._traced = self._traced or self._load(enable_etdump=True)
        outputs = self._call(self._traced, given)
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            session.take(self._written(self._traced, Path(folder))[0], self._method)
        return outputs

    def _recorded(self, inputs: list[Any], session: PeerSession) -> list[Any]:
        # A debug buffer that overflows ends the process, and it takes values of one execution only.
        module = self._load(enable_etdump=True, debug_buffer_size=_room(self._method))
        outputs = self._call(module, inputs)
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            dump, buffer = self._written(module, Path(folder), values=True)
        session.take(dump, self._method, buffer)
        return outputs

    def _load(self, **options: Any) -> Any:
        load = self._library._load_for_executorch
        if isinstance(self._source, bytes):
            load = self._library._load_for_executorch_from_buffer
        try:
            return load(self._source, **options)
        except RuntimeError as error:
            raise _failed("ExecuTorch's runtime refuses the program", error) from error

    def _call(self, module: Any, inputs: list[Any]) -> list[Any]:
        try:
            return list(module.run_method(self._method.name, inputs))
        except RuntimeError as error:
            what = f"ExecuTorch's runtime could not run '{self._method.name}'"
            raise _failed(what, error) from error

    def _written(self, module: Any, folder: Path, *, values: bool = False) -> tuple[bytes, bytes]:
        dump, buffer = folder / "trace.etdp", folder / "values.bin"
        if not values:
            module.write_etdump_result_to_file(str(dump))
            return dump.read_bytes(), b""
        module.write_etdump_result_to_file(str(dump), str(buffer))
        return dump.read_bytes(), buffer.read_bytes()

    def _laid_out(self, inputs: Sequence[Any]) -> list[Any]:
        expected = [self._method.values[index] for index in self._method.inputs]
        if len(inputs) != len(expected):
            raise ExecutionError(
                f"'{self._method.name}' takes other inputs",
                code="InvalidArgument",
                expected=str(len(expected)),
                found=str(len(inputs)),
            )
        return [
            _laid_out(f"input {place} of '{self._method.name}'", value, wanted)
            for place, (value, wanted) in enumerate(zip(inputs, expected, strict=True))
        ]


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep away what a library writes to standard error while it is loaded (how it looked at the processor).

    Native code writes past `sys.stderr`. If loading fails, what it wrote is shown after all.
    """
    with tempfile.TemporaryFile() as heard:
        kept = os.dup(2)
        os.dup2(heard.fileno(), 2)
        try:
            yield
        except BaseException:
            heard.seek(0)
            os.write(kept, heard.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


@cache
def _library() -> Any:
    """ExecuTorch's Python binding."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that its interface may change
            with _silenced():
                library = importlib.import_module("executorch.extension.pybindings.portable_lib")
                # The threads are made when they are first counted, at the latest by the first product.
                getattr(library, "_threadpool_get_thread_count", int)()
                return library
    except ImportError as error:
        raise ExecutionError(
            "ExecuTorch's runtime can't be loaded",
            code="NotFound",
            found=str(error),
            hint="pip install executorch",
        ) from error


def _check(library: Any, method: ir.Method) -> None:
    """Refuse what the runtime would only tell in its log."""
    called = {
        method.operator_name(item.operator)
        for chain in method.chains
        for item in chain.instructions
        if isinstance(item, ir.KernelCall)
    }
    missing = called - set(library._get_operator_names())
    if any(name.startswith("quantized_decomposed::") for name in missing):
        with contextlib.suppress(ImportError):  # told below, with the operators
            importlib.import_module("executorch.kernels.quantized")
        missing = called - set(library._get_operator_names())
    if missing:
        raise MissingKernelError(
            f"ExecuTorch's runtime has no kernel for {len(missing)} operators of '{method.name}'",
            found=", ".join(sorted(missing)),
            hint="import the library that registers them before",
        )
    wanted = {delegate.backend_id for delegate in method.delegates}
    known = set(library._get_registered_backend_names())
    lacking = sorted(name for name in wanted if name not in known or not library._is_available(name))
    if lacking:
        raise ExecutionError(
            f"ExecuTorch's runtime has no backend {', '.join(lacking)}",
            code="NotFound",
            expected=", ".join(sorted(wanted)),
            found=", ".join(sorted(known)) or "none",
            hint="lower without its partitioner to run here",
        )


def _failed(what: str, error: RuntimeError) -> ExecutionError:
    text = str(error)
    number = re.search(r"0x([0-9a-fA-F]+)", text)
    code = _CODES.get(int(number[1], 16), "Internal") if number else "Internal"
    return ExecutionError(what, code=code, found=text, hint="its log has more")


def _instruction_name(event: ProfileEvent, method: ir.Method) -> str:
    """The name that our runtime gives to the event of an instruction."""
    chain = method.chains[event.chain] if event.chain < len(method.chains) else ir.Chain()
    if not 0 <= event.instruction < len(chain.instructions):
        return event.name
    instruction = chain.instructions[event.instruction]
    if isinstance(instruction, ir.KernelCall):
        return method.operator_name(instruction.operator)
    if isinstance(instruction, ir.DelegateCall):
        return method.delegates[instruction.delegate].backend_id
    return _MOVES.get(event.name, event.name)


def _dim_order(ref: TensorRef) -> tuple[int, ...]:
    strides = ref.strides or tuple(range(len(ref.sizes), 0, -1))
    return tuple(sorted(range(len(strides)), key=lambda dim: -strides[dim]))


def _room(method: ir.Method) -> int:
    """Bytes that the values of one execution take at most."""
    total = 0
    for chain in method.chains:
        for index, instruction in enumerate(chain.instructions):
            if isinstance(instruction, ir.JumpFalse) and instruction.destination <= index:
                raise TraceError(
                    "values can't be recorded in ExecuTorch's runtime where a program loops",
                    hint="record times only, or run in the workbench's own runtime",
                )
            if isinstance(instruction, ir.KernelCall | ir.DelegateCall):
                total += sum(_bytes_of(method, arg) + _PADDING for arg in instruction.args)
    return total + sum(_bytes_of(method, index) + _PADDING for index in method.outputs) + 4096


def _bytes_of(method: ir.Method, index: int) -> int:
    value = method.values[index]
    if isinstance(value, ir.Tensor):
        return value.nbytes
    if isinstance(value, ir.TensorList | ir.OptionalTensorList):
        return sum(_bytes_of(method, item) + _PADDING for item in value.items if item >= 0)
    return 0


def _laid_out(what: str, value: Any, wanted: ir.Value) -> Any:
    if not isinstance(wanted, ir.Tensor):
        return value
    dtype = ir.TYPE_NAMES.get(wanted.scalar_type, "?")
    if not isinstance(value, torch.Tensor):
        raise ExecutionError(
            f"{what} is no tensor",
            code="InvalidArgument",
            expected=f"{dtype} {wanted.sizes}",
            found=type(value).__name__,
        )
    found = str(value.dtype).removeprefix("torch.")
    # Sizes of a dynamic tensor are upper bounds.
    fits = all(
        size == bound or (wanted.dynamism and size < bound)
        for size, bound in zip(value.shape, wanted.sizes, strict=False)
    )
    if found != dtype or value.ndim != len(wanted.sizes) or not fits:
        raise ExecutionError(
            f"{what} does not fit",
            code="InvalidArgument",
            expected=f"{dtype} {wanted.sizes}" + (" at most" if wanted.dynamism else ""),
            found=f"{found} {tuple(value.shape)}",
        )
    dense = value.detach().permute(wanted.dim_order).contiguous()
    return dense.permute(_places(wanted.dim_order))


def _places(order: Iterable[int]) -> list[int]:
    """The inverse of a permutation."""
    dims = list(order)
    return [dims.index(dim) for dim in range(len(dims))]
