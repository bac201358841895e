"""The bytes of a blob: header, graph, constants in named data, identifiers, and reading them back."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.backends import backend_ids, delegates_in, get_backend
from workbench.backends.blob import open_blob
from workbench.backends.xnnpack.read import read
from workbench.errors import PartitionError, SerializationError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Model(nn.Module):
    """Two layers that share a weight's bytes, and a clamp."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.load_state_dict(self.first.state_dict())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu()).tanh()


@pytest.fixture(scope="module")
def lowered() -> Any:
    program = torch.export.export(Model().eval(), (torch.randn(2, 4),))
    manager = wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner())
    (delegate,) = delegates_in(manager.exported_program().graph_module)
    return delegate.lowered


def test_header_says_where_graph_and_constants_are(lowered: Any) -> None:
    blob = lowered.processed_bytes
    zeros, magic, size, start, length, constants, extent = struct.unpack_from("<4s4sHIIIQ", blob)
    assert (zeros, magic, size, start, extent) == (bytes(4), b"XH00", 30, 32, 0)
    assert blob[start + 4 : start + 8] == b"XN01"
    assert constants >= start + length
    assert constants == len(blob)
    assert constants % 16 == 0


def test_constants_are_named_by_their_bytes_and_stored_once(lowered: Any) -> None:
    found = read(memoryview(lowered.processed_bytes))
    assert found is not None
    names = {value.data for value in found.values if value.role == "constant"}
    layer = Model().first
    expected = {
        hashlib.sha256(item.detach().numpy().tobytes()).hexdigest() for item in (layer.weight, layer.bias)
    }
    assert names == expected
    store = lowered.named_data_store_output
    assert set(store.pte_data) == expected
    assert all(entry.alignment == 16 for entry in store.pte_data.values())


def test_identifiers_of_calls_lead_to_their_operators(lowered: Any) -> None:
    found = read(memoryview(lowered.processed_bytes))
    assert found is not None
    assert [step.identifier for step in found.steps] == [1, 2, 3]
    assert [step.name for step in found.steps] == ["fully connected", "fully connected", "tanh"]
    targets = {}
    for node in lowered.original_module.graph.nodes:
        targets[node.meta.get("debug_handle")] = str(node.target)
    meant = {
        number: [targets[handle] for handle in handles]
        for number, handles in lowered.meta["debug_handle_map"].items()
    }
    assert meant == {
        1: ["aten.linear.default", "aten.relu.default"],
        2: ["aten.linear.default"],
        3: ["aten.tanh.default"],
    }


def test_values_are_inputs_outputs_constants_and_temporaries(lowered: Any) -> None:
    found = read(memoryview(lowered.processed_bytes))
    assert found is not None
    roles = [value.role for value in found.values]
    assert roles[:2] == ["input", "output"]
    assert roles.count("temporary") == 2
    assert found.steps[0].detail == "clamp 0 to inf"
    assert found.values[0].text == "fp32 [2, 4]"


def test_backend_is_found_by_its_identifier_and_opens_its_blobs(lowered: Any) -> None:
    assert "XnnpackBackend" in backend_ids()
    found = open_blob(memoryview(lowered.processed_bytes))
    assert found is not None
    assert found.format == "XNNPACK subgraph"
    assert get_backend("XnnpackBackend").read_blob(memoryview(b"something else")) is None
    assert open_blob(memoryview(b"something else of no known format")) is None


@pytest.mark.parametrize("cut", [9, 20, 31, 40, 100, 300])
def test_damaged_blob_is_an_error_that_says_so(lowered: Any, cut: int) -> None:
    blob = lowered.processed_bytes[:cut]
    if cut < 30:
        assert read(memoryview(blob)) is None
        return
    with pytest.raises(SerializationError):
        read(memoryview(blob))
    opened = open_blob(memoryview(blob))
    assert opened is not None
    assert opened.note


def test_same_program_gives_the_same_bytes(lowered: Any) -> None:
    program = torch.export.export(Model().eval(), (torch.randn(2, 4),))
    manager = wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner())
    (delegate,) = delegates_in(manager.exported_program().graph_module)
    assert delegate.lowered.processed_bytes == lowered.processed_bytes


def test_program_that_the_library_cannot_run_is_refused_by_name() -> None:
    program = wb.to_edge(torch.export.export(nn.GELU("tanh"), (torch.randn(3),))).exported_program()
    with pytest.raises(PartitionError, match="'gelu'") as caught:
        wb.to_backend("XnnpackBackend", program, [])
    assert "approximate were 'none'" in str(caught.value)
    program = wb.to_edge(torch.export.export(nn.Embedding(3, 2), (torch.tensor([1]),))).exported_program()
    with pytest.raises(PartitionError, match="no such operator"):
        wb.to_backend("XnnpackBackend", program, [])


def test_buffer_that_is_written_stays_outside() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * 2

    program = torch.export.export(Counter(), (torch.ones(2),))
    manager = wb.to_edge_transform_and_lower(program, partitioner=wb.XnnpackPartitioner())
    (delegate,) = delegates_in(manager.exported_program().graph_module)
    found = read(memoryview(delegate.lowered.processed_bytes))
    assert found is not None
    assert [value.role for value in found.values].count("input") == 2
