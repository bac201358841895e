from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.errors import TraceError
from workbench.inspector import Inspector, TimeScale, Trace
from workbench.inspector.events import PerfData, scale_factor
from workbench.inspector.trace import Kind
from workbench.serialize.etdump import ETDump, ProfileEvent, RunBlock, Value, write_etdump

COLUMNS = [
    "event_block_name", "event_name", "raw",
    "p10 (ms)", "p50 (ms)", "p90 (ms)", "avg (ms)", "min (ms)", "max (ms)",
    "op_types", "delegate_debug_identifier", "stack_traces", "module_hierarchy", "is_delegated_op",
    "delegate_backend_name", "debug_data", "start_time",
]  # fmt: skip


def runs(*durations: int) -> ETDump:
    blocks = []
    for duration in durations:
        events = [
            ProfileEvent("native_call_add.out", 100, 100 + duration, instruction=0),
            ProfileEvent("OPERATOR_CALL", 90, 110 + duration, instruction=0),
            ProfileEvent("Method::execute", 80, 200 + duration, chain=-1),
        ]
        blocks.append(RunBlock("Execute", events))
    return ETDump(blocks)


def test_columns_are_those_of_executorch():
    assert Inspector(runs(1)).to_dataframe().columns.tolist() == COLUMNS
    assert "p10" in Inspector(runs(1)).to_dataframe(include_units=False).columns


def test_statistics_over_runs_match_numpy():
    durations = [1000, 5000, 2000, 9000, 4000]
    inspector = Inspector(runs(*durations), target_time_scale=TimeScale.US)
    (block,) = inspector.event_blocks
    perf = block.events[0].perf_data
    expected = np.array(durations) / 1000
    assert block.runs == 5
    assert perf.raw == expected.tolist()
    assert (perf.p10, perf.p50, perf.p90) == tuple(np.percentile(expected, (10, 50, 90)))
    assert (perf.avg, perf.min, perf.max) == (expected.mean(), 1.0, 9.0)


def test_runs_with_other_events_are_blocks_of_their_own():
    dump = runs(1, 2)
    dump.blocks[1].events.insert(0, ProfileEvent("native_call_mul.out", 1, 2, instruction=4))
    assert [len(block.events) for block in Inspector(dump).event_blocks] == [3, 4]


def test_instruction_of_a_loop_counts_with_its_sum():
    dump = runs(1000)
    dump.blocks[0].events.insert(1, ProfileEvent("native_call_add.out", 200, 3200, instruction=0))
    event = Inspector(dump, target_time_scale=TimeScale.NS).event_blocks[0].events[0]
    assert (event.calls, event.perf_data.raw) == (2, [4000.0])


def test_table_leaves_out_the_overhead_rows():
    assert Inspector(runs(1)).table()["event_name"].tolist() == ["native_call_add.out", "Method::execute"]


def test_delegate_rows_have_identifier_and_own_scale():
    events = [
        ProfileEvent("", 10, 30, instruction=2, delegate_id=5, metadata=b"cycles"),
        ProfileEvent("", 30, 70, instruction=2, delegate_id="layer"),
    ]
    inspector = Inspector(
        ETDump([RunBlock("Execute", events)]),
        delegate_time_scale_converter=lambda name, time: time / 4,
        delegate_metadata_parser=lambda items: {"text": items[0].decode()},
    )
    first, second = inspector.event_blocks[0].events
    assert (first.name, first.delegate_debug_identifier, first.is_delegated_op) == ("5", 5, True)
    assert (first.perf_data.raw, second.perf_data.raw) == ([5.0], [10.0])
    assert first.delegate_debug_metadatas == {"text": "cycles"}
    assert second.name == "layer"


def test_counter_of_32_bits_wraps_around():
    event = ProfileEvent("native_call_add.out", 2**32 - 100, 400, instruction=0)
    inspector = Inspector(
        ETDump([RunBlock("Execute", [event])]),
        source_time_scale=TimeScale.CYCLES,
        target_time_scale=TimeScale.CYCLES,
    )
    assert inspector.event_blocks[0].events[0].perf_data.raw == [500.0]


def test_event_that_ends_before_it_starts_is_refused():
    dump = ETDump([RunBlock("Execute", [ProfileEvent("x", 2**40, 1, instruction=0)])])
    with pytest.raises(TraceError, match="ends before it starts"):
        Inspector(dump)


def test_cycles_are_not_converted_to_time():
    assert scale_factor(TimeScale.NS, TimeScale.MS) == 1e6
    with pytest.raises(TraceError, match="can't be converted"):
        scale_factor(TimeScale.CYCLES, TimeScale.MS)


@pytest.mark.parametrize("arguments", [{}, {"etdump": ETDump(), "etdump_data": b""}])
def test_exactly_one_profile_is_needed(arguments):
    with pytest.raises(TraceError, match="one profile"):
        Inspector(**arguments)


def test_values_and_method_outputs_are_told_apart():
    from workbench.serialize.etdump import DebugBuffer, DebugEvent

    buffer = DebugBuffer()
    dump = runs(1)
    dump.blocks[0].events[:0] = [
        DebugEvent("", Value(buffer.add(torch.tensor([1.0, 2.0]))), instruction=0),
        DebugEvent("", Value(buffer.add(torch.tensor([3.0])), is_output=True)),
    ]
    block = Inspector(write_etdump(dump), debug_buffer=buffer.to_bytes()).event_blocks[0]
    assert torch.equal(block.events[0].debug_data[0], torch.tensor([1.0, 2.0]))
    assert block.events[1].debug_data == []
    assert torch.equal(block.run_output[0], torch.tensor([3.0]))


def test_dropped_events_are_told(session):
    session.record(Kind.EXECUTE, "forward", 0, 3)
    session.dropped = 4
    with pytest.warns(UserWarning, match="4 events were dropped"):
        Inspector(trace=Trace(session))


def test_printed_and_saved_tables_hold_the_rows(tmp_path, capsys):
    inspector = Inspector(runs(1, 2))
    inspector.print_data_tabular()
    assert "native_call_add.out" in capsys.readouterr().out
    inspector.save_csv(tmp_path / "t.csv")
    inspector.save_data_to_tsv(tmp_path / "t.tsv")
    assert (tmp_path / "t.csv").read_text().count("\n") == 3
    assert "\tnative_call_add.out\t" in (tmp_path / "t.tsv").read_text()


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_percentiles_are_numpys(count: int) -> None:
    raw = np.random.default_rng(count).random(count).tolist()
    found = PerfData(raw)
    assert [found.p10, found.p50, found.p90] == pytest.approx(np.percentile(raw, [10, 50, 90]).tolist())
