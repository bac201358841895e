"""The Inspector joined with programs: ETRecords and managers."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from workbench.backends.debug import ensure_debug_handles
from workbench.errors import TraceError
from workbench.inspector import Inspector, Trace, roofline_table, timeline
from workbench.inspector.trace import Kind
from workbench.serialize.etrecord import generate_etrecord


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 6)

    def forward(self, x):
        return torch.relu(self.lin(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = nn.Linear(6, 2)

    def forward(self, x):
        return self.second(self.first(x))


@pytest.fixture
def lowered():
    """A program as lowering hands it on: two kernels, one delegate that takes the last layer."""
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    program = torch.export.export(Net().eval(), (x,)).run_decompositions()
    ensure_debug_handles(program)
    handles = {node.name: node.meta["debug_handle"] for node in program.graph.nodes}
    inside = {11: (handles["permute_1"], handles["addmm_1"])}
    manager = SimpleNamespace(
        methods={"forward"},
        exported_program=lambda method: program,
        debug_handle_map={
            "forward": {0: (handles["permute"], handles["addmm"]), 1: (handles["relu"],), 2: inside[11]}
        },
        delegate_map={"forward": {2: {"name": "DemoBackend", "delegate_map": inside}}},
        instruction_id_to_num_outs_map={"forward": {0: 1, 1: 1, 2: 1}},
    )
    return SimpleNamespace(manager=manager, program=program, x=x)


@pytest.fixture
def trace(session, lowered):
    module = lowered.program.module()
    net = dict(module.named_parameters())
    hidden = lowered.x @ net["first.lin.weight"].T + net["first.lin.bias"]
    output = hidden.relu() @ net["second.weight"].T + net["second.bias"]
    for instruction, value in enumerate((hidden, hidden.relu())):
        session.output(instruction, value.detach())
    # Of a delegate the runtime records inputs and outputs, for it can't tell them apart.
    for index, value in enumerate((hidden.relu(), output)):
        session.output(2, value.detach(), index)
    for base in (1_000_000, 2_000_000):
        session.record(Kind.INSTRUCTION, "aten::addmm.out", base, base + 4000, 0)
        session.record(Kind.INSTRUCTION, "aten::relu.out", base + 4000, base + 5000, 1)
        session.record(Kind.DELEGATE, "gemm", base + 5500, base + 7500, 2, number=11)
        session.record(Kind.INSTRUCTION, "DemoBackend", base + 5000, base + 8000, 2)
        session.record(Kind.EXECUTE, "forward", base, base + 8100)
    return Trace(session)


def check_join(inspector):
    block = next(b for b in inspector.event_blocks if b.name == "Execute")
    addmm, relu, gemm, call, execute = block.events
    assert addmm.op_types == ["aten.permute.default", "aten.addmm.default"]
    assert list(addmm.module_hierarchy["addmm"].values())[-1][0] == "first.lin"
    assert "self.lin(x)" in addmm.stack_traces["addmm"]
    assert relu.op_types == ["aten.relu.default"]
    assert (gemm.name, gemm.is_delegated_op, gemm.delegate_backend_name) == ("11", True, "DemoBackend")
    assert gemm.op_types == ["aten.permute.default", "aten.addmm.default"]
    assert [tuple(value.shape) for value in call.debug_data if value is not None] in ([(3, 2)], [])
    assert (call.name, call.delegate_backend_name) == ("DELEGATE_CALL", "DemoBackend")
    assert execute.op_types == []
    assert inspector.find_total_for_module("first") == pytest.approx(0.005)
    # The delegate told its inside: the call itself does not count again.
    assert inspector.find_total_for_module("second") == pytest.approx(0.002)
    assert inspector.find_total_for_module("third") == 0


def test_trace_is_joined_with_the_manager(trace, lowered):
    inspector = Inspector(trace=trace, program=lowered.manager)
    check_join(inspector)
    addmm = inspector.event_blocks[0].events[0]
    assert addmm.nodes[1].source.endswith(f":{Block.forward.__code__.co_firstlineno + 1}")


def test_table_names_module_and_line(trace, lowered):
    inspector = Inspector(trace=trace, program=lowered.manager)
    table = inspector.table()
    assert table["module"].tolist() == ["first.lin", "first", "second", "second", ""]
    assert table["source"][1].endswith(f":{Block.forward.__code__.co_firstlineno + 1}")
    assert "first.lin" in inspector._repr_html_()


def test_saved_dump_is_joined_with_the_etrecord(trace, lowered, tmp_path):
    trace.save(tmp_path / "t.etdp", tmp_path / "t.bin")
    generate_etrecord(
        tmp_path / "t.etrecord", lowered.program, lowered.manager, representative_inputs=[[lowered.x]]
    )
    inspector = Inspector(tmp_path / "t.etdp", tmp_path / "t.etrecord", tmp_path / "t.bin")
    check_join(inspector)
    table = inspector.calculate_numeric_gap("MAX_ERROR")
    assert table["runtime_ops"].tolist() == [
        ["native_call_addmm.out"],
        ["native_call_relu.out"],
        ["DELEGATE_CALL"],
    ]
    assert table["gap"].max() < 1e-6
    assert set(table.attrs["unmatched"]["node"]) == {"permute", "permute_1"}


def test_numeric_gap_takes_the_inputs_of_the_caller(trace, lowered):
    inspector = Inspector(trace=trace, program=lowered.manager)
    with pytest.raises(TraceError, match="inputs of the run"):
        inspector.calculate_numeric_gap()
    assert inspector.calculate_numeric_gap("MSE", (lowered.x,))["gap"].max() < 1e-12
    assert inspector.calculate_numeric_gap("SQNR", (lowered.x + 1,))["gap"].max() < 60


def test_numeric_gap_without_program_or_values_says_what_is_missing(trace, session, lowered):
    with pytest.raises(TraceError, match="nothing is known"):
        Inspector(trace=trace).calculate_numeric_gap()
    session.captured.clear()
    with pytest.raises(TraceError, match="no intermediate outputs"):
        Inspector(trace=trace, program=lowered.manager).calculate_numeric_gap("MSE", (lowered.x,))


def test_program_without_debug_handles_is_refused(trace):
    with pytest.raises(TraceError, match="no debug handles"):
        Inspector(trace=trace, program=object())


def test_timeline_has_tracks_sources_and_microseconds(trace, lowered, tmp_path):
    inspector = Inspector(trace=trace, program=lowered.manager)
    inspector.save_perfetto(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    assert document == timeline(inspector)
    tracks = {e["args"]["name"]: e["tid"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    assert set(tracks) == {"methods", "instructions", "inside DemoBackend"}
    spans = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == 10
    by_track = {name: [e["name"] for e in spans if e["tid"] == tid] for name, tid in tracks.items()}
    assert by_track["methods"] == ["forward", "forward"]
    assert by_track["instructions"][:3] == ["addmm.out", "relu.out", "DemoBackend"]
    assert by_track["inside DemoBackend"] == ["11", "11"]
    relu = next(event for event in spans if event["name"] == "relu.out")
    assert (relu["ts"], relu["dur"]) == (1004.0, 1.0)
    assert relu["args"]["shapes"] == ["f32[3, 6]"]
    assert relu["args"]["source"][0].endswith(f":{Block.forward.__code__.co_firstlineno + 1}")
    assert relu["args"]["module"] == ["first"]


def test_roofline_says_what_binds(trace, lowered):
    table = roofline_table(Inspector(trace=trace, program=lowered.manager), peak_gflops=100, peak_gbytes=10)
    addmm = table[table["event_name"] == "native_call_addmm.out"].iloc[0]
    assert addmm["flops"] == 3 * 6 * (2 * 4 + 1)
    assert addmm["gflops"] == pytest.approx(addmm["flops"] / 4000)
    assert addmm["bound"] == "memory"
    compute = roofline_table(
        Inspector(trace=trace, program=lowered.manager), peak_gflops=0.01, peak_gbytes=1000
    )
    assert compute[compute["event_name"] == "native_call_addmm.out"]["bound"].tolist() == ["compute"]
