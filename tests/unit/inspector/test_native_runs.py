"""Traces of the native runtime, from events while it runs to numeric gaps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.inspector import Inspector, LiveRun, Trace
from workbench.inspector.trace import Kind
from workbench.runtime import Runtime, TraceSession, now_ns


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(16, 16)

    def forward(self, x):
        for _ in range(20):
            x = torch.relu(self.lin(x)) + x
        return x


@pytest.fixture(scope="module")
def lowered():
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(4, 16)
    edge = wb.to_edge(torch.export.export(model, (x,)))
    program = edge.to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return SimpleNamespace(model=model, x=x, edge=edge, program=program, method=method)


def test_events_stream_from_a_run_that_goes_on(lowered):
    began = now_ns()
    run = LiveRun.start(lowered.method, [lowered.x], repeat=10**9)
    batches = []
    for batch in run.events():
        batches.append(batch)
        if len(batches) == 5:
            assert run.running
            run.cancel()
    with torch.no_grad():
        torch.testing.assert_close(run.result(timeout=30)[0], lowered.model(lowered.x))
    events = torch.cat([torch.from_numpy(b.events["execution"].astype("int64")) for b in batches])
    assert run.trace.dropped == 0
    assert int(events.max()) + 1 == run.executions
    assert bool((events[1:] >= events[:-1]).all())
    ends = run.trace.batch().events
    assert began < int(ends["start_ns"].min()) < int(ends["end_ns"].max()) < now_ns()


def test_events_of_an_execution_do_not_overlap_and_fill_it(lowered):
    trace = Trace(TraceSession())
    for _ in range(3):
        lowered.method.execute([lowered.x], trace=trace.session)
    trace.collect()
    events = trace.batch().events
    for execution in range(3):
        mine = events[events["execution"] == execution]
        inside = mine[mine["kind"] == Kind.INSTRUCTION]
        whole = mine[mine["kind"] == Kind.EXECUTE]
        assert len(whole) == 1
        assert inside["instruction"].tolist() == sorted(lowered.program.debug_handle_map["forward"])
        assert (inside["start_ns"][1:] >= inside["end_ns"][:-1]).all()
        assert inside["start_ns"][0] >= whole["start_ns"][0]
        assert inside["end_ns"][-1] <= whole["end_ns"][0]


def test_small_ring_drops_instructions_but_not_the_end_of_executions(lowered):
    session = TraceSession(events=32)
    for _ in range(5):
        lowered.method.execute([lowered.x], trace=session)
    trace = Trace(session)
    trace.collect()
    assert trace.dropped > 0
    assert (trace.batch().events["kind"] == Kind.EXECUTE).sum() == 5


def test_values_of_the_first_execution_agree_with_eager(lowered):
    trace = Trace(TraceSession(outputs=True))
    for x in (lowered.x, lowered.x + 1):
        lowered.method.execute([x], trace=trace.session)
    assert {output.execution for output in trace.outputs} == {0}
    inspector = Inspector(trace=trace, program=lowered.program, edge=lowered.edge)
    gap = inspector.calculate_numeric_gap("MAX_ERROR", (lowered.x,))
    assert len(gap) >= 60
    assert gap["gap"].max() < 1e-4


def test_values_without_room_are_counted_and_fit_the_next_time(lowered):
    session = TraceSession(outputs=True, debug_buffer_bytes=64, output_records=4)
    lowered.method.execute([lowered.x], trace=session)
    assert session.outputs_dropped > 0
    session.reserve_outputs(session.bytes_wanted, session.records_wanted)
    lowered.method.execute([lowered.x], trace=session)
    assert session.outputs_dropped == 0
    assert len(session.outputs()) == session.records_wanted


def test_one_execution_at_a_time_records_into_a_session(lowered):
    session = TraceSession()
    other = Runtime.get().load_program(lowered.program.buffer).load_method("forward")
    run = LiveRun.start(lowered.method, [lowered.x], repeat=10**9, session=session)
    refused = 0
    # Whichever of the two comes second is refused; the run ends if it was the one.
    while refused == 0 and run.running:
        try:
            other.execute([lowered.x], trace=session)
        except wb.WorkbenchError as error:
            refused += 1
            assert "records into this trace session" in str(error)
    run.cancel()
    try:
        run.result(timeout=30)
    except wb.WorkbenchError as error:
        refused += 1
        assert "records into this trace session" in str(error)
    assert refused > 0
    # Nothing is left locked.
    other.execute([lowered.x], trace=session)
    assert not session.recording


def test_names_outlive_the_method(lowered):
    session = TraceSession()
    method = Runtime.get().load_program(lowered.program.buffer).load_method("forward")
    method.execute([lowered.x], trace=session)
    del method
    trace = Trace(session)
    trace.collect()
    assert {"aten::addmm.out", "aten::relu.out", "aten::add.out"} >= set(trace.batch().names) - {"forward"}
