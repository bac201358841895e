"""Runs measured for the profile view: documents, streams, files."""

from __future__ import annotations

import base64
import json
import math
import time

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.errors import ExecutionError, TraceError, WorkbenchError
from workbench.inspector import Inspector
from workbench.inspector.trace import Kind
from workbench_widgets.context import Context
from workbench_widgets.pack import pack, unpack
from workbench_widgets.profile import VIEW
from workbench_widgets.profile.contract import ExportRequest, ProfileDocument, StartRequest, StopRequest
from workbench_widgets.profile.export import save
from workbench_widgets.profile.session import ProfileState


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        y = torch.relu(self.inner(x))
        return torch.softmax(torch.mm(y, y) + x, -1)


class Loop(nn.Module):
    def forward(self, n, x):
        from torch._higher_order_ops import while_loop

        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, torch.cos(x)), (torch.zeros_like(n), x))[1]


@pytest.fixture(scope="module")
def lowering():
    torch.manual_seed(0)
    recipe = wb.Recipe(partitioner=AddMulPartitionerDemo())
    return wb.lower(Net().eval(), (torch.randn(16, 16),), recipe=recipe)


@pytest.fixture
def context(lowering):
    made = Context(lowering)
    made.log = []
    made.connect(
        lambda kinds: made.log.append(("changed", kinds)), lambda event, data: made.log.append((event, data))
    )
    yield made
    state = made.state(ProfileState)
    state.stop()
    assert state.wait(20)
    made.close()


def start(context, *, repeat=0, seconds=0.0, values=False, runtime="native"):
    request = StartRequest(context.methods[0], repeat, seconds, values, runtime)
    return VIEW.calls["profile.start"](context, request)


def finish(context) -> ProfileDocument:
    assert context.state(ProfileState).wait(60)
    return VIEW.documents["profile"](context, context.methods[0])


def events(context, name):
    return [data for event, data in context.log if event == name]


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# ---- documents ---------------------------------------------------------------------------------------------


def test_document_has_the_numbers_of_the_table(lowering):
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=25)
    document = VIEW.documents["profile"](Context(run), "forward")
    found = [
        event for block in run.inspector.event_blocks for event in block.events if event.instruction >= 0
    ]
    assert len(found) == len(document.name)
    by_row = {}
    for row in range(len(document.name)):
        inside = document.parent[row] >= 0
        key = int(document.operator[row].split("#")[1]) if inside else None
        by_row[int(document.instruction[row]), key] = row
    for event in found:
        row = by_row[event.instruction, event.delegate_debug_identifier]
        perf = event.perf_data
        for name, value in (("median", perf.p50), ("p10", perf.p10), ("p90", perf.p90), ("mean", perf.avg)):
            assert getattr(document, name)[row] == pytest.approx(value, rel=1e-9), (name, row)
        assert (document.min[row], document.max[row]) == (perf.min, perf.max)
        assert document.count[row] == 25
        assert set(document.handles[slice(*document.handle_start[row : row + 2])]) == {
            handle for node in event.nodes for handle in node.source_handles
        }
    assert (document.state, document.executions, document.kept) == ("done", 25, 25)
    whole = run.trace.batch().events
    whole = whole[whole["kind"] == Kind.EXECUTE]
    durations = (whole["end_ns"] - whole["start_ns"]) / 1e6
    assert document.total_median == pytest.approx(np.median(durations))
    assert document.history.tolist() == pytest.approx(durations.tolist(), rel=1e-6)


def test_table_of_a_run_names_module_and_line(lowering):
    table = lowering.run(*lowering.example_inputs(), profile=True).table
    row = table[table["event_name"] == "native_call_addmm.out"].iloc[0]
    assert row["module"] == "inner"
    assert row["source"].endswith(f"{__file__}:{Net.forward.__code__.co_firstlineno + 1}")


def test_insides_of_delegates_stand_behind_their_call(lowering):
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=3)
    document = VIEW.documents["profile"](Context(run), "forward")
    inside = [row for row in range(len(document.name)) if document.parent[row] >= 0]
    assert [document.name[row] for row in inside] == ["mm", "add"]
    for row in inside:
        call = document.parent[row]
        assert document.backend[row] == document.backend[call] == "AddMulBackendDemo"
        assert document.name[call] == "mm, add"
        assert document.median[row] < document.median[call]
        assert document.instruction[row] == document.instruction[call]
    assert document.flops[inside[0]] == 2 * 16**3
    # What stays inside is neither read from memory nor written to it.
    assert document.bytes[document.parent[inside[0]]] == 4 * 3 * 256
    linear = list(document.name).index("addmm")
    assert (document.module[linear], document.flops[linear]) == ("inner", 2 * 16**3 + 256)
    assert document.source[linear].endswith(f"{__file__}:{Net.forward.__code__.co_firstlineno + 1}")


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))) + x, -1)


def test_members_of_a_fused_group_stand_below_it():
    recipe = wb.Recipe(partitioner=wb.CpuPartitioner())
    lowering = wb.lower(Fused().eval(), (torch.randn(8, 32),), recipe=recipe)
    run = lowering.run(*lowering.example_inputs(), profile=True, values=True)
    document = VIEW.documents["profile"](Context(run), "forward")
    handles = [
        set(document.handles[slice(*document.handle_start[row : row + 2])].tolist())
        for row in range(len(document.name))
    ]
    children = {}
    for row, parent in enumerate(document.parent.tolist()):
        children.setdefault(parent, []).append(row)
    groups = [row for row in children if row >= 0 and document.parent[row] >= 0]
    assert [[document.name[row] for row in children[group]] for group in groups] == [
        ["linear", "relu"],
        ["linear_1", "add"],
    ]
    for group in groups:
        assert document.median[group] > 0
        members = children[group]
        assert set.union(*(handles[row] for row in members)) == handles[group]
        assert all(math.isnan(document.median[row]) and math.isnan(document.calls[row]) for row in members)
        assert all(document.flops[row] > 0 for row in members)
        # Each member's value was recorded, though they run as one; the group has the worst of them.
        assert all(document.sqnr[row] > 80 for row in members)
        assert document.sqnr[group] == min(document.sqnr[row] for row in members)
    # The rows keep their identity: the table in the browser opens what was open before.
    operators = [document.operator[row] for group in groups for row in children[group]]
    assert len(set(operators)) == len(operators)


def test_without_a_run_the_instructions_stand_without_times(lowering):
    document = VIEW.documents["profile"](Context(lowering), "forward")
    assert document.state == "none"
    assert [name for name in document.name if name != "relu"] == ["addmm", "mm, add", "mm", "add", "_softmax"]
    assert np.isnan(document.median).all()
    assert document.total_median is None
    assert (document.flops[[0, 2]] > 0).all()
    assert unpack(pack(document))["name"] == document.name


def test_loops_count_their_calls():
    lowering = wb.lower(Loop().eval(), (torch.tensor(5), torch.randn(4)))
    run = lowering.run(torch.tensor(5), torch.randn(4), profile=True, repeat=4)
    document = VIEW.documents["profile"](Context(run), "forward")
    cosine = list(document.operator).index("aten::cos.out")
    assert set(run.table["module"]) == {""}
    assert (document.count[cosine], document.calls[cosine]) == (4, 5)
    table = run.table
    row = table[table["event_name"] == "native_call_cos.out"].iloc[0]
    assert document.median[cosine] == pytest.approx(row["p50 (ms)"])


def test_timeline_shows_the_execution_that_is_asked_for(lowering):
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=30)
    context = Context(run)
    document = VIEW.documents["profile"](context, "forward")
    slowest = VIEW.documents["timeline"](context, "forward/slowest")
    assert slowest.duration == pytest.approx(document.total_max)
    assert document.history[slowest.execution] == pytest.approx(slowest.duration, rel=1e-6)
    assert VIEW.documents["timeline"](context, "forward/fastest").duration == document.total_min
    third = VIEW.documents["timeline"](context, "forward/3")
    assert third.execution == 3
    assert (np.diff(third.start) >= 0).all()
    assert (third.start + third.length <= third.duration).all()
    assert sorted(third.row.tolist()) == list(range(len(document.name)))
    assert [document.parent[row] >= 0 for row in third.row] == [bool(flag) for flag in third.inside]
    with pytest.raises(WorkbenchError, match="not kept"):
        VIEW.documents["timeline"](context, "forward/30")


def test_timeline_of_nothing_is_refused(lowering):
    with pytest.raises(TraceError, match="nothing was recorded"):
        VIEW.documents["timeline"](Context(lowering), "forward/median")


# ---- runs from the view ------------------------------------------------------------------------------------


def test_batches_add_up_to_the_final_profile(context):
    started = start(context, repeat=3000)
    document = finish(context)
    batches = events(context, "profile.batch")
    rows = events(context, "profile.rows")
    last = batches[-1]
    assert started.run == document.run == last.run == 1
    assert document.executions == last.executions == 3000
    assert len(rows) == 1  # one layout for all batches
    assert list(rows[0].name) == list(document.name)
    assert sorted(last.row.tolist()) == list(range(len(document.name)))
    place = np.argsort(last.row)
    np.testing.assert_array_equal(last.count[place], document.count)
    np.testing.assert_allclose(last.sum[place] / last.count[place], document.mean)
    np.testing.assert_array_equal(last.min[place], document.min)
    np.testing.assert_array_equal(last.max[place], document.max)
    assert [b.executions for b in batches] == sorted(b.executions for b in batches)
    assert max(len(pack(batch)) for batch in batches) < 64_000
    assert all(len(b.samples) == b.sampled * len(b.row) for b in batches)
    assert max(float(b.recent.max()) for b in batches if len(b.recent)) == pytest.approx(
        document.total_max, rel=1e-6
    )
    ended = events(context, "profile.ended")
    assert len(ended) == 1
    np.testing.assert_array_equal(ended[0].document.median, document.median)


def test_run_is_shown_to_all_views_when_it_is_over(context):
    start(context, repeat=5)
    finish(context)
    changed = frozenset().union(*(kinds for event, kinds in context.log if event == "changed"))
    assert {"overlays", "profile", "about", "timeline"} <= changed
    assert context.run.method == "forward"
    assert len(context.run.trace) == 5 * (1 + len(events(context, "profile.rows")[0].name))


def test_stop_keeps_what_was_measured(context):
    start(context, seconds=60)
    wait_for(lambda: events(context, "profile.batch"))
    VIEW.calls["profile.stop"](context, StopRequest("forward"))
    document = finish(context)
    assert document.state == "stopped"
    assert 0 < document.elapsed < 30
    assert document.executions == context.run.trace.batch().events["execution"].max() + 1
    assert not np.isnan(document.median).any()
    assert context.run is not None


def test_time_limits_a_run(context):
    start(context, seconds=0.2)
    document = finish(context)
    assert document.state == "done"
    assert 0.2 <= document.elapsed < 5


def test_one_run_at_a_time(context):
    start(context, seconds=60)
    with pytest.raises(ExecutionError, match="under way already") as caught:
        start(context, repeat=1)
    assert caught.value.code == "InvalidState"
    assert events(context, "profile.ended") == []


@pytest.mark.parametrize(("repeat", "seconds"), [(0, 0.0), (-1, 1.0), (3, -1.0)])
def test_run_without_an_end_is_refused(context, repeat, seconds):
    with pytest.raises(ExecutionError, match="needs an end"):
        start(context, repeat=repeat, seconds=seconds)


def test_failed_run_says_why_and_can_be_repeated(context, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(context, "example_inputs", lambda method: [torch.randn(3, 3)])
        start(context, repeat=5)
        document = finish(context)
    assert events(context, "profile.ended")[0].document.state == "failed"
    problem = events(context, "profile.ended")[0].document.problem
    assert (problem.kind, problem.details["code"]) == ("ExecutionError", "InvalidArgument")
    assert context.run is None  # no other view shows what never ran
    start(context, repeat=5)
    document = finish(context)
    assert (document.state, document.problem, document.executions) == ("done", None, 5)


def test_cells_can_execute_while_the_view_runs(context, lowering):
    start(context, seconds=60)
    wait_for(lambda: events(context, "profile.batch"))
    assert len(lowering.execute(*lowering.example_inputs())) == 1
    assert context.state(ProfileState).running


def test_closing_the_widget_ends_its_run(lowering):
    context = Context(lowering)
    start(context, seconds=60)
    state = context.state(ProfileState)
    context.close()
    assert state.wait(20)
    assert not state.running


def test_users_run_is_followed_and_survives_the_widget(lowering):
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=10**8, background=True)
    context = Context(run)
    log = []
    context.connect(lambda kinds: None, lambda event, data: log.append((event, data)))
    assert VIEW.documents["profile"](context, "forward").state == "running"
    wait_for(lambda: [data for event, data in log if event == "profile.batch" and data.executions > 3])
    context.close()
    assert context.state(ProfileState).wait(20)
    assert run.running
    run.cancel()
    run.outputs  # noqa: B018  waits for the end


def test_stopping_a_users_run_from_the_view(lowering):
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=10**8, background=True)
    context = Context(run)
    VIEW.documents["profile"](context, "forward")
    VIEW.calls["profile.stop"](context, StopRequest("forward"))
    assert context.state(ProfileState).wait(20)
    assert not run.running
    assert VIEW.documents["profile"](context, "forward").state == "stopped"


def test_next_run_stands_beside_the_one_before(context):
    start(context, repeat=20)
    first = finish(context)
    assert np.isnan(first.before).all()
    start(context, repeat=20)
    second = finish(context)
    assert second.run == 2
    np.testing.assert_array_equal(second.before, first.median)
    assert second.before_median == first.total_median


def test_run_before_is_matched_by_origin_after_another_lowering():
    torch.manual_seed(0)
    lowering = wb.lower(Net().eval(), (torch.randn(16, 16),))
    context = Context(lowering)
    start(context, repeat=5)
    first = finish(context)
    lowering.update(wb.Recipe(partitioner=AddMulPartitionerDemo()))
    assert context.run is None
    again = VIEW.documents["profile"](context, "forward")
    assert again.state == "none"
    start(context, repeat=5)
    second = finish(context)
    for name in ("addmm", "_softmax"):
        before = second.before[list(second.name).index(name)]
        assert before == first.median[list(first.name).index(name)]
    assert math.isnan(second.before[list(second.name).index("mm, add")])
    context.close()


def test_long_runs_are_kept_in_bounded_memory(context, monkeypatch):
    monkeypatch.setattr("workbench_widgets.profile.session._KEEP", 2000)
    start(context, repeat=4000)
    document = finish(context)
    # What the trace forgot before it was looked at counts nowhere, and is told.
    assert document.executions == document.count[0] <= 4000
    assert (document.executions < 4000) == (document.dropped > 0)
    assert 200 < document.kept < 4000
    assert len(document.history) <= 4000
    assert document.history.max() == pytest.approx(document.total_max, rel=1e-6)
    with pytest.raises(WorkbenchError, match="not kept"):
        VIEW.documents["timeline"](context, "forward/0")


# ---- values ------------------------------------------------------------------------------------------------


def test_values_are_compared_with_eager(context):
    start(context, repeat=10, values=True)
    document = finish(context)
    assert document.values_problem == ""
    for name in ("addmm", "mm, add", "_softmax"):
        row = list(document.name).index(name)
        assert document.sqnr[row] > 100
        assert 0 <= document.max_error[row] < 1e-4 * document.max_reference[row]


def test_wrong_value_shows(lowering):
    context = Context(lowering)
    inputs = [torch.randn(16, 16)]
    run = lowering.run(*inputs, values=True)
    run.inputs = (inputs[0] + 0.1,)
    document = VIEW.documents["profile"](Context(run), "forward")
    assert document.sqnr[list(document.name).index("addmm")] < 40
    context.close()


def test_values_of_a_program_from_a_file_have_no_reference(lowering):
    opened = wb.open(bytes(lowering.program.buffer))
    run = opened.run(*opened.random_inputs(), values=True)
    document = VIEW.documents["profile"](Context(run), "forward")
    assert "no eager model" in document.values_problem
    assert np.isnan(document.sqnr).all()


def test_program_from_a_file_is_run_and_selected_by_instruction(lowering):
    context = Context(wb.open(bytes(lowering.program.buffer)))
    start(context, repeat=4)
    document = finish(context)
    assert document.executions == 4
    first = document.handles[slice(*document.handle_start[:2])]
    assert first.tolist() == [document.instruction[0] + 1]
    context.close()


@pytest.mark.peer
def test_the_peers_runtime_streams_too():
    pytest.importorskip("executorch.extension.pybindings.portable_lib")
    context = Context(wb.lower(Net().eval(), (torch.randn(16, 16),)))
    start(context, repeat=4, runtime="executorch")
    document = finish(context)
    assert (document.runtime, document.state, document.executions) == ("executorch", "done", 4)
    assert not np.isnan(document.median[list(document.name).index("addmm")])
    context.close()


# ---- files -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(lowering):
    context = Context(lowering.run(*lowering.example_inputs(), profile=True, repeat=6))
    yield context
    context.close()


def test_perfetto_file_nests(measured):
    file = VIEW.calls["profile.export"](measured, ExportRequest("forward", "perfetto"))
    trace = [event for event in json.loads(file.text)["traceEvents"] if event["ph"] == "X"]
    tracks = {
        event["tid"]: event["args"]["name"]
        for event in json.loads(file.text)["traceEvents"]
        if event["name"] == "thread_name"
    }
    kinds = {"methods": [], "instructions": [], "inside AddMulBackendDemo": []}
    for event in trace:
        kinds[tracks[event["tid"]]].append((event["ts"], event["ts"] + event["dur"], event["args"]["run"]))
    assert [len(spans) for spans in kinds.values()] == [6, 6 * 4, 6 * 2]
    for inner, outer in (("instructions", "methods"), ("inside AddMulBackendDemo", "instructions")):
        for start_, end, number in kinds[inner]:
            around = [s for s in kinds[outer] if s[0] <= start_ + 1e-6 and end <= s[1] + 1e-6]
            assert [span[2] for span in around] == [number]


def test_csv_has_every_row(measured):
    file = VIEW.calls["profile.export"](measured, ExportRequest("forward", "csv"))
    lines = file.text.strip().split("\n")
    document = VIEW.documents["profile"](measured, "forward")
    assert len(lines) == 1 + len(document.name)
    assert lines[0].startswith("name,operator,backend")
    assert file.name == "forward.csv"


def test_etdump_opens_in_the_inspector(measured):
    file = VIEW.calls["profile.export"](measured, ExportRequest("forward", "etdump"))
    blocks = Inspector(base64.b64decode(file.base64)).event_blocks
    assert [block.runs for block in blocks] == [6]


def test_files_are_saved_from_python(measured, tmp_path):
    document = VIEW.documents["profile"](measured, "forward")
    save(document, measured.run, "csv", tmp_path / "a.csv")
    save(document, measured.run, "etdump", tmp_path / "a.etdp")
    assert (tmp_path / "a.csv").read_text().startswith("name")
    assert Inspector(tmp_path / "a.etdp").event_blocks[0].runs == 6


def test_export_of_nothing_is_refused(lowering):
    with pytest.raises(TraceError, match="nothing was recorded"):
        VIEW.calls["profile.export"](Context(lowering), ExportRequest("forward", "csv"))


# ---- the static picture ------------------------------------------------------------------------------------


def test_picture_shows_the_most_expensive_rows(measured):
    picture = VIEW.picture(measured)
    assert picture.html.count("<rect") == 4
    assert "6 executions" in picture.html
    assert "_softmax" in picture.text
    assert "<script" not in picture.html


def test_picture_without_a_run_says_so(lowering):
    assert "nothing was measured" in VIEW.picture(Context(lowering)).text


def test_report_brings_the_timelines_and_the_machines_limits(measured):
    VIEW.documents["profile"](measured, "forward")  # before they were measured
    wanted = list(VIEW.report(measured))
    assert wanted == [
        ("profile", "forward"),
        *(("timeline", f"forward/{which}") for which in ("median", "slowest", "fastest")),
    ]
    document = VIEW.documents["profile"](measured, "forward")
    assert document.peaks.gflops > 1
    assert all(unpack(pack(VIEW.documents[kind](measured, key))) for kind, key in wanted)


def test_report_without_a_run_has_the_instructions(lowering):
    assert list(VIEW.report(Context(lowering))) == [("profile", "forward")]
