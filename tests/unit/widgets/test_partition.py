"""The editing session of the partition view: previews, edits, history, text, lowering again."""

import json
import time

import pytest
import torch

import networks
import workbench as wb
from workbench.backends import BackendDetails, register_backend
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.backends.registry import unregister_backend
from workbench.errors import PartitionError, WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.pack import pack, unpack
from workbench_widgets.partition import VIEW
from workbench_widgets.partition.contract import PartitionMove, PartitionRelower, PartitionRequest
from workbench_widgets.partition.editor import PartitionSession


class Net(torch.nn.Module):
    """Adds and muls around a sine; the branch makes a cycle possible."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        y = x + 1.0
        z = torch.sin(y)
        w = y * z
        return self.inner(w) + y


class Inner(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2.0) + x


INPUTS = (torch.linspace(-1, 1, 8).reshape(2, 4),)


@pytest.fixture
def lowering():
    return wb.lower(Net().eval(), INPUTS, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo()))


@pytest.fixture
def context(lowering):
    made = Context(lowering)
    yield made
    made.close()


def request(context, action, *names, method="forward", **more):
    session = context.state(PartitionSession).method(method)
    fields = {"handles": [], "module": None, "tag": None, "tags": [], "backend": None, **more}
    return PartitionRequest(method=method, action=action, rows=session.rows(names), **fields)


def call(context, name, arguments):
    answer = VIEW.calls[f"partition.{name}"](context, arguments)
    unpack(pack(answer))  # it fits the contract
    return answer


def state(context, method="forward"):
    made = VIEW.documents["partition.state"](context, method)
    unpack(pack(made))
    return made


def tags(context):
    document, now = VIEW.documents["partition"](context, "forward"), state(context)
    names = [tag.name for tag in now.tags]
    return {
        name: names[tag] if tag >= 0 else None
        for name, tag, operator in zip(document.name, now.tag.tolist(), document.operator, strict=True)
        if operator
    }


def move(context, what, index=-1):
    return call(context, "move", PartitionMove("forward", what, index))


def relower(context, run=False):
    return call(context, "relower", PartitionRelower("forward", run))


def names_of(context, rows):
    document = VIEW.documents["partition"](context, "forward")
    return [document.name[row] for row in rows]


def test_documents_tell_tags_costs_and_reasons(context, lowering):
    document, now = VIEW.documents["partition"](context, "forward"), state(context)
    unpack(pack(document))
    assert {tag.backend for tag in now.tags} == {"AddMulBackendDemo"} and now.editable
    assert now.cost.partitions == len(lowering.partitioned.tags["forward"]) == len(now.tags)
    left = dict(zip(names_of(context, now.reason_row), now.reason, strict=True))
    assert "the backend has no aten.sin" in left["sin"] and set(left) == {"sin", "relu"}
    assert all(form for form in now.eligible_if)
    assert now.operators == len(tags(context))
    first = now.tags[0]
    assert (first.input_bytes, first.outputs, first.settings) == (32.0, 1, "max_value=4")
    assert now.backends[0].name == "AddMulBackendDemo" and now.backends[0].checked
    assert not next(b for b in now.backends if b.name == "BackendWithCompilerDemo").checked
    assert now.history == [] and now.undo == "" and now.waiting == 0


def test_preview_says_what_apply_does_and_changes_nothing(context):
    before = tags(context)
    for wanted in (
        request(context, "erase", "add"),
        request(context, "assign", "sin", backend="AddMulBackendDemo"),
        request(context, "merge", tags=[tag.name for tag in state(context).tags[:2]]),
        request(context, "split", "mul"),
    ):
        seen = call(context, "preview", wanted)
        assert tags(context) == before
        done = call(context, "apply", wanted)
        for part in ("legal", "message", "kind", "text", "path", "nodes", "hint"):
            assert getattr(seen, part) == getattr(done, part), (wanted.action, part)
        assert seen.changed.tolist() == done.changed.tolist() and list(seen.after) == list(done.after)
        assert seen.cost_after == done.cost_after == state(context).cost
        if done.legal:
            move(context, "undo")
        assert tags(context) == before


def test_cost_of_the_boundary_is_told_before_the_edit(context):
    answer = call(context, "preview", request(context, "erase", "add_2"))
    assert answer.legal and answer.cost_after.delegated == answer.cost_before.delegated - 1
    # The last addition: both of its operands leave delegates now, and its result doesn't.
    assert answer.cost_after.crossing_bytes != answer.cost_before.crossing_bytes
    call(context, "apply", request(context, "erase", "add_2"))
    relower(context)
    assert state(context).lowered == answer.cost_after


def test_illegal_edit_is_refused_with_its_path_and_hint_and_remembered(context):
    before = tags(context)
    names = [tag.name for tag in state(context).tags]
    assert before["add"] != before["mul"]
    answer = call(context, "apply", request(context, "merge", tags=[before["add"], before["mul"]]))
    assert not answer.legal and answer.kind == "cycle" and "isn't convex" in answer.message
    assert names_of(context, answer.path) == ["add", "sin", "mul"]
    assert names_of(context, answer.nodes) == ["sin"] and answer.hint
    now = state(context)
    assert tags(context) == before and [tag.name for tag in now.tags] == names
    (entry,) = now.history
    assert entry.state == "refused" and "isn't convex" in entry.reason and now.waiting == 0


def test_nearest_legal_form_is_offered_and_is_legal(context):
    tag = tags(context)["add"]
    wanted = request(context, "assign", "sin", "mul", "relu", tag=tag)
    answer = call(context, "preview", wanted)
    assert not answer.legal and answer.kind == "unsupported" and len(answer.nodes) == 2
    # mul alone would close a cycle through sin: there is no legal form here, and none is claimed.
    assert answer.suggestion is None
    wanted = request(context, "assign", "relu", "add_1", backend="AddMulBackendDemo")
    suggestion = call(context, "preview", wanted).suggestion
    assert suggestion is not None and names_of(context, suggestion.rows) == ["add_1"]
    again = request(context, "assign", *names_of(context, suggestion.rows), backend="AddMulBackendDemo")
    assert call(context, "apply", again).legal


class Chain(torch.nn.Module):
    def forward(self, x):
        return ((x + 1.0) * 2.0 + x) * 3.0


def test_what_lies_between_is_offered_where_an_edit_would_close_a_cycle():
    context = Context(wb.lower(Chain().eval(), INPUTS, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo())))
    answer = call(context, "preview", request(context, "split", "add", "add_1", tag="ends"))
    assert not answer.legal and names_of(context, answer.path) == ["add", "mul", "add_1"]
    assert answer.suggestion.text == "with mul in between"
    assert names_of(context, answer.suggestion.rows) == ["add", "add_1", "mul"]
    wanted = request(context, "split", *names_of(context, answer.suggestion.rows), tag="ends")
    assert call(context, "apply", wanted).changed.tolist() and tags(context)["mul"] == "ends"
    context.close()


def test_unknown_backend_and_unknown_method_raise_what_to_do(context):
    with pytest.raises(PartitionError, match="no backend is called 'AddMulBackendDem'") as caught:
        call(context, "preview", request(context, "assign", "add", backend="AddMulBackendDem"))
    assert "did you mean 'AddMulBackendDemo'" in caught.value.hint
    with pytest.raises(WorkbenchError, match="no such method"):
        state(context, "backward")


def test_backend_without_partitioner_is_asked_itself_before_the_edit(context):
    before = tags(context)
    wanted = request(context, "assign", "relu", backend="BackendWithCompilerDemo")
    answer = call(context, "preview", wanted)
    assert not answer.legal and answer.kind == "backend" and "has no aten.relu" in answer.message
    assert "eligible if" in answer.hint and names_of(context, answer.nodes) == ["relu"]
    assert call(context, "apply", wanted).message == answer.message and tags(context) == before
    assert [step.state for step in state(context).history] == ["refused"]
    assert call(
        context, "preview", request(context, "assign", "sin", backend="BackendWithCompilerDemo")
    ).legal


def test_large_tag_of_a_backend_without_partitioner_is_said_to_be_unchecked(context, lowering, monkeypatch):
    monkeypatch.setattr("workbench_widgets.partition.trial._OPERATORS", 0)
    wanted = request(context, "assign", "relu", backend="BackendWithCompilerDemo")
    answer = call(context, "apply", wanted)
    assert answer.legal and "shows when the partition is lowered" in answer.unchecked
    data = lowering.program.buffer
    with pytest.raises(PartitionError, match="can't run 'relu'"):
        relower(context)
    assert lowering.program.buffer == data and lowering.recipe.edits == () and state(context).waiting == 1
    move(context, "undo")
    relower(context)
    assert lowering.program.buffer == data


def test_backend_that_breaks_is_named(context):
    class Broken(BackendDetails):
        @staticmethod
        def preprocess(edge_program, compile_specs):
            raise ZeroDivisionError("oops")

    register_backend("Broken")(Broken)
    try:
        answer = call(context, "preview", request(context, "assign", "sin", backend="Broken"))
    finally:
        unregister_backend("Broken")
    assert not answer.legal and answer.message == "the backend 'Broken' failed: ZeroDivisionError: oops"


def test_backend_without_partitioner_runs_what_it_can(context, lowering):
    assert call(context, "apply", request(context, "assign", "sin", backend="BackendWithCompilerDemo")).legal
    outcome = relower(context, run=True)
    assert outcome.problem == "" and tags(context)["sin"] == "BackendWithCompilerDemo_1"
    torch.testing.assert_close(lowering.execute(*INPUTS)[0], Net().eval()(*INPUTS))


def test_undo_and_redo_go_through_all_edits(context):
    seen = [tags(context)]
    for names in (("add",), ("mul",), ("add_2",)):
        assert call(context, "apply", request(context, "erase", *names)).legal
        seen.append(tags(context))
    assert len({json.dumps(one) for one in seen}) == 4
    for expected in reversed(seen[:-1]):
        assert state(context).undo
        move(context, "undo")
        assert tags(context) == expected
    assert state(context).undo == "" and "nothing to undo" in move(context, "undo").text
    for expected in seen[1:]:
        move(context, "redo")
        assert tags(context) == expected
    assert "nothing to redo" in move(context, "redo").text
    move(context, "undo")
    assert [step.state for step in state(context).history] == ["pending", "pending", "undone"]
    call(context, "apply", request(context, "erase", "mul_1"))
    assert state(context).redo == ""


def test_clear_discard_and_remove_can_be_undone(context, lowering):
    call(context, "apply", request(context, "erase", "add"))
    relower(context)
    assert [step.state for step in state(context).history] == ["lowered"] and state(context).waiting == 0
    call(context, "apply", request(context, "erase", "mul"))
    both = tags(context)
    move(context, "discard")
    assert tags(context)["mul"] is not None and tags(context)["add"] is None
    move(context, "undo")
    assert tags(context) == both
    move(context, "clear")
    assert all(tags(context)[name] for name in ("add", "mul")) and state(context).waiting == 1
    move(context, "undo")
    move(context, "remove", 0)
    assert tags(context)["add"] is not None and tags(context)["mul"] is None
    with pytest.raises(PartitionError, match="no such edit"):
        move(context, "remove", 7)
    relower(context)
    assert [edit.data["action"] for edit in lowering.recipe.edits] == ["erase"]


def test_removing_an_edit_that_a_later_one_needs_is_refused(context):
    call(context, "apply", request(context, "erase", "mul_1"))
    call(context, "apply", request(context, "assign", "mul_1", tag="mine", backend="AddMulBackendDemo"))
    call(context, "apply", request(context, "merge", tags=["mine", tags(context)["mul"]]))
    before = tags(context)
    with pytest.raises(PartitionError, match="can't be made any more"):
        move(context, "remove", 1)
    assert tags(context) == before and len(state(context).history) == 3


def test_edits_by_module_and_by_handles(context):
    inner = [name for name in tags(context) if name in ("mul_1", "relu", "add_1")]
    answer = call(context, "preview", request(context, "erase", module="inner"))
    assert answer.requested == len(inner) == 3
    assert names_of(context, answer.changed) == ["mul_1", "add_1"]
    document = VIEW.documents["partition"](context, "forward")
    row = list(document.name).index("mul")
    handles = document.handles[document.handle_start[row] : document.handle_start[row + 1]].tolist()
    answer = call(context, "preview", request(context, "erase", handles=[*handles, 999]))
    assert names_of(context, answer.changed) == ["mul"] and answer.missing == ["#999"]
    answer = call(context, "preview", request(context, "erase", module="nowhere"))
    assert not answer.legal and answer.missing == ["module nowhere"]


def test_requested_stands_beside_applied_with_the_reason_for_the_difference(context):
    tag = tags(context)["mul_1"]
    whole = [name for name, has in tags(context).items() if has == tag]
    middle = "mul_1" if whole.index("mul_1") not in (0, len(whole) - 1) else whole[len(whole) // 2]
    call(context, "apply", request(context, "erase", middle))
    now = state(context)
    rows = dict(zip(names_of(context, now.asked_row), range(len(now.asked_row)), strict=True))
    assert now.asked_tag[rows[middle]] == "" and now.asked_given[rows[middle]] == 1
    followed = [name for name, at in rows.items() if not now.asked_given[at]]
    for name in followed:
        assert tags(context)[name] != now.asked_tag[rows[name]]
        assert now.asked_why[rows[name]].startswith("edit 1: what is left of")
    call(context, "apply", request(context, "assign", middle, tag="again", backend="AddMulBackendDemo"))
    now = state(context)
    assert now.asked_tag[names_of(context, now.asked_row).index(middle)] == "again"


def test_python_and_json_replay_headless_to_the_same_bytes(context, lowering):
    capture = wb.lower(Net().eval(), INPUTS, recipe=lowering.recipe)
    plain = capture.program.buffer
    call(context, "apply", request(context, "erase", module="inner"))
    call(context, "apply", request(context, "assign", "mul_1", tag="mine", backend="AddMulBackendDemo"))
    call(context, "apply", request(context, "erase", "add"))
    now = state(context)
    relower(context)
    assert lowering.program.buffer != plain
    scope = {"lowering": capture}
    exec(now.python, scope)
    assert capture.program.buffer == lowering.program.buffer
    fresh = wb.lower(Net().eval(), INPUTS, recipe=wb.Recipe.from_json(now.json))
    assert fresh.program.buffer == lowering.program.buffer
    assert wb.Recipe.from_json(lowering.recipe.to_json()) == lowering.recipe


def test_lowering_and_running_measures_both_sides(context, lowering):
    before = len(lowering.program.buffer)
    call(context, "apply", request(context, "erase", module=""))
    outcome = relower(context, run=True)
    by_name = {measure.name: measure for measure in outcome.measures}
    assert outcome.problem == "" and "partition" in outcome.ran and "edge" not in outcome.ran
    assert (by_name["Program"].before, by_name["Program"].after) == (before, len(lowering.program.buffer))
    assert by_name["Partitions"].after == by_name["Crossing"].after == 0 < by_name["Crossing"].before
    assert by_name["Time"].before > 0 and by_name["Time"].after > 0
    assert 0 <= by_name["Error"].after < 1e-5
    assert context.run is not None and context.run.trace is not None


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2, 4))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2.0


def test_measuring_leaves_the_state_of_a_model_alone():
    lowering = wb.lower(Counter().eval(), INPUTS, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo()))
    context = Context(lowering)
    fingerprint = lowering.exported.fingerprint
    call(context, "apply", request(context, "erase", module=""))
    outcome = relower(context, run=True)
    by_name = {measure.name: measure for measure in outcome.measures}
    assert outcome.problem == "" and by_name["Error"].before == by_name["Error"].after == 0.0
    assert lowering.exported.intact() and lowering.exported.fingerprint == fingerprint
    torch.testing.assert_close(lowering.execute(*INPUTS)[0], INPUTS[0] * 4.0)  # the profiled run was first
    context.close()


def test_program_that_pytorch_can_not_run_is_measured_all_the_same(context, lowering, monkeypatch):
    def broken(self, *args, **kwargs):
        raise RuntimeError("no luck")

    monkeypatch.setattr(torch.export.ExportedProgram, "module", broken)
    call(context, "apply", request(context, "erase", "add"))
    outcome = relower(context, run=True)
    names = [measure.name for measure in outcome.measures]
    assert "no luck" in outcome.problem and "Time" in names and "Error" not in names


def test_edit_that_python_makes_meanwhile_is_followed_and_can_be_undone(context, lowering):
    call(context, "apply", request(context, "erase", "add"))
    mine = tags(context)
    edit = wb.Edit("partition", {"action": "erase", "nodes": ["mul"]})
    lowering.update(lowering.recipe.replace(edits=[edit]))
    now = state(context)
    assert tags(context)["add"] is not None and tags(context)["mul"] is None
    assert "changed elsewhere" in now.note and now.waiting == 0
    move(context, "undo")
    assert tags(context) == mine
    lowering.update(wb.Recipe())
    assert set(tags(context).values()) == {None} and state(context).history == []


def test_several_methods_are_edited_apart():
    exported = {name: torch.export.export(Net().eval(), INPUTS) for name in ("forward", "second")}
    lowering = wb.lower(exported, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo()))
    context = Context(lowering)
    call(context, "apply", request(context, "erase", "add", method="second"))
    assert state(context).history == [] and len(state(context, "second").history) == 1
    relower(context)
    assert [edit.method for edit in lowering.recipe.edits] == ["second"]
    assert state(context, "second").waiting == 0
    assert "method='second'" in state(context).python
    context.close()


def test_stage_without_lowering_is_shown_and_says_why_it_can_not_be_edited():
    stage = wb.lower(Net().eval(), INPUTS, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo())).partitioned
    context = Context(stage)
    if context.lowering is None:
        assert not state(context).editable and state(context).tags
        with pytest.raises(PartitionError, match="its lowering is gone"):
            call(context, "preview", request(context, "erase", "add"))
    else:
        assert state(context).editable


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a + 1.0, lambda a: a * 2.0 + 1.0, (x,)) + x


def test_nodes_inside_branches_are_edited():
    lowering = wb.lower(Branches().eval(), INPUTS, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo()))
    context = Context(lowering)
    document = VIEW.documents["partition"](context, "forward")
    rows = [row for row, name in enumerate(document.name) if name == "mul" and document.operator[row]]
    assert len(rows) == 1 and state(context).tag[rows[0]] >= 0
    wanted = PartitionRequest("forward", "erase", rows, [], None, None, [], None)
    assert call(context, "apply", wanted).legal and state(context).tag[rows[0]] == -1
    assert relower(context, run=True).problem == ""
    context.close()


def test_static_picture_tells_partitions_and_reasons_and_escapes_names(context):
    call(context, "apply", request(context, "assign", "mul_1", tag="<b>&", backend="AddMulBackendDemo"))
    made = VIEW.picture(context)
    assert "&lt;b&gt;&amp;" in made.html and "<b>" not in made.html
    assert "5 of 7 operators" in made.text and "the backend has no aten.relu" in made.html
    assert made.html.count("<rect") >= 1 + len(state(context).tags)


@pytest.fixture(scope="module")
def vit():
    network = networks.build("vit_tiny")
    return wb.lower(network.model, network.inputs, recipe=wb.Recipe(partitioner=AddMulPartitionerDemo()))


def test_edit_on_vit_tiny_is_answered_and_lowered_in_time(vit):
    context = Context(vit)
    state(context)
    names = [name for name, tag in tags(context).items() if tag][20:23]
    times = {"preview": [], "apply": [], "undo": []}
    for _ in range(3):
        wanted = request(context, "erase", *names)
        for step in ("preview", "apply", "undo"):
            start = time.perf_counter()
            if step == "undo":
                move(context, "undo")
            else:
                assert call(context, step, wanted).legal
            pack(state(context))
            times[step].append(time.perf_counter() - start)
    # The first edit copies the program. 300 ms is what a person is promised, transport included.
    assert max(min(seen) for seen in times.values()) < 0.3, times
    lowered = []
    for _ in range(3):
        call(context, "apply", request(context, "erase", *names))
        start = time.perf_counter()
        relower(context)
        lowered.append(time.perf_counter() - start)
        move(context, "undo")
    # About 0.6 s; the bound leaves room for a machine that does other things, too.
    assert min(lowered) < 4, lowered
    context.close()
