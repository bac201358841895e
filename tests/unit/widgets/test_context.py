"""What a widget is about: each kind of subject, its stages and methods, and who hears of changes."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.selection import Selection
from workbench_widgets.context import EVERYTHING, STAGES, Context, _family

# What every lowering has; the others only where the recipe asks for them.
ALWAYS = {name: entry for name, entry in STAGES.items() if name not in ("pruned", "quantized")}
DELEGATING = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")


def test_lowering_has_all_stages(lowering: wb.Lowering) -> None:
    about = Context(lowering).about("panel")
    assert [stage.name for stage in about.stages] == [*ALWAYS, "run"]
    assert about.stage == "exported"
    assert about.methods == ["forward"]
    assert about.can_lower
    assert about.can_run
    details = {stage.name: stage.detail for stage in about.stages}
    assert details["exported"].endswith(" nodes")
    assert details["partitioned"] == "0 partitions"
    assert details["planned"] == f"{lowering.plan.report.methods['forward'].size} B"
    assert details["program"] == f"{len(lowering.program.buffer) / 1024:.3g} KiB"
    assert all(stage.seconds is not None for stage in about.stages if stage.name != "run")
    assert about.title == f"Lowering of forward: {len(lowering.program.buffer):,} bytes"


@pytest.mark.parametrize(("name", "attribute"), [(name, entry[0]) for name, entry in ALWAYS.items()])
def test_stage_of_a_lowering_knows_the_others(lowering: wb.Lowering, name: str, attribute: str) -> None:
    context = Context(getattr(lowering, attribute))
    assert context.shown == name
    assert context.lowering is lowering
    assert context.stage(name) is getattr(lowering, attribute)
    assert context.selection is lowering.selection


def test_pruners_and_a_quantizer_add_their_stages(lowering: wb.Lowering) -> None:
    recipe = wb.Recipe(
        pruning=wb.StructuredPruner(0.25),
        quantizer=wb.XNNPACKQuantizer().set_global(wb.get_symmetric_quantization_config(is_dynamic=True)),
    )
    context = Context(lowering.relower(recipe, progress=False))
    assert context.stages == [*STAGES, "run"]
    entries = {stage.name: stage for stage in context.about("panel").stages}
    assert entries["pruned"].detail.endswith(" nodes")
    assert entries["quantized"].detail.endswith(" operators")
    assert context.node_count() > Context(lowering).node_count()
    for name in ("pruned", "quantized"):
        assert context.has_stage(name) and not Context(lowering).has_stage(name)
        assert Context(context.stage(name)).shown == name


def test_stage_that_outlived_its_lowering_stands_alone(lowering: wb.Lowering) -> None:
    before = lowering.partitioned
    lowering.update(DELEGATING)
    context = Context(before)
    assert context.lowering is None
    assert context.stages == ["partitioned"]
    assert context.stage("partitioned") is before
    assert context.methods == ["forward"]
    about = context.about("graph")
    assert (about.can_lower, about.can_run) == (False, False)
    with pytest.raises(WorkbenchError, match="no such stage"):
        context.stage("edge")
    with pytest.raises(WorkbenchError, match="nothing to lower"):
        context.update(DELEGATING)
    with pytest.raises(WorkbenchError, match="no program yet"):
        _ = context.program


def test_run_is_shown_with_what_was_run(lowering: wb.Lowering) -> None:
    run = lowering.run(*lowering.example_inputs(), profile=True)
    context = Context(run)
    assert context.shown == "run"
    assert context.run is run
    assert context.lowering is lowering
    entry = context.about("profile").stages[-1]
    assert entry.name == "run"
    assert entry.detail.endswith((" ms", " s"))


def test_run_that_recorded_nothing_says_so(lowering: wb.Lowering) -> None:
    run = lowering.run(*lowering.example_inputs())
    assert Context(run).about("profile").stages[-1].detail == "not measured"


def test_opened_program_has_program_and_run(lowering: wb.Lowering, tmp_path: Path) -> None:
    lowering.save(tmp_path / "net.pte")
    opened = wb.open(tmp_path / "net.pte")
    context = Context(opened)
    assert context.stages == ["program", "run"]
    assert context.shown == "program"
    assert context.methods == ["forward"]
    assert context.program is opened.program
    about = context.about("program")
    assert (about.can_lower, about.can_run) == (False, True)
    assert [input.shape for input in context.example_inputs("forward")] == [(3, 4)]
    assert context.node_count() == len(opened.instructions)
    with pytest.raises(WorkbenchError, match="no such stage"):
        context.stage("edge")


def test_comparison_is_about_its_first_side(lowering: wb.Lowering) -> None:
    comparison = wb.compare(lowering, lowering.relower(DELEGATING))
    context = Context(comparison)
    assert context.shown == "compare"
    assert context.comparison is comparison
    assert context.lowering is lowering


@pytest.mark.parametrize("subject", [None, 3, "text", object()])
def test_other_objects_have_no_view(subject: Any) -> None:
    with pytest.raises(WorkbenchError, match="no view of this object"):
        Context(subject)


def test_family_of_a_selection_that_is_gone_is_not_given_again() -> None:
    """Pages keep what they know of a family, and Python gives the same address to the next object."""
    families, addresses = set(), set()
    for _ in range(50):
        selection = Selection()
        families.add(_family(selection))
        addresses.add(id(selection))
        del selection
    assert len(families) == 50
    assert len(addresses) < 50, "no address was used again: the test shows nothing"


def test_family_is_the_same_for_lowerings_of_one_capture(lowering: wb.Lowering) -> None:
    other = lowering.relower(DELEGATING)
    assert Context(lowering).about("graph").family == Context(other).about("graph").family
    assert Context(lowering).about("graph").family == Context(lowering.edge).about("memory").family


def test_context_begins_with_another_stage(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    other = context.at("planned")
    assert (context.shown, other.shown) == ("exported", "planned")
    assert other.lowering is lowering
    with pytest.raises(WorkbenchError, match="no such stage"):
        context.at("quantized")


def test_lowering_again_makes_everything_stale(lowering: wb.Lowering) -> None:
    context = Context(lowering, run=lowering.run(*lowering.example_inputs(), profile=True))
    heard: list[frozenset[str]] = []
    context.connect(heard.append, lambda *_: None)
    context.update(DELEGATING)
    assert heard == [frozenset({EVERYTHING})]
    assert context.run is None  # it was of the program before
    assert lowering.recipe == DELEGATING
    ran = {stage.name: stage.seconds is not None for stage in context.about("panel").stages}
    assert not ran["exported"]
    assert not ran["edge"]
    assert ran["partitioned"]
    assert ran["program"]


def test_recipe_that_fails_changes_nothing(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    heard: list[frozenset[str]] = []
    context.connect(heard.append, lambda *_: None)
    before = lowering.partitioned
    with pytest.raises(WorkbenchError):
        context.update(wb.Recipe(partitioner="workbench.backends.demo:NoSuchPartitioner"))
    assert heard == []
    assert lowering.partitioned is before


def test_listeners_end(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    heard: list[Any] = []
    end = context.connect(heard.append, lambda name, data: heard.append((name, data)))
    context.changed("graph")
    context.emit("profile.batch", 1)
    assert heard == [frozenset({"graph"}), ("profile.batch", 1)]
    end()
    end()
    context.changed("graph")
    context.emit("profile.batch", 2)
    assert len(heard) == 2


def test_new_run_is_told(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    heard: list[frozenset[str]] = []
    context.connect(heard.append, lambda *_: None)
    context.set_run(lowering.run(*lowering.example_inputs(), profile=True))
    assert {"about", "profile", "overlays"} <= heard[0]
    assert EVERYTHING not in heard[0]
    assert context.about("panel").stages[-1].detail


def test_state_is_made_once_a_widget(lowering: wb.Lowering) -> None:
    made: list[Context] = []

    def make(context: Context) -> list[int]:
        made.append(context)
        return []

    one, other = Context(lowering), Context(lowering)
    assert one.state(make) is one.state(make)
    assert other.state(make) is not one.state(make)
    assert made == [one, other]


def test_closed_context_hears_nothing_and_is_let_go(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    heard: list[Any] = []
    context.connect(heard.append, lambda *_: None)
    context.close()
    context.close()
    lowering.update(DELEGATING)
    assert heard == []
    gone = weakref.ref(context)
    del context
    gc.collect()
    assert gone() is None
