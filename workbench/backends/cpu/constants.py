"""The constants of all delegates of a program: each is hashed and stored once, named by the hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from workbench.backends.named_data import NamedDataStore, tensor_bytes

__all__ = ["ALIGNMENT", "Constant", "Constants"]

ALIGNMENT = 64
"""Bytes; the engine packs weights with vector loads."""


@dataclass(frozen=True)
class Constant:
    """The elements of a tensor in row-major order.

    Attributes:
        key: The SHA-256 of the bytes, in hexadecimal; empty where they are few.
        data: The bytes: of the tensor itself where it is contiguous.
        tensor: Keeps them alive, for an address stands for a tensor only while it lives.
    """

    key: str
    data: memoryview
    tensor: torch.Tensor


class Constants:
    """Finds a tensor again by its memory, so that methods that share weights share their data."""

    def __init__(self) -> None:
        self._known: dict[Any, Constant] = {}

    def entry(self, tensor: torch.Tensor) -> Constant:
        """A tensor's bytes and their name."""
        place = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        known = self._known.get(place)
        if known is None or tensor.numel() == 0:
            data = tensor_bytes(tensor)
            known = self._known[place] = Constant(hashlib.sha256(data).hexdigest(), data, tensor)
        return known

    @staticmethod
    def store(constant: Constant, store: NamedDataStore) -> None:
        """Put the bytes into the program's named data."""
        store.add_named_data(constant.key, constant.data, ALIGNMENT)
