"""Runs single kernels of the native runtime on tensors, without a program around them.

The library comes from the CMake target `wb_kernel_harness`. It is looked for in the folder that the
environment variable LOWERING_WORKBENCH_HARNESS names, then below `build/` (the newest one).
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

import harness_library
from workbench.emit.ir import SCALAR_TYPES

NAME = "libwb_kernel_harness.so"

_DTYPES = {getattr(torch, name): number for name, number in SCALAR_TYPES.items()}
_NONE, _TENSOR, _INT, _DOUBLE, _BOOL, _STRING, _INTS, _DOUBLES, _BOOLS, _TENSORS, _OPTIONAL_TENSORS = range(
    11
)


class KernelError(Exception):
    """A kernel refused its arguments: numeric code and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code:#x}: {text}")
        self.code = code


class _Arg(ctypes.Structure):
    _fields_ = (
        ("tag", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("number", ctypes.c_double),
        ("items", ctypes.POINTER(ctypes.c_int64)),
        ("count", ctypes.c_int32),
        ("dynamic", ctypes.c_int32),
        ("dim_order", ctypes.POINTER(ctypes.c_uint8)),
        ("data", ctypes.c_void_p),
        ("capacity", ctypes.c_uint64),
        ("constant", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    )


@dataclass
class Out:
    """An output to allocate: shape, dtype, dimensions from the outermost in memory to the innermost."""

    shape: Sequence[int]
    dtype: torch.dtype = torch.float32
    order: Sequence[int] | None = None


@cache
def library() -> ctypes.CDLL | None:
    """The harness, or None when it has not been built."""
    lib = harness_library.newest(NAME)
    if lib is None:
        return None
    lib.wb_harness_run.restype = ctypes.c_uint32
    return lib


def ordered(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """The same values laid out so that the dimensions stand in memory in this order, outermost first."""
    inverse = [list(order).index(d) for d in range(tensor.dim())]
    return tensor.permute(list(order)).contiguous().permute(inverse)


def _order_of(tensor: torch.Tensor) -> list[int]:
    own: tuple[int, ...] = tuple(tensor.stride())
    strides = [s if n > 1 else 0 for s, n in zip(own, tensor.shape, strict=True)]
    order = sorted(range(tensor.dim()), key=lambda d: (-own[d], -strides[d], d))
    if not tensor.permute(order).is_contiguous():
        order = list(range(tensor.dim()))
    assert tensor.permute(order).is_contiguous(), "the harness takes dense tensors"
    return order


class _Call:
    """Arguments of one call, and what keeps their memory alive."""

    def __init__(self) -> None:
        self.keep: list[Any] = []
        self.args: list[_Arg] = []

    def tensor(self, tensor: torch.Tensor, order: Sequence[int], *, dynamic: bool, constant: bool) -> None:
        sizes = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
        dims = (ctypes.c_uint8 * max(tensor.dim(), 1))(*order)
        self.keep += [tensor, sizes, dims]
        self.args.append(
            _Arg(
                tag=_TENSOR,
                dtype=_DTYPES[tensor.dtype],
                items=sizes,
                count=tensor.dim(),
                dynamic=dynamic,
                dim_order=dims,
                data=tensor.data_ptr(),
                capacity=tensor.numel() * tensor.element_size(),
                constant=constant,
            )
        )

    def number(self, value: object) -> None:
        if value is None:
            self.args.append(_Arg(tag=_NONE, constant=1))
        elif isinstance(value, bool):
            self.args.append(_Arg(tag=_BOOL, integer=value, constant=1))
        elif isinstance(value, int):
            self.args.append(_Arg(tag=_INT, integer=value, constant=1))
        elif isinstance(value, float):
            self.args.append(_Arg(tag=_DOUBLE, number=value, constant=1))
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], float):
            doubles = (ctypes.c_double * len(value))(*value)
            self.keep.append(doubles)
            pointer = ctypes.cast(doubles, ctypes.POINTER(ctypes.c_int64))
            self.args.append(_Arg(tag=_DOUBLES, items=pointer, count=len(value), constant=1))
        elif isinstance(value, (list, tuple)):
            items = (ctypes.c_int64 * max(len(value), 1))(*value)
            self.keep.append(items)
            self.args.append(_Arg(tag=_INTS, items=items, count=len(value), constant=1))
        elif isinstance(value, str):
            text = ctypes.create_string_buffer(value.encode())
            self.keep.append(text)
            self.args.append(_Arg(tag=_STRING, data=ctypes.addressof(text), count=len(value), constant=1))
        else:
            raise TypeError(value)


_GUARD = 64


def numbers(name: str, *args: int | float | bool | torch.Tensor) -> int | float | bool:
    """Runs an operator whose last argument is a number that it writes; returns the number."""
    lib = library()
    assert lib is not None, "build the target wb_kernel_harness"
    work = _Call()
    for arg in (*args, 0):
        if isinstance(arg, torch.Tensor):
            work.tensor(arg, _order_of(arg), dynamic=False, constant=False)
        else:
            work.number(arg)
    array = (_Arg * len(work.args))(*work.args)
    text = ctypes.create_string_buffer(512)
    code = lib.wb_harness_run(
        name.encode(), array, len(array), None, 1, text, ctypes.byref(ctypes.c_double())
    )
    if code != 0:
        raise KernelError(code, text.value.decode())
    result = array[len(array) - 1]
    if result.tag == _DOUBLE:
        return float(result.number)
    return bool(result.integer) if result.tag == _BOOL else int(result.integer)


def _flat(args: Sequence[object]) -> Iterator[object]:
    """Lists of tensors become a list argument and its entries."""
    for arg in args:
        if isinstance(arg, (list, tuple)) and any(isinstance(entry, (torch.Tensor, Out)) for entry in arg):
            yield _Arg(tag=_OPTIONAL_TENSORS if None in _types(arg) else _TENSORS, count=len(arg), constant=1)
            yield from arg
        else:
            yield arg


def _types(entries: Sequence[object]) -> list[object]:
    return [None if entry is None else type(entry) for entry in entries]


def call(
    name: str,
    *args: object,
    constant: bool = False,
    upper: Sequence[Sequence[int]] | None = None,
    times: int = 1,
) -> Any:
    """Runs a kernel: the inputs in schema order, then an `Out` for each output.

    With `upper`, the tensors are dynamic: the kernel is prepared for these sizes (of every tensor, outputs
    too) and executed with the given ones. Returns the output, or a tuple of them; `seconds` of the fastest of
    `times` executions is kept on the function. Raises KernelError when the kernel refuses.
    """
    lib = library()
    assert lib is not None, "build the target wb_kernel_harness"
    work = _Call()
    outputs: list[tuple[Out, torch.Tensor, int]] = []  # with guard bytes behind them
    bounds = iter(upper or ())
    for arg in _flat(args):
        if isinstance(arg, _Arg):
            work.args.append(arg)
        elif isinstance(arg, torch.Tensor):
            next(bounds, None)
            work.tensor(arg, _order_of(arg), dynamic=upper is not None, constant=constant)
        elif isinstance(arg, Out):
            bound = next(bounds, arg.shape)
            size = torch.Size(bound).numel() * torch.empty((), dtype=arg.dtype).element_size()
            memory = torch.full((size + _GUARD,), 0xA5, dtype=torch.uint8)
            order = list(arg.order) if arg.order is not None else list(range(len(arg.shape)))
            work.tensor(
                torch.empty(arg.shape, dtype=arg.dtype), order, dynamic=upper is not None, constant=False
            )
            work.args[-1].data = memory.data_ptr()
            work.args[-1].capacity = size
            work.keep.append(memory)
            outputs.append((arg, memory, len(work.args) - 1))
        else:
            work.number(arg)
    array = (_Arg * len(work.args))(*work.args)
    flat = list(itertools.chain.from_iterable(upper)) if upper is not None else None
    text = ctypes.create_string_buffer(512)
    seconds = ctypes.c_double()
    code = lib.wb_harness_run(
        name.encode(),
        array,
        len(array),
        (ctypes.c_int64 * max(len(flat), 1))(*flat) if flat is not None else None,
        times,
        text,
        ctypes.byref(seconds),
    )
    call.seconds = seconds.value  # type: ignore[attr-defined]
    if code != 0:
        raise KernelError(code, text.value.decode())
    results = []
    for out, memory, index in outputs:
        assert bool((memory[-_GUARD:] == 0xA5).all()), "the kernel wrote past the end of its output"
        body = memory[:-_GUARD].view(out.dtype)
        shape = [array[index].items[d] for d in range(array[index].count)]
        order = list(out.order) if out.order is not None else list(range(len(shape)))
        dense = body[: torch.Size(shape).numel()].view([shape[d] for d in order])
        results.append(dense.permute([order.index(d) for d in range(len(shape))]))
    return results[0] if len(results) == 1 else tuple(results)
