from __future__ import annotations

import torch

from workbench.inspector import Inspector, Trace
from workbench.inspector.trace import EVENT_DTYPE, Kind
from workbench.serialize.etdump import DebugEvent, ProfileEvent, read_etdump, read_tensor


def record_runs(session, count):
    for run in range(count):
        base = 1000 * (run + 1)
        session.record(Kind.INSTRUCTION, "aten::add.out", base, base + 10 + run, 0)
        session.record(Kind.DELEGATE, "inside", base + 20, base + 25, 1, number=7)
        session.record(Kind.DELEGATE, "inside", base + 25, base + 30, 1, text="layer")
        session.record(Kind.INSTRUCTION, "DemoBackend", base + 15, base + 40, 1)
        session.record(Kind.EXECUTE, "forward", base - 5, base + 50)


def test_event_layout_is_that_of_the_native_records():
    assert EVENT_DTYPE.itemsize == 48
    assert [EVENT_DTYPE.fields[name][1] for name in EVENT_DTYPE.names] == [0, 8, 16, 20, 24, 28, 32, 36, 40]


def test_each_execution_becomes_a_block(session):
    session.record(Kind.LOAD, "Program::load_method", 1, 5)
    record_runs(session, 3)
    dump = Trace(session).to_etdump()
    assert [block.name for block in dump.blocks] == ["Default", "Execute", "Execute", "Execute"]
    events = dump.blocks[1].events
    assert all(isinstance(event, ProfileEvent) for event in events)
    assert [event.name for event in events] == [
        "native_call_add.out", "", "", "DELEGATE_CALL", "Method::execute",
    ]  # fmt: skip
    assert [event.delegate_id for event in events] == [None, 7, "layer", None, None]


def test_method_other_than_forward_is_named_in_its_block(session):
    session.record(Kind.INSTRUCTION, "aten::add.out", 1, 2, 0)
    session.record(Kind.EXECUTE, "encode", 0, 3)
    inspector = Inspector(trace=Trace(session))
    assert [(block.name, block.method) for block in inspector.event_blocks] == [("Execute encode", "encode")]


def test_collect_keeps_what_came_before(session):
    trace = Trace(session)
    record_runs(session, 1)
    assert trace.collect() == 5
    record_runs(session, 1)
    assert trace.collect() == 5
    assert trace.collect() == 0
    assert len(trace) == 10
    assert len(trace.batch(7)) == 3
    frame = trace.batch().to_dataframe()
    assert frame["name"].tolist()[:2] == ["aten::add.out", "inside"]
    assert frame["duration_ns"].iloc[0] == 10


def test_oldest_events_are_forgotten_beyond_the_limit(session):
    trace = Trace(session, limit=12)
    for _ in range(40):
        record_runs(session, 1)
        trace.collect()
    assert trace.end == 200
    assert 12 <= len(trace) < 40
    assert trace.forgotten + len(trace) == 200
    assert trace.batch(199).events["execution"].tolist() == [39]
    assert len(trace.batch()) == len(trace)
    assert trace.batch(200).events.size == 0


def test_saved_trace_reads_back_with_dense_tensors(session, tmp_path):
    value = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    session.output(0, value)
    record_runs(session, 1)
    trace = Trace(session)
    trace.save(tmp_path / "run.etdp", tmp_path / "run.bin")
    dump = read_etdump((tmp_path / "run.etdp").read_bytes())
    logged = [event for event in dump.blocks[0].events if isinstance(event, DebugEvent)]
    assert len(logged) == 1
    ref = logged[0].value.payload
    assert ref.strides == (24, 12, 4, 1)
    assert torch.equal(read_tensor(ref, (tmp_path / "run.bin").read_bytes()), value)
    # In this process the same tensor is read from the runtime's own layout.
    in_place = [event for event in trace.to_etdump().blocks[0].events if isinstance(event, DebugEvent)]
    assert in_place[0].value.payload.strides == value.stride()
    assert torch.equal(read_tensor(in_place[0].value.payload, trace.debug_buffer), value)


def test_output_whose_event_was_dropped_is_kept(session):
    session.output(3, torch.ones(2))
    session.record(Kind.EXECUTE, "forward", 0, 3)
    (block,) = Trace(session).to_etdump().blocks
    assert [event.instruction for event in block.events if isinstance(event, DebugEvent)] == [3]


def test_events_have_the_names_that_executorch_gives(session):
    names = [
        "aten::add.out",
        "executorch_prim::et_view.default",
        "move",
        "jump_false",
        "free",
        "XnnpackBackend",
    ]
    for instruction, name in enumerate(names):
        session.record(Kind.INSTRUCTION, name, 1, 2, instruction)
    (block,) = Trace(session).to_etdump().blocks
    assert [event.name for event in block.events] == [
        "native_call_add.out",
        "native_call_et_view.default",
        "MOVE_CALL",
        "JF_CALL",
        "FREE_CALL",
        "DELEGATE_CALL",
    ]
