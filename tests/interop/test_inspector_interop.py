"""Profiles cross between ExecuTorch's tools and ours, both ways."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.inspector import Trace, timeline
from workbench.serialize.etdump import DebugEvent, read_etdump, write_etdump
from workbench.serialize.etrecord import generate_etrecord, parse_etrecord

pytestmark = [
    pytest.mark.peer,
    pytest.mark.filterwarnings("ignore:The given buffer is not writable"),
    pytest.mark.filterwarnings("ignore:Unsupported kwarg encountered"),
]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.lin = nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        values, _ = torch.max(torch.sigmoid(y.mean((2, 3))), 1, keepdim=True)
        return self.lin(y.mean((2, 3)) + values)


@pytest.fixture(scope="module", params=["portable", "xnnpack"])
def theirs(request, tmp_path_factory):
    """Two runs of a program that ExecuTorch lowered and ran: dump, debug buffer and record."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(0)
    x = torch.randn(1, 3, 16, 16)
    exported = torch.export.export(Net().eval(), (x,))
    partitioner = [XnnpackPartitioner()] if request.param == "xnnpack" else None
    manager = to_edge_transform_and_lower(exported, partitioner=partitioner, generate_etrecord=True)
    program = manager.to_executorch()
    program.save(str(folder / "net.pte"))
    record = program.get_etrecord()
    record.update_representative_inputs([[x]])
    record.save(folder / "net.etrecord")
    module = _load_for_executorch(str(folder / "net.pte"), enable_etdump=True, debug_buffer_size=1 << 22)
    for _ in range(2):
        module.forward([x])
    module.write_etdump_result_to_file(str(folder / "net.etdp"), str(folder / "net.bin"))
    return SimpleNamespace(
        kind=request.param,
        etdump=str(folder / "net.etdp"),
        etrecord=str(folder / "net.etrecord"),
        buffer=str(folder / "net.bin"),
        x=x,
    )


def their_inspector(**arguments: Any) -> Any:
    from executorch.devtools import Inspector

    return Inspector(**arguments)


def test_our_tables_of_their_profile_are_theirs(theirs):
    ours = wb.Inspector(theirs.etdump, theirs.etrecord, theirs.buffer)
    peer = their_inspector(
        etdump_path=theirs.etdump, etrecord=theirs.etrecord, debug_buffer_path=theirs.buffer
    )
    found, expected = ours.to_dataframe(), peer.to_dataframe()
    assert found.columns.tolist() == expected.columns.tolist()
    for column in ("event_block_name", "event_name", "start_time", "delegate_debug_identifier"):
        assert found[column].tolist() == expected[column].tolist()
    for column in ("p10 (ms)", "p50 (ms)", "p90 (ms)", "avg (ms)", "min (ms)", "max (ms)"):
        assert found[column].tolist() == pytest.approx(expected[column].tolist())
    assert found["is_delegated_op"].tolist() == expected["is_delegated_op"].tolist()
    assert [set(types) for types in found["op_types"]] == [set(types) for types in expected["op_types"]]


def test_our_numeric_gap_of_their_profile_is_small_where_theirs_is(theirs):
    ours = wb.Inspector(theirs.etdump, theirs.etrecord, theirs.buffer)
    peer = their_inspector(
        etdump_path=theirs.etdump, etrecord=theirs.etrecord, debug_buffer_path=theirs.buffer
    )
    expected = peer.calculate_numeric_gap("MSE")
    table = ours.calculate_numeric_gap("MSE")
    assert len(table) >= len(expected)
    assert table["gap"].max() < 1e-12
    assert max(max(gap) for gap in expected["gap"]) < 1e-12
    assert ours.calculate_numeric_gap("SQNR")["gap"].min() > 100


def test_their_profile_makes_a_timeline_and_module_totals(theirs):
    inspector = wb.Inspector(theirs.etdump, theirs.etrecord)
    peer = their_inspector(etdump_path=theirs.etdump, etrecord=theirs.etrecord)
    assert inspector.find_total_for_module("conv") == pytest.approx(peer.find_total_for_module("conv"))
    spans = [event for event in timeline(inspector)["traceEvents"] if event["ph"] == "X"]
    assert any("aten.convolution.default" in span["args"].get("ops", ()) for span in spans)
    if theirs.kind == "xnnpack":
        assert any("Convolution" in span["name"] for span in spans)


def test_their_dump_survives_our_writer(theirs, tmp_path):
    dump = read_etdump(Path(theirs.etdump).read_bytes())
    path = tmp_path / "again.etdp"
    path.write_bytes(write_etdump(dump))
    again = their_inspector(etdump_path=str(path)).to_dataframe()
    first = their_inspector(etdump_path=theirs.etdump).to_dataframe()
    columns = ["event_block_name", "event_name", "raw"]
    assert again[columns].to_dict("list") == first[columns].to_dict("list")


def test_their_record_loads_and_runs(theirs):
    record = parse_etrecord(theirs.etrecord)
    found = record.edge["forward"].load().module()(theirs.x)
    torch.testing.assert_close(found, record.exported.load().module()(theirs.x))


@pytest.fixture(scope="module", params=["undelegated", "delegated"])
def ours(request, tmp_path_factory):
    """Three runs of a program that we lowered and ran."""
    folder = tmp_path_factory.mktemp(f"ours_{request.param}")
    torch.manual_seed(0)
    if request.param == "delegated":
        model, x = AddMul().eval(), torch.randn(4, 4)
        from workbench.backends.demo import AddMulPartitionerDemo

        partitioner = AddMulPartitionerDemo()
    else:
        model, x, partitioner = Net().eval(), torch.randn(1, 3, 16, 16), None
    exported = torch.export.export(model, (x,) if request.param == "undelegated" else (x, x, x))
    inputs = [x] if request.param == "undelegated" else [x, x, x]
    edge = wb.to_edge(exported)
    lowered = edge if partitioner is None else edge.to_backend(partitioner)
    program = lowered.to_executorch()
    generate_etrecord(folder / "net.etrecord", edge, program, exported, representative_inputs=[inputs])
    method = wb.runtime.Runtime.get().load_program(program.buffer).load_method("forward")
    trace = Trace(wb.runtime.TraceSession(outputs=True))
    for _ in range(3):
        outputs = method.execute(inputs, trace=trace.session)
    trace.save(folder / "net.etdp", folder / "net.bin")
    return SimpleNamespace(
        kind=request.param,
        etdump=str(folder / "net.etdp"),
        etrecord=str(folder / "net.etrecord"),
        buffer=str(folder / "net.bin"),
        trace=trace,
        program=program,
        edge=edge,
        inputs=inputs,
        outputs=outputs,
        expected=model(*inputs),
    )


class AddMul(nn.Module):
    def forward(self, a, x, b):
        y = torch.mm(a, x)
        z = torch.sin(y + b)
        return torch.mm(z, b) + a


def test_their_inspector_opens_our_profile(ours):
    peer = their_inspector(etdump_path=ours.etdump, etrecord=ours.etrecord, debug_buffer_path=ours.buffer)
    inspector = wb.Inspector(trace=ours.trace, program=ours.program, edge=ours.edge)
    mine = next(block for block in inspector.event_blocks if block.name == "Execute")
    # Their blocks are apart for the run whose values were recorded and for those whose were not.
    blocks = [block for block in peer.event_blocks if block.name == "Execute"]
    assert len(blocks) == 2
    for block in blocks:
        assert [event.name for event in block.events] == [event.name for event in mine.events]
    for place, event in enumerate(mine.events):
        raw = [time for block in blocks for time in block.events[place].perf_data.raw]
        # They subtract converted times, which costs digits.
        assert raw == pytest.approx(event.perf_data.raw, rel=1e-4, abs=1e-8)
    executed = blocks[0].to_dataframe()
    kernels = executed[executed["event_name"].str.startswith("native_call_")]
    assert len(kernels) > 0
    assert all(len(types) > 0 for types in kernels["op_types"])
    assert all(
        any("forward" in str(trace) for trace in traces.values()) for traces in kernels["stack_traces"]
    )
    peer.print_data_tabular()
    if ours.kind == "delegated":
        calls = executed[executed["event_name"] == "DELEGATE_CALL"]
        assert len(calls) > 0
        assert all(calls["delegate_backend_name"] != "")


def test_their_numeric_gap_of_our_profile_is_small(ours):
    peer = their_inspector(etdump_path=ours.etdump, etrecord=ours.etrecord, debug_buffer_path=ours.buffer)
    table = peer.calculate_numeric_gap("MSE", reference_graph="edge_dialect_exported_program")
    assert len(table) > 0
    assert max(max(gap) for gap in table["gap"]) < 1e-10


@pytest.mark.parametrize("source", ["files", "memory"])
def test_our_numeric_gap_of_our_profile_covers_all_nodes(ours, source):
    if source == "files":
        inspector = wb.Inspector(ours.etdump, ours.etrecord, ours.buffer)
    else:
        inspector = wb.Inspector(trace=ours.trace, program=ours.program, edge=ours.edge)
    table = inspector.calculate_numeric_gap("SQNR", ours.inputs)
    unmatched = table.attrs["unmatched"]
    calls = [
        node
        for node in ours.edge.exported_program("forward").graph.nodes
        if node.op == "call_function" and "getitem" not in node.name
    ]
    nodes = {name for names in table["aot_ops"] for name in names} | set(unmatched["node"])
    assert nodes == {node.name for node in calls}
    assert table["gap"].min() > 100
    assert all(reason for reason in unmatched["reason"])


def test_recorded_result_is_that_of_the_run(ours):
    dump = read_etdump(Path(ours.etdump).read_bytes())
    assert sum(isinstance(e, DebugEvent) for e in dump.blocks[-1].events) == 0  # values of the first run only
    torch.testing.assert_close(ours.outputs[0], ours.expected)
    gap = wb.Inspector(ours.etdump, ours.etrecord, ours.buffer).calculate_numeric_gap("MAX_ERROR")
    assert not any(math.isnan(value) for value in gap["gap"])
