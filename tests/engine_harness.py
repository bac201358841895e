"""Runs single operators of the engine on tensors, without a graph around them.

The library comes from the CMake target `wb_engine_harness`. It is looked for in the folder that the
environment variable LOWERING_WORKBENCH_HARNESS names, then below `build/` (the newest one).

Where LOWERING_WORKBENCH_RECORD names a file, all that is run is recorded there, to be repeated elsewhere.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

import harness_library
import replay_records
from workbench.emit.ir import SCALAR_TYPES

ROOT = Path(__file__).resolve().parents[1]
NAME = "libwb_engine_harness.so"
GUARD = 64
INPUT = 128  # number of the first input register of a pointwise program

_DTYPES = {getattr(torch, name): number for name, number in SCALAR_TYPES.items()}


class OperatorError(Exception):
    """An operator refused its node: numeric code and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code:#x}: {text}")
        self.code = code


@dataclass(frozen=True)
class Step:
    """One step of a pointwise program: the function's name in `Fn`, its operands, its parameters."""

    fn: str
    operands: Sequence[int] = (0,)
    a: float = 0.0
    b: float = 0.0


@dataclass(frozen=True)
class Quantization:
    """How integers stand for numbers: the fields of `Quantization` in `engine/graph.h`."""

    scale: float = 1.0
    zero_point: int = 0
    kind: str = "PerTensor"
    scales: torch.Tensor | None = None
    zero_points: torch.Tensor | None = None
    axis: int = 0
    group: int = 0
    bits: int = 8


@dataclass(frozen=True)
class Quantized:
    """Integers and what they stand for.

    Attributes:
        data: The integers, or bytes where more than one integer stands in a byte or something follows them.
        shape: Where it is not that of `data`.
        dtype: Likewise.
    """

    data: torch.Tensor
    quantization: Quantization
    shape: Sequence[int] | None = None
    dtype: torch.dtype | None = None


Operand = torch.Tensor | Quantized | None


@cache
def enumerators(name: str) -> dict[str, int]:
    """Names and numbers of an enumeration of `engine/graph.h`."""
    text = (ROOT / "native_runtime/engine/graph.h").read_text()
    text = re.sub(r"//.*", "", text)
    match = re.search(rf"enum class {name} : std::uint8_t {{(.*?)}}", text, re.DOTALL)
    assert match is not None, name
    return {word: i for i, word in enumerate(re.findall(r"\w+", match[1]))}


@cache
def _records() -> replay_records.Records | None:
    path = os.environ.get("LOWERING_WORKBENCH_RECORD")
    return replay_records.Records(Path(path), per_operator=250, elements=30_000) if path else None


@cache
def library() -> ctypes.CDLL | None:
    """The harness, or None when it has not been built."""
    lib = harness_library.newest(NAME)
    if lib is None:
        return None
    lib.wb_engine_node.restype = ctypes.c_void_p
    return lib


def set_threads(count: int) -> None:
    """How many threads operators use from now on."""
    lib = library()
    assert lib is not None, "build the target wb_engine_harness"
    lib.wb_engine_threads(count)


@contextmanager
def trial(injected: Mapping[str, int] | None = None) -> Iterator[Callable[[], list[tuple[str, int]]]]:
    """Operators that are run meanwhile try their methods.

    Args:
        injected: Nanoseconds that count for a method instead of what was measured.

    Yields:
        A function that tells what was measured so far: method, nanoseconds.
    """
    lib = library()
    assert lib is not None, "build the target wb_engine_harness"
    lib.wb_engine_measured.restype = ctypes.c_char_p

    def measured() -> list[tuple[str, int]]:
        lines = lib.wb_engine_measured().decode().splitlines()
        return [(method, int(ns)) for method, ns in (line.split("\t") for line in lines)]

    lib.wb_engine_trial(1)
    try:
        for method, ns in (injected or {}).items():
            lib.wb_engine_inject(method.encode(), ctypes.c_int64(ns))
        yield measured
    finally:
        lib.wb_engine_trial(0)


def _attach(lib: ctypes.CDLL, node: ctypes.c_void_p, role: int, operand: Operand, *, constant: bool) -> None:
    if operand is None:
        lib.wb_engine_tensor(node, role, 6, 0, None, None, 0, 0)
        return
    tensor = operand.data if isinstance(operand, Quantized) else operand
    assert tensor.is_contiguous(), "the harness takes dense tensors"
    shape, dtype = tuple(tensor.shape), tensor.dtype
    if isinstance(operand, Quantized):
        shape, dtype = tuple(operand.shape or shape), operand.dtype or dtype
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    data = ctypes.c_void_p(tensor.data_ptr())
    lib.wb_engine_tensor(node, role, _DTYPES[dtype], len(shape), sizes, data, int(constant), 1)
    if isinstance(operand, Quantized):
        _quantize(lib, node, role, operand.quantization)


def _quantize(lib: ctypes.CDLL, node: ctypes.c_void_p, role: int, q: Quantization) -> None:
    arrays = []
    for tensor, dtype in ((q.scales, torch.float32), (q.zero_points, torch.int32)):
        assert tensor is None or (tensor.dtype == dtype and tensor.is_contiguous())
        arrays.append(None if tensor is None else ctypes.c_void_p(tensor.data_ptr()))
    kind = enumerators("Kind")[q.kind]
    scale, group = ctypes.c_float(q.scale), ctypes.c_int64(q.group)
    lib.wb_engine_quantize(node, role, kind, q.bits, q.axis, group, scale, q.zero_point, *arrays)


def _record(operand: Operand) -> replay_records.Tensor | None:
    if operand is None:
        return None
    if isinstance(operand, torch.Tensor):
        return replay_records.Tensor(operand, tuple(operand.shape), operand.dtype)
    tensor, q = operand.data, operand.quantization
    return replay_records.Tensor(
        tensor,
        tuple(operand.shape or tensor.shape),
        operand.dtype or tensor.dtype,
        (enumerators("Kind")[q.kind], q.bits, q.axis, q.group, q.zero_point),
        q.scale,
        q.scales,
        q.zero_points,
    )


def _set_attribute(lib: ctypes.CDLL, node: ctypes.c_void_p, name: str, value: object) -> None:
    if name == "sizes":
        assert isinstance(value, Sequence)
        for i, item in enumerate(value):
            size, source = item if isinstance(item, tuple) else (item, -1)
            lib.wb_engine_size(node, i, ctypes.c_int64(size), source)
        return
    numbers = value if isinstance(value, list | tuple) else [value]
    for i, number in enumerate(numbers):
        known = lib.wb_engine_attribute(node, name.encode(), i, ctypes.c_double(float(number)))
        assert known, f"engine/harness.cc has no attribute {name}"


def guarded(shape: Sequence[int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """An output full of rubbish, and the bytes after its end that must stay as they are."""
    size = torch.empty((), dtype=dtype).element_size()
    count = 1
    for extent in shape:
        count *= extent
    memory = torch.full((count * size + GUARD,), 0xA5, dtype=torch.uint8)
    return memory[: count * size].view(dtype).view(list(shape)), memory[count * size :]


def run(
    op: str,
    inputs: Sequence[Operand],
    outputs: Sequence[
        tuple[Sequence[int], torch.dtype] | tuple[Sequence[int], torch.dtype, Quantization] | None
    ],
    attributes: Mapping[str, object] | None = None,
    *,
    post: Sequence[Step] = (),
    post_inputs: Sequence[torch.Tensor | Quantized] = (),
    constants: Sequence[int] = (),
    times: int = 1,
    seconds: list[float] | None = None,
) -> list[torch.Tensor | None]:
    """Run one operator.

    Args:
        op: Its name in `Op`.
        inputs: Dense tensors, None for what is left out.
        outputs: Shape and dtype of each, and how its integers stand for numbers if they do; None for what is
            left out.
        attributes: Values by their names in `Attributes`.
        post: The pointwise program.
        post_inputs: Its operands.
        constants: Which inputs are constants.
        times: How often to run.
        seconds: The shortest run's time is appended.

    Raises:
        OperatorError: The operator refused the node, or wrote where it may not.
    """
    lib = library()
    assert lib is not None, "build the target wb_engine_harness"
    node = ctypes.c_void_p(lib.wb_engine_node(enumerators("Op")[op]))
    try:
        for name, value in (attributes or {}).items():
            _set_attribute(lib, node, name, value)
        for step in post:
            x, y, z = (*step.operands, 0, 0)[:3]
            fn = enumerators("Fn")[step.fn]
            lib.wb_engine_step(node, fn, x, y, z, ctypes.c_float(step.a), ctypes.c_float(step.b))
        for i, tensor in enumerate(inputs):
            _attach(lib, node, 0, tensor, constant=i in constants)
        made = [None if out is None else guarded(out[0], out[1]) for out in outputs]
        results: list[Operand] = [
            None if pair is None or out is None else Quantized(pair[0], out[2]) if len(out) == 3 else pair[0]
            for pair, out in zip(made, outputs, strict=True)
        ]
        for result in results:
            _attach(lib, node, 1, result, constant=False)
        for operand in post_inputs:
            _attach(lib, node, 2, operand, constant=False)
        text = ctypes.create_string_buffer(512)
        best = ctypes.c_double()
        code = lib.wb_engine_run(node, times, ctypes.byref(best), text)
        if code != 0:
            raise OperatorError(code, text.value.decode())
        if seconds is not None:
            seconds.append(best.value)
        for pair in made:
            if pair is not None and not bool((pair[1] == 0xA5).all()):
                raise OperatorError(1, "wrote past the end of an output")
        if (records := _records()) is not None:
            sizes = (attributes or {}).get("sizes", ())
            assert isinstance(sizes, Sequence)
            records.operator(
                op,
                enumerators("Op")[op],
                replay_records.attribute_numbers(attributes or {}),
                [(i, *(item if isinstance(item, tuple) else (item, -1))) for i, item in enumerate(sizes)],
                [(enumerators("Fn")[s.fn], *(*s.operands, 0, 0)[:3], s.a, s.b) for s in post],
                [_record(operand) for operand in inputs],
                [_record(result) for result in results],
                [_record(operand) for operand in post_inputs],
                constants,
            )
        return [None if pair is None else pair[0] for pair in made]
    finally:
        lib.wb_engine_free(node)
