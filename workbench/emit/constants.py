"""Constants of a program: each distinct run of bytes once, referenced where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from workbench.emit import ir
from workbench.errors import EmitError
from workbench.passes.spec_propagation import TensorSpec

__all__ = ["DataPool", "bytes_of"]

_SAMPLE = 64


class DataPool:
    """A list of byte runs in which equal ones share an entry.

    Entries are compared by size and a sample of their bytes first; only those that agree in both are compared
    in full. So a large weight without a twin costs three short reads.

    Args:
        entries: The list that grows; entry 0 is the reserved one.
    """

    def __init__(self, entries: list[memoryview]) -> None:
        self.entries = entries
        self._by_sample: dict[tuple[int, bytes], list[int]] = {}
        self._by_address: dict[Any, int] = {}
        self._kept: list[Any] = []

    def add(self, data: memoryview) -> int:
        """The index of an entry with these bytes."""
        size = data.nbytes
        middle = max(0, size // 2 - _SAMPLE // 2)
        sample = bytes(data[:_SAMPLE]) + bytes(data[middle : middle + _SAMPLE]) + bytes(data[-_SAMPLE:])
        bucket = self._by_sample.setdefault((size, sample), [])
        for index in bucket:
            if size <= _SAMPLE or _equal(self.entries[index], data):
                return index
        bucket.append(len(self.entries))
        self.entries.append(data)
        return bucket[-1]

    def add_tensor(self, spec: TensorSpec) -> int:
        """The index of an entry with a spec's value, in the spec's order of dimensions."""
        tensor = spec.data
        assert tensor is not None
        address = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, spec.dim_order)
        known = self._by_address.get(address)
        if known is None:
            known = self._by_address[address] = self.add(bytes_of(spec))
            # The address identifies the data only as long as it lives.
            self._kept.append(tensor)
        return known


def bytes_of(spec: TensorSpec) -> memoryview:
    """The value of a constant as bytes, without a copy where it already lies in the spec's order.

    Raises:
        EmitError: The value has no memory: it is fake, or on the meta device.
    """
    tensor = spec.data
    assert tensor is not None
    if tensor.device.type == "meta" or isinstance(tensor, torch._subclasses.fake_tensor.FakeTensor):
        raise EmitError(
            f"the constant `{spec.fqn or spec.name}` has no value",
            expected="a tensor with data",
            found=f"{type(tensor).__name__} on {tensor.device}",
        )
    tensor = tensor.detach().cpu()
    order = spec.dim_order
    if order != tuple(range(len(order))):
        tensor = tensor.permute(order)
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    if tensor.numel() == 0:
        return memoryview(b"")
    array: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(array)


def named_tensor(spec: TensorSpec, alignment: int) -> ir.NamedBytes:
    """A constant as an entry of a data file."""
    return ir.NamedBytes(bytes_of(spec), alignment, ir.scalar_type(spec.dtype), spec.sizes, spec.dim_order)


def _equal(a: memoryview, b: memoryview) -> bool:
    return bool(np.array_equal(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8)))
