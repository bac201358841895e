"""The memory view: documents against reports, lifetimes read off files, previews against real plans."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from networks import SMALL, build, small
from workbench.errors import MemoryPlanError, RecipeError, WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.memory.contract import (
    KINDS,
    MemoryChoices,
    MemoryDocument,
    MemoryEdit,
    MemoryPin,
)
from workbench_widgets.memory.derive import derive
from workbench_widgets.memory.document import memory_document
from workbench_widgets.memory.picture import picture
from workbench_widgets.memory.planning import apply, preview, python
from workbench_widgets.pack import pack, unpack


@pytest.fixture(scope="module")
def lowered() -> wb.Lowering:
    network = build("dscnn")
    return wb.lower(network.model, network.inputs, progress=False)


@pytest.fixture
def lowering(lowered: wb.Lowering) -> wb.Lowering:
    return wb.Lowering(lowered._result, lowered.seconds["export"])


@pytest.fixture
def context(lowering: wb.Lowering) -> Context:
    return Context(lowering)


def edit(document: MemoryDocument, **changes: Any) -> MemoryEdit:
    return MemoryEdit(document.method, dataclasses.replace(document.choices, **changes))


def rows_of(document: MemoryDocument) -> list[tuple[Any, ...]]:
    return sorted(
        (
            document.name[row],
            int(document.arena[row]),
            int(document.offset[row]),
            int(document.bytes[row]),
            int(document.first[row]),
            int(document.last[row]),
            bool(document.at_peak[row]),
            bool(document.pinned[row]),
            tuple(document.handles[document.handle_start[row] : document.handle_start[row + 1]].tolist()),
        )
        for row in range(len(document.name))
    )


def test_document_agrees_with_the_report_of_the_plan(context: Context, lowering: wb.Lowering) -> None:
    document = memory_document(context, "forward")
    expected = [tuple(row.values())[1:] for row in lowering.plan.report.rows()]
    assert rows_of(document) == sorted(expected)
    (arena,) = document.arenas
    (report,) = lowering.plan.report["forward"].arenas
    assert (arena.size, arena.lower_bound, arena.peak_moment, arena.total) == (
        report.size,
        report.lower_bound,
        report.peak_moment,
        report.total,
    )
    assert arena.fragmentation == report.fragmentation
    assert arena.tensors == len(report.tensors)
    assert unpack(pack(document))["method"] == "forward"


def test_document_names_the_instructions_as_moments(context: Context, lowering: wb.Lowering) -> None:
    document = memory_document(context, "")
    method = lowering.program.emitted.program.method("forward")
    names = [method.operator_name(item.operator) for item in method.instructions]
    assert list(document.moment_name) == ["inputs", *names, "results"]
    assert document.moments == len(names) + 2
    assert document.last.max() < document.moments
    # What an instruction makes has its handles; the graph is lit by them.
    row = list(document.name).index("convolution_3")
    moment = int(document.producer[row])
    own = document.moment_handles[
        document.moment_handle_start[moment] : document.moment_handle_start[moment + 1]
    ]
    assert set(own.tolist()) == set(
        document.handles[document.handle_start[row] : document.handle_start[row + 1]].tolist()
    )
    assert "convolution" in document.moment_name[moment]
    assert document.source[row].endswith(".py:565") or ".py:" in document.source[row]


def test_steps_of_live_bytes_peak_at_the_lower_bound(context: Context) -> None:
    document = memory_document(context, "forward")
    (arena,) = document.arenas
    assert document.live_bytes.max() == arena.lower_bound
    at = int(np.flatnonzero(document.live_moment <= arena.peak_moment)[-1])
    assert document.live_bytes[at] == arena.lower_bound
    assert document.live_bytes[-1] == 0
    alive = (document.first <= arena.peak_moment) & (arena.peak_moment <= document.last)
    assert (document.at_peak == alive).all()


def test_kinds_tell_inputs_outputs_and_states_apart() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(x.sum(0))
            return x * self.seen

    lowering = wb.lower(Counting().eval(), (torch.ones(3, 4),), progress=False)
    for subject in (lowering, wb.open(lowering.program.buffer)):
        document = memory_document(Context(subject), "forward")
        found = {
            KINDS[int(kind)]: (int(first), int(last))
            for kind, first, last in zip(document.kind, document.first, document.last, strict=True)
        }
        assert found["state"] == (0, document.moments - 1)
        assert found["input"][0] == 0
        assert found["output"][1] == document.moments - 1


@pytest.mark.parametrize("name", ["mlp", "dscnn", *SMALL])
def test_lifetimes_read_off_a_file_are_those_of_the_plan(name: str) -> None:
    network = build(name) if name in ("mlp", "dscnn") else small(name)
    lowering = wb.lower(network.model, network.inputs, dynamic_shapes=network.dynamic_shapes, progress=False)
    opened = wb.open(lowering.program.buffer)
    for method in opened.program.methods:
        found = sorted((i.arena, i.offset, i.first, i.last, i.nbytes) for i in derive(method))
        report = lowering.plan.report[method.name]
        assert found == sorted((i.arena, i.offset, i.first, i.last, i.nbytes) for i in report.tensors)


def test_lifetimes_of_a_delegated_file_are_those_of_the_plan() -> None:
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            a = torch.relu(x).view(6, 2)
            b = a + y
            return torch.sigmoid(b * a), torch.relu(b)

    recipe = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")
    example = (torch.randn(3, 4), torch.randn(6, 2))
    lowering = wb.lower(Mixed().eval(), example, recipe=recipe, progress=False)
    (method,) = wb.open(lowering.program.buffer).program.methods
    assert method.delegates
    found = sorted((i.arena, i.offset, i.first, i.last, i.nbytes) for i in derive(method))
    report = lowering.plan.report["forward"]
    assert found == sorted((i.arena, i.offset, i.first, i.last, i.nbytes) for i in report.tensors)


def test_a_program_from_a_file_shows_the_same_memory(lowering: wb.Lowering) -> None:
    own = memory_document(Context(lowering), "forward")
    read = memory_document(Context(wb.open(lowering.program.buffer)), "forward")
    assert (own.origin, read.origin) == ("plan", "file")
    assert read.choices.planner == ""
    assert not read.can_apply
    assert "file" in read.why_not
    for column in ("arena", "offset", "bytes", "first", "last", "at_peak", "kind", "producer", "views"):
        assert (getattr(own, column) == getattr(read, column)).all(), column
    assert own.arenas == read.arenas
    assert list(own.shape) == list(read.shape)
    # Without provenance, the handle is that of the instruction that writes the tensor.
    row = list(read.name).index("relu")
    assert read.handles[read.handle_start[row]] == read.producer[row]


CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "naive": {"planner": "naive"},
    "greedy": {"planner": "greedy"},
    "alignment": {"alignment": 64},
    "pin": {"pins": {"relu": MemoryPin(1, 64000)}},
    "pin into another arena": {"pins": {"relu": MemoryPin(2, 128)}},
    "arena": {"arenas": {"convolution_2": 2, "relu_2": 3}},
    "limit that holds": {"arena_limits": {"1": 1 << 20}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_preview_is_what_lowering_again_gives(name: str, context: Context, lowering: wb.Lowering) -> None:
    document = memory_document(context, "forward")
    before = lowering.plan.report["forward"].arena_sizes
    wanted = edit(document, **CHANGES[name])
    shown = preview(context, wanted)
    # Nothing was made by looking.
    assert lowering.plan.report["forward"].arena_sizes == before
    made = apply(context, wanted)
    report = lowering.plan.report["forward"]
    assert [arena.after for arena in shown.arenas] == [
        report.arena_sizes.get(arena.arena, 0) for arena in shown.arenas
    ]
    assert [arena.before for arena in shown.arenas] == [before.get(arena.arena, 0) for arena in shown.arenas]
    assert (shown.offset == made.offset).all()
    assert (shown.arena == made.arena).all()
    assert (shown.moved == made.moved).all()
    real = {item.name: (item.arena, item.offset) for item in report.tensors}
    for row, tensor in enumerate(document.name):
        assert (int(shown.arena[row]), int(shown.offset[row])) == real[tensor]
        place = (int(document.arena[row]), int(document.offset[row]))
        assert bool(shown.moved[row]) == (place != real[tensor])
    again = memory_document(context, "forward")
    assert again.choices == wanted.choices


def test_a_pin_is_kept_and_written_to_the_recipe(context: Context, lowering: wb.Lowering) -> None:
    network = build("dscnn")
    expected = lowering.run(*network.inputs).outputs[0]
    document = memory_document(context, "forward")
    apply(context, edit(document, pins={"relu_1": MemoryPin(1, 4096)}))
    placed = {item.name: item for item in lowering.plan.report["forward"].tensors}
    assert (placed["relu_1"].offset, placed["relu_1"].pinned) == (4096, True)
    assert lowering.recipe.memory.pins == {"relu_1": (1, 4096)}
    replayed = wb.lower(network.model, network.inputs, recipe=lowering.recipe, progress=False)
    assert replayed.plan.report["forward"].arena_sizes == lowering.plan.report["forward"].arena_sizes
    torch.testing.assert_close(lowering.run(*network.inputs).outputs[0], expected, rtol=0, atol=0)
    document = memory_document(context, "forward")
    assert document.pinned[list(document.name).index("relu_1")]
    apply(context, edit(document, pins={}))
    assert lowering.recipe.memory.pins == {}


def test_a_preview_of_a_file_says_what_our_planner_would_give(lowering: wb.Lowering) -> None:
    naive = lowering.relower(wb.Recipe(memory=wb.MemoryOptions(planner="naive")))
    context = Context(wb.open(naive.program.buffer))
    document = memory_document(context, "forward")
    shown = preview(context, edit(document, planner="best"))
    assert shown.before == naive.plan.report["forward"].size
    assert shown.after == lowering.plan.report["forward"].size
    assert shown.after < shown.before
    with pytest.raises(WorkbenchError, match="keeps its plan"):
        apply(context, edit(document, planner="best"))


def test_what_cannot_be_planned_raises_and_changes_nothing(context: Context, lowering: wb.Lowering) -> None:
    document = memory_document(context, "forward")
    plan = lowering.plan
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"arena_limits": {"1": 1000}}, MemoryPlanError, "does not fit arena 1"),
        ({"pins": {"relu": MemoryPin(1, 8)}}, MemoryPlanError, "no multiple of the alignment"),
        (
            {"pins": {"relu": MemoryPin(1, 0), "convolution": MemoryPin(1, 16)}},
            MemoryPlanError,
            "pins that overlap",
        ),
        ({"pins": {"nobody": MemoryPin(1, 0)}}, MemoryPlanError, "nobody"),
        ({"planner": "magic"}, MemoryPlanError, "no such planner"),
        ({"alignment": 24}, RecipeError, "power of two"),
        ({"pins": {"relu": MemoryPin(0, 0)}}, RecipeError, "out of range"),
    ]
    for changes, kind, message in wrong:
        for call in (preview, apply):
            with pytest.raises(kind, match=message):
                call(context, edit(document, **changes))
    assert lowering.plan is plan
    with pytest.raises(WorkbenchError, match="no such method"):
        memory_document(context, "backward")


def test_choices_as_python_make_the_same_options(context: Context, lowering: wb.Lowering) -> None:
    document = memory_document(context, "forward")
    assert python(context, edit(document)).text == "wb.MemoryOptions()"
    wanted = edit(
        document, planner="greedy", pins={"relu": MemoryPin(1, 64)}, arena_limits={"1": 1 << 20}, alignment=32
    )
    made = eval(python(context, wanted).text, {"wb": wb})
    apply(context, wanted)
    assert made == lowering.recipe.memory


def test_random_plans_of_many_buffers_are_previewed_without_overlap() -> None:
    network = build("lstm")
    context = Context(wb.lower(network.model, network.inputs, progress=False))
    document = memory_document(context, "forward")
    generator = np.random.default_rng(0)
    names = [document.name[row] for row in generator.choice(len(document.name), 3, replace=False).tolist()]
    choices = MemoryChoices("greedy", 32, pins={names[0]: MemoryPin(1, 1 << 20)}, arenas={names[1]: 2})
    shown = preview(context, MemoryEdit("forward", choices))
    assert (shown.offset % 32 == 0).all()
    assert set(np.unique(shown.arena).tolist()) == {1, 2}
    for arena in shown.arenas:
        for moment in range(0, document.moments, 37):
            alive = (document.first <= moment) & (moment <= document.last) & (shown.arena == arena.arena)
            rows = np.flatnonzero(alive & (document.bytes > 0))
            rows = rows[np.argsort(shown.offset[rows])]
            ends = shown.offset[rows] + document.bytes[rows]
            assert (shown.offset[rows][1:] >= ends[:-1]).all()
            assert (ends <= arena.after).all()


def test_picture_has_each_arena_and_the_largest_tensors(context: Context) -> None:
    shown = picture(context)
    assert shown.html.count("<svg") == 1
    assert "convolution_1" in shown.html
    assert "without sharing" in shown.text
    assert shown.text.splitlines()[1].split() == [
        *("tensor", "arena", "offset", "bytes", "first", "last", "at", "peak", "made", "by")
    ]


def test_widget_previews_and_plans_again(show: Any, lowering: wb.Lowering) -> None:
    page = show(lowering, "memory")
    assert set(page.widget.documents) == {"memory:forward"}
    choices = {"planner": "naive", "alignment": 16, "arena_limits": {}, "arenas": {}, "pins": {}}
    arguments = {"method": "forward", "choices": choices}
    reply, buffers = page.ask(call="memory.preview", arguments=arguments)
    assert "error" not in reply
    shown = unpack(buffers[0])
    assert shown["after"] > shown["before"]
    reply, _ = page.ask(call="memory.apply", arguments=arguments)
    assert "error" not in reply
    assert lowering.recipe.memory.planner == "naive"
    assert any("*" in content.get("changed", ()) for content, _ in page.sent)
    reply, _ = page.ask(
        call="memory.preview", arguments={"method": "forward", "choices": {**choices, "alignment": "x"}}
    )
    assert reply["error"]["kind"] == "SerializationError"


def test_pins_of_one_method_do_not_disturb_the_others() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(torch.relu(x)) + x

        def other(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cos(x) * x

    class Other(Two):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.other(x)

    example = (torch.randn(16),)
    programs = {
        "forward": torch.export.export(Two(), example),
        "other": torch.export.export(Other(), example),
    }
    lowering = wb.lower(programs, progress=False)
    context = Context(lowering)
    document = memory_document(context, "forward")
    wanted = edit(document, pins={"relu": MemoryPin(1, 256)})
    shown, made = preview(context, wanted), apply(context, wanted)
    assert (shown.offset == made.offset).all()
    other = memory_document(context, "other")
    assert not other.pinned.any()
    # What is chosen for one method is kept while another is looked at.
    assert not preview(context, MemoryEdit("other", other.choices)).moved.any()
    with pytest.raises(MemoryPlanError, match="nobody"):
        apply(context, edit(other, pins={"nobody": MemoryPin(1, 0)}))
