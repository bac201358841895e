"""A stand-in for the native trace session, with the same packed records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from workbench.inspector.trace import EVENT_DTYPE, Kind


@dataclass
class RecordedSession:
    """Packs what a test records as `TraceSession` of the native module does."""

    dropped: int = 0
    outputs_dropped: int = 0
    names: list[str] = field(default_factory=list)
    pending: list[bytes] = field(default_factory=list)
    captured: list[dict[str, Any]] = field(default_factory=list)
    buffer: bytearray = field(default_factory=bytearray)
    execution: int = 0

    def index(self, name: str | None) -> int:
        if name is None:
            return -1
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def record(
        self, kind: Kind, name: str, start: int, end: int, instruction: int = -1, **delegate: Any
    ) -> None:
        row = np.zeros(1, EVENT_DTYPE)
        row["start_ns"], row["end_ns"], row["kind"] = start, end, int(kind)
        row["name"], row["instruction"] = self.index(name), instruction
        row["delegate_id"] = delegate.get("number", -1)
        row["delegate_name"] = self.index(delegate.get("text"))
        row["execution"] = self.execution
        self.pending.append(row.tobytes())
        if kind == Kind.EXECUTE:
            self.execution += 1

    def output(self, instruction: int, tensor: torch.Tensor, index: int = 0) -> None:
        order = sorted(range(tensor.dim()), key=lambda d: -tensor.stride(d))
        data = tensor.permute(order).contiguous().numpy().tobytes()
        entry = {"chain": 0, "instruction": instruction, "name": "", "delegate_id": -1, "delegate_name": ""}
        entry |= {"execution": self.execution, "index": index, "dtype": 6, "sizes": tuple(tensor.shape)}
        entry |= {"dim_order": tuple(order), "offset": len(self.buffer), "nbytes": len(data)}
        self.captured.append(entry)
        self.buffer += data

    def drain(self) -> bytes:
        packed, self.pending = b"".join(self.pending), []
        return packed

    def outputs(self) -> list[dict[str, Any]]:
        return self.captured

    def debug_buffer(self) -> bytes:
        return bytes(self.buffer)


@pytest.fixture
def session() -> RecordedSession:
    return RecordedSession()
