"""Data that a delegate stores by name in the program, outside its blob, so that delegates can share it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from workbench.errors import PartitionError

__all__ = ["DataEntry", "NamedDataStore", "NamedDataStoreOutput", "tensor_bytes"]

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True)
class DataEntry:
    """Where one name's data stands.

    Attributes:
        buffer_index: Index into `NamedDataStoreOutput.buffers`.
        alignment: Bytes; the data's offset in the file is a multiple of it.
        dtype: Element type, if the data is a tensor.
        sizes: Its sizes, if the data is a tensor.
    """

    buffer_index: int
    alignment: int
    dtype: torch.dtype | None = None
    sizes: tuple[int, ...] | None = None


@dataclass
class NamedDataStoreOutput:
    """All data of a store.

    Attributes:
        buffers: The distinct pieces of data.
        pte_data: Entries that go into the `.pte` file, by name.
        external_data: Entries that go into separate `.ptd` files: file tag -> name -> entry.
    """

    buffers: list[memoryview] = field(default_factory=list)
    pte_data: dict[str, DataEntry] = field(default_factory=dict)
    external_data: dict[str, dict[str, DataEntry]] = field(default_factory=dict)


class NamedDataStore:
    """Collects named data; equal data is kept once, whatever its names."""

    def __init__(self) -> None:
        self._output = NamedDataStoreOutput()
        self._by_digest: dict[bytes, int] = {}
        self._by_key: dict[str, int] = {}

    def add_named_data(
        self,
        key: str,
        data: Bytes | torch.Tensor,
        alignment: int | None = 1,
        external_tag: str | None = None,
    ) -> None:
        """Add data under a name.

        Args:
            key: The name that the native half will ask for.
            data: Bytes, or a contiguous tensor (its memory is referenced, not copied).
            alignment: Bytes; None means 1.
            external_tag: Put it into the `.ptd` file with this tag instead of the `.pte`.

        Raises:
            PartitionError: The alignment isn't positive, or the name is taken by other data.
        """
        if alignment is not None and alignment < 1:
            raise PartitionError(
                f"alignment of named data '{key}'",
                expected="a positive number of bytes",
                found=str(alignment),
            )
        tensor = data if isinstance(data, torch.Tensor) else None
        view = tensor_bytes(data) if isinstance(data, torch.Tensor) else memoryview(data).cast("B")
        entry = DataEntry(
            self._intern(key, view, None),
            alignment or 1,
            None if tensor is None else tensor.dtype,
            None if tensor is None else tuple(tensor.shape),
        )
        self._insert(key, entry, external_tag)

    def merge_named_data_store(self, other: NamedDataStoreOutput) -> None:
        """Add all data of another store.

        Raises:
            PartitionError: A name is taken by other data.
        """
        digests = [hashlib.sha256(buffer).digest() for buffer in other.buffers]
        tables: list[tuple[str | None, Mapping[str, DataEntry]]] = [
            (None, other.pte_data),
            *other.external_data.items(),
        ]
        for tag, table in tables:
            for key, entry in table.items():
                index = self._intern(key, other.buffers[entry.buffer_index], digests[entry.buffer_index])
                self._insert(key, DataEntry(index, entry.alignment, entry.dtype, entry.sizes), tag)

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        """What was collected."""
        return self._output

    def _intern(self, key: str, view: memoryview, digest: bytes | None) -> int:
        digest = digest or hashlib.sha256(view).digest()
        index = self._by_digest.setdefault(digest, len(self._output.buffers))
        if index == len(self._output.buffers):
            self._output.buffers.append(view)
        known = self._by_key.setdefault(key, index)
        if known != index:
            raise PartitionError(
                f"two different pieces of named data are called '{key}'",
                found=f"{self._output.buffers[known].nbytes} bytes and {view.nbytes} bytes",
                hint="put a hash of the data into the name",
            )
        return index

    def _insert(self, key: str, entry: DataEntry, external_tag: str | None) -> None:
        table = (
            self._output.pte_data
            if external_tag is None
            else self._output.external_data.setdefault(external_tag, {})
        )
        known = table.get(key)
        if known is not None:
            entry = DataEntry(
                entry.buffer_index, max(entry.alignment, known.alignment), entry.dtype, entry.sizes
            )
        table[key] = entry


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """The memory of a tensor as bytes, without a copy if it is contiguous and on the CPU."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    array: Any = flat.view(torch.uint8).numpy()
    return memoryview(array)
