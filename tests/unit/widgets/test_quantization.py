"""The quantization view: documents against the reports, measuring, the switch of a layer, its history."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import QuantizationError, RecipeError, WorkbenchError
from workbench.quantization import (
    QuantizationConfig,
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
    pt2e,
)
from workbench.quantization.accuracy import accuracy
from workbench_widgets.context import Context
from workbench_widgets.graph.overlays import overlay_document
from workbench_widgets.pack import pack, unpack
from workbench_widgets.panel.document import first_documents, report_documents
from workbench_widgets.quantization.choices import choice_of, edit_of
from workbench_widgets.quantization.contract import (
    QuantizationDocument,
    QuantizationEdit,
    QuantizationMeasure,
    QuantizationMove,
    QuantizationOutcome,
    QuantizationProgress,
)
from workbench_widgets.quantization.document import quantization_document
from workbench_widgets.quantization.editor import edit, move
from workbench_widgets.quantization.history import Action, History
from workbench_widgets.quantization.measure import accuracy_document, measure
from workbench_widgets.quantization.picture import picture
from workbench_widgets.quantization.pooled import BINS, CHANNELS, channels_of, histogram_of
from workbench_widgets.report import write
from workbench_widgets.view import all_views, find

# The package has a function of the same name.
measuring = sys.modules["workbench_widgets.quantization.measure"]


class Net(nn.Module):
    """Two layers, one of them with a channel far wider than the others, and an operator without integers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x))
        return torch.softmax(self.head(y.flatten(1)), -1)


def samples() -> list[tuple[torch.Tensor]]:
    torch.manual_seed(1)
    made = [(torch.randn(1, 1, 4, 4),) for _ in range(3)]
    made[1][0][0, 0, 1, 1] = 30.0
    return made


def lower(**options: Any) -> wb.Lowering:
    torch.manual_seed(0)
    model = Net().eval()
    with torch.no_grad():
        model.conv.weight[2] *= 20
    config = get_symmetric_quantization_config(
        is_per_channel=True, observer="percentile", observer_options={"percentile": 97.0}
    )
    given = {"quantizer": XNNPACKQuantizer().set_global(config), "calibration": samples()}
    return wb.lower(model, samples()[0], recipe=wb.Recipe(**{**given, **options}), progress=False)


@pytest.fixture(scope="module")
def lowered() -> wb.Lowering:
    return lower()


@pytest.fixture
def lowering(lowered: wb.Lowering, monkeypatch: pytest.MonkeyPatch) -> wb.Lowering:
    monkeypatch.setattr(measuring, "_known", WeakKeyDictionary())  # the stages are those of all tests
    return wb.Lowering(lowered._result, lowered.seconds["export"])


@pytest.fixture
def context(lowering: wb.Lowering) -> Context:
    return Context(lowering)


def layer(node: str, dtype: str = "", observer: str = "", granularity: str = "") -> QuantizationEdit:
    return QuantizationEdit("forward", node, "", dtype, observer, granularity)


def row_of(document: QuantizationDocument, name: str) -> int:
    return list(document.node).index(name)


def edits(context: Context) -> list[dict[str, Any]]:
    assert context.lowering is not None
    return [dict(item.data) for item in context.lowering.recipe.edits_of("prepare")]


# ---- stages ------------------------------------------------------------------------------------------------


def test_stage_stands_in_the_bar_where_there_is_a_quantizer(context: Context, lowering: wb.Lowering) -> None:
    entry = next(stage for stage in context.about("panel").stages if stage.name == "quantized")
    assert entry.title == "Quantized"
    assert re.fullmatch(r"\d+ of \d+ operators", entry.detail)
    steps = [lowering.seconds[name] for name in ("prepare", "calibrate", "quantize")]
    assert entry.seconds == pytest.approx(sum(steps))
    lowering.update(lowering.recipe.replace(quantizer=None, calibration=None), progress=False)
    assert "quantized" not in context.stages
    with pytest.raises(WorkbenchError, match="no such stage"):
        context.stage("quantized")


@pytest.mark.parametrize("name", ["prepared", "calibrated", "quantized"])
def test_each_stage_of_quantization_shows_the_view(lowering: wb.Lowering, name: str) -> None:
    context = Context(getattr(lowering, name))
    assert context.shown == "quantized"
    assert find(context.shown).name == "quantization"
    assert context.stage("quantized") is lowering.quantized
    kinds = list(all_views()["quantization"].initial(context))
    assert kinds == [("quantization", "forward"), ("quantization.accuracy", "forward")]


@pytest.mark.parametrize("name", ["prepared", "calibrated"])
def test_stage_that_outlived_its_lowering_is_shown_but_not_edited(name: str, lowering: wb.Lowering) -> None:
    stage = getattr(lowering, name)
    lowering.update(lowering.recipe.replace(quantizer=None, calibration=None), progress=False)
    context = Context(stage)
    document = quantization_document(context, "forward")
    assert (document.editable, document.stage) == (False, name)
    assert "conv2d" in list(document.node)
    assert math.isnan(document.observers.clipped[0]) == (name == "prepared")
    assert not accuracy_document(context, "forward").measured
    assert pack(document)
    with pytest.raises(QuantizationError, match="no lowering"):
        edit(context, layer("conv2d", "float"))
    if name == "prepared":
        with pytest.raises(QuantizationError, match="not calibrated"):
            measure(context, QuantizationMeasure("forward", 0))


# ---- documents ---------------------------------------------------------------------------------------------


def test_document_agrees_with_the_report(context: Context, lowering: wb.Lowering) -> None:
    document = quantization_document(context, "forward")
    report = lowering.calibrated.report
    assert list(document.node) == list(report["node"])
    assert list(document.state) == list(report["state"])  # no partitioner was asked
    assert list(document.why) == list(report["why"])
    starts, handles = document.handle_start, document.handles
    found = [tuple(handles[starts[row] : starts[row + 1]].tolist()) for row in range(len(document.node))]
    assert found == list(report["handles"])
    softmax = row_of(document, "softmax")
    assert document.state[softmax] == "float" and document.why[softmax]
    assert document.observer[softmax] == -1
    assert (document.samples, document.by, document.editable) == (3, "XNNPACKQuantizer", True)


def test_observers_agree_with_their_report(context: Context, lowering: wb.Lowering) -> None:
    seen = quantization_document(context, "forward").observers
    report = lowering.calibrated.observers.set_index("name")
    assert set(seen.name) == set(report.index)
    for at, name in enumerate(seen.name):
        row = report.loc[name]
        for field in ("min", "max", "low", "high", "clipped"):
            assert getattr(seen, field)[at] == row[field]
        assert seen.scales[at] == np.size(row["scale"])
        assert seen.scale[at] == np.max(row["scale"])
        counts = seen.counts[seen.bins_start[at] : seen.bins_start[at + 1]]
        assert counts.sum() == row["elements"] and len(counts) <= BINS
        assert seen.bins_low[at] <= row["min"] and row["max"] <= seen.bins_high[at] * (1 + 1e-6) + 1e-6
    clipping = list(seen.values).index("x")
    assert seen.clipped[clipping] > 0 and seen.kind[clipping] == "percentile"


def test_wide_channel_of_a_weight_is_the_worst_one(context: Context) -> None:
    document = quantization_document(context, "forward")
    seen = document.observers
    start = document.use_start[row_of(document, "conv2d")]
    weight = int(document.use[start])
    assert document.role[start].startswith("weight")
    assert (seen.per_channel[weight], seen.channels[weight], seen.worst[weight]) == (1, 4, 2)
    assert "times the median" in seen.worst_why[weight]
    place = seen.channel_start[weight] + 2
    assert seen.channel_scale[place] == pytest.approx(seen.scale[weight])


def test_result_and_inputs_are_among_the_observers_of_an_operator(context: Context) -> None:
    document = quantization_document(context, "forward")
    uses = {
        name: [document.role[at] for at in range(document.use_start[row], document.use_start[row + 1])]
        for row, name in enumerate(document.node)
    }
    assert [role.partition(" ")[0] for role in uses["conv2d"]] == ["weight", "input"]
    assert uses["relu"] == ["result"]
    assert "result" in uses["linear"] and "input flatten" in uses["linear"]
    assert uses["softmax"] == []


def test_backend_that_leaves_an_operator_says_why() -> None:
    context = Context(lower(partitioner="workbench.backends.demo:AddMulPartitionerDemo"))
    document = quantization_document(context, "forward")
    assert document.backend == "AddMulPartitionerDemo"
    row = row_of(document, "conv2d")
    assert document.state[row] == "quantized, not fused"
    assert document.backend_why[row]
    assert document.state[row_of(document, "softmax")] == "float"


def test_documents_travel_and_come_back(context: Context) -> None:
    document = quantization_document(context, "forward")
    back = unpack(pack(document))
    assert back["node"] == document.node
    assert np.array_equal(back["observers"]["counts"], document.observers.counts)
    assert pack(accuracy_document(context, "forward"))
    with pytest.raises(WorkbenchError, match="no such method"):
        quantization_document(context, "nothing")


class _Seen:
    def __init__(self, counts: Any, low: float, high: float) -> None:
        self.counts, self.edges = counts, np.linspace(low, high, len(counts) + 1)


def test_histogram_is_pooled_without_losing_a_count() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(2048, np.int64)
    counts[100:1900] = rng.integers(0, 9, 1800)
    counts[[100, 1899]] = 1
    made = histogram_of(_Seen(counts, -8, 8))
    assert len(made.counts) <= BINS and made.counts.sum() == counts.sum()
    width = 16 / 2048
    assert made.low == pytest.approx(-8 + 100 * width)
    assert made.high >= -8 + 1900 * width - 1e-9
    # Each pooled bin has the counts of the bins that it covers.
    factor = -(-1800 // BINS)
    assert made.counts[3] == counts[100 + 3 * factor : 100 + 4 * factor].sum()
    assert not len(histogram_of(_Seen(np.zeros(8), 0, 1)).counts)
    assert not len(histogram_of(None).counts)


def test_very_many_channels_are_pooled_with_their_extremes() -> None:
    low = -np.linspace(1, 2, 5000)
    high = np.linspace(1, 2, 5000)
    high[4321] = 99

    class Report:
        channel_min, channel_max, scale = low, high, high / 127

    made = channels_of(Report)
    assert len(made.low) <= CHANNELS and made.count == 5000
    step = -(-5000 // CHANNELS)
    assert made.worst == 4321 // step and made.high[made.worst] == 99
    assert made.low.min() == low.min()
    Report.scale = np.array([0.1])
    high[:] = 5.0
    high[77] = low[77] + 0.05
    made = channels_of(Report)
    assert not made.own and made.worst == 77 // step and "1.5 integers" in made.why


# ---- accuracy ----------------------------------------------------------------------------------------------


def test_nothing_is_measured_before_it_is_asked(context: Context) -> None:
    document = accuracy_document(context, "forward")
    assert not document.measured and len(document.own) == 0
    assert document.available == 3
    titles = {column.name for column in overlay_document(context, "quantized/forward").columns}
    assert not any(name.startswith("quantization") for name in titles)


def test_measured_errors_are_those_of_the_accuracy_report(context: Context, lowering: wb.Lowering) -> None:
    told: list[Any] = []
    context.connect(lambda kinds: told.append(kinds), lambda name, data: told.append((name, data)))
    document = measure(context, QuantizationMeasure("forward", 0))
    expected = accuracy(lowering, samples(), progress=False)
    table = expected.table.set_index("node")
    names = list(quantization_document(context, "forward").node)
    for column, field in (("own", "own_db"), ("inherited", "inherited_db"), ("total", "sqnr_db")):
        wanted = [table[field].get(name, math.nan) for name in names]
        np.testing.assert_array_equal(getattr(document, column), wanted)
    assert document.sqnr_db == expected.sqnr_db and document.samples == 3
    progress = [data for name, data in told if name == "quantization.progress"]
    assert progress == [QuantizationProgress("forward", done, 3) for done in (1, 2, 3)]
    assert frozenset({"quantization.accuracy", "overlays"}) in told
    graph = overlay_document(context, "quantized/forward")
    own = next(column for column in graph.columns if column.name == "quantization_own")
    assert np.nanmin(own.values) == np.nanmin(document.own)
    assert not any(
        column.name.startswith("quantization") for column in overlay_document(context, "edge/forward").columns
    )


def test_fewer_samples_are_taken_where_asked(context: Context) -> None:
    assert measure(context, QuantizationMeasure("forward", 2)).samples == 2


def test_example_inputs_stand_in_for_calibration_data() -> None:
    with pytest.warns(UserWarning, match="one sample"):
        context = Context(lower(calibration=None))
    document = measure(context, QuantizationMeasure("forward", 0))
    assert (document.samples, document.available) == (1, 1)


# ---- the switch --------------------------------------------------------------------------------------------


def test_layer_is_kept_in_floats_and_given_back(context: Context, lowering: wb.Lowering) -> None:
    before = lowering.quantized.fingerprint
    outcome = edit(context, layer("linear", "float"))
    assert outcome.text == "linear: float"
    assert {"prepare", "quantize", "program"} <= set(outcome.ran) and not outcome.measured
    assert outcome.bytes_after > outcome.bytes_before
    assert edits(context) == [{"config": None, "node": "linear"}]
    document = quantization_document(context, "forward")
    row = row_of(document, "linear")
    assert (document.state[row], document.edited[row]) == ("float", 1)
    assert document.choices[document.choice[row]].dtype == "float"
    outcome = edit(context, layer("linear"))
    assert edits(context) == [] and lowering.quantized.fingerprint == before
    assert outcome.text == "linear: as the quantizer has it"


def test_edit_says_only_what_differs_from_the_quantizer(context: Context) -> None:
    edit(context, layer("linear", "int8", "mse", "channel"))
    assert edits(context) == [{"config": {"observer": "mse", "observer_options": {}}, "node": "linear"}]
    edit(context, layer("linear", "int8 weights", "", "tensor"))
    assert edits(context) == [{"config": {"weights_only": True, "is_per_channel": False}, "node": "linear"}]
    document = quantization_document(context, "forward")
    chosen = document.choices[document.choice[row_of(document, "linear")]]
    assert (chosen.dtype, chosen.observer, chosen.granularity) == ("int8 weights", "", "tensor")
    edit(context, layer("linear", "int8", "percentile", "channel"))
    assert edits(context) == []


def test_module_is_decided_about_as_a_whole(context: Context) -> None:
    edit(context, QuantizationEdit("forward", "", "head", "float", "", ""))
    assert edits(context) == [{"config": None, "module": "head"}]
    document = quantization_document(context, "forward")
    assert document.state[row_of(document, "linear")] == "float"
    assert document.edited[row_of(document, "linear")] == 1
    assert document.edited[row_of(document, "conv2d")] == 0
    assert document.history[0].text == "module head: float"


def test_only_what_depends_on_an_edit_is_measured_again(context: Context, lowering: wb.Lowering) -> None:
    first = measure(context, QuantizationMeasure("forward", 0))
    assert first.affected == len(first.own)
    outcome = edit(context, layer("linear", "float"))
    assert outcome.measured and 0 < outcome.affected < outcome.operators
    assert outcome.sqnr_before == first.sqnr_db
    document = accuracy_document(context, "forward")
    # All numbers are those of a fresh measurement, also of what was kept.
    table = accuracy(lowering, samples(), progress=False).table.set_index("node")
    names = list(quantization_document(context, "forward").node)
    for column, field in (("own", "own_db"), ("inherited", "inherited_db"), ("total", "sqnr_db")):
        wanted = [table[field].get(name, math.nan) for name in names]
        np.testing.assert_array_equal(getattr(document, column), wanted)
    assert outcome.sqnr_after == document.sqnr_db


def test_layer_that_stays_in_floats_all_the_same_is_told(context: Context) -> None:
    outcome = edit(context, layer("linear", "int4", "", "48"))
    document = quantization_document(context, "forward")
    why = document.why[row_of(document, "linear")]
    assert why and outcome.text.endswith(f"but it stays in floats: {why}")


def test_groups_of_few_bits_are_written_as_such() -> None:
    base = get_symmetric_quantization_config(is_per_channel=True)
    made = edit_of(layer("linear", "int4 dynamic", "", "32"), base)
    assert made is not None
    config = {"weight_bits": 4, "is_dynamic": True, "group_size": 32}
    assert made.data == {"config": config, "node": "linear"}
    wanted = choice_of(QuantizationConfig.from_data({**base.to_data(), **config}))
    assert (wanted.dtype, wanted.granularity) == ("int4 dynamic", "32")
    assert edit_of(layer("linear", wanted.dtype, "", "32"), QuantizationConfig.from_data(config)) is None


def test_edit_that_can_not_be_lowered_changes_nothing(context: Context, lowering: wb.Lowering) -> None:
    before = lowering.program.buffer
    with pytest.raises(RecipeError, match="not there"):
        edit(context, QuantizationEdit("forward", "", "nothing", "float", "", ""))
    assert edits(context) == [] and lowering.program.buffer == before
    assert quantization_document(context, "forward").undo == ""
    with pytest.raises(RecipeError, match="no such type"):
        edit(context, layer("linear", "int3"))
    with pytest.raises(RecipeError, match="no such scales"):
        edit(context, layer("linear", "int8", "", "row"))
    with pytest.raises(QuantizationError, match="no such layer"):
        edit(context, layer("nothing", "float"))
    with pytest.raises(QuantizationError, match="a layer or a module"):
        edit(context, layer("", "float"))


def step(context: Context, what: Any, index: int = -1) -> QuantizationOutcome:
    return move(context, QuantizationMove("forward", what, index))


def test_history_goes_back_and_forth(context: Context) -> None:
    edit(context, layer("linear", "float"))
    made = edits(context)
    assert step(context, "undo").text == "Undone: linear: float" and edits(context) == []
    document = quantization_document(context, "forward")
    assert (document.undo, document.redo) == ("", "linear: float")
    assert step(context, "undo").text == "There is nothing to undo."
    assert step(context, "redo").text == "Redone: linear: float" and edits(context) == made
    with pytest.raises(QuantizationError, match="no such edit"):
        step(context, "remove", 3)
    assert step(context, "remove", 0).text == "without linear: float" and edits(context) == []
    assert quantization_document(context, "forward").undo == "without linear: float"


def test_history_forgets_what_was_undone_when_something_new_is_done(context: Context) -> None:
    assert context.lowering is not None
    history, one, other = History(context), ("one",), ("other",)
    now: list[tuple[Any, ...]] = [()]
    history.now = lambda method: now[-1]  # type: ignore[method-assign]
    history.did("forward", Action("a", (), one))  # type: ignore[arg-type]
    now.append(one)
    assert (history.undo_title("forward"), history.redo_title("forward")) == ("a", "")
    history.undid("forward")
    now.append(())
    assert (history.undo_title("forward"), history.redo_title("forward")) == ("", "a")
    history.did("forward", Action("b", (), other))  # type: ignore[arg-type]
    now.append(other)
    assert (history.undo_title("forward"), history.redo_title("forward")) == ("b", "")
    assert history.undo_title("another") == ""


def test_undo_leaves_alone_what_others_decided_since(context: Context, lowering: wb.Lowering) -> None:
    edit(context, layer("linear", "float"))
    theirs = wb.Edit("prepare", {"config": None, "node": "conv2d"})
    lowering.update(lowering.recipe.replace(edits=[theirs]), progress=False)
    assert quantization_document(context, "forward").undo == ""
    assert step(context, "undo").text == "There is nothing to undo."
    assert edits(context) == [dict(theirs.data)]


def test_code_replays(context: Context, lowered: wb.Lowering) -> None:
    edit(context, layer("linear", "float"))
    edit(context, layer("conv2d", "int8", "mse", "channel"))
    assert context.lowering is not None
    other = wb.Lowering(lowered._result, lowered.seconds["export"])
    exec(quantization_document(context, "forward").python, {"lowering": other})
    assert other.recipe.edits == context.lowering.recipe.edits
    assert other.program.buffer == context.lowering.program.buffer


class Foreign(pt2e.Quantizer):
    """Somebody's quantizer, which knows nothing of configs by node."""

    def annotate(self, model: Any) -> Any:
        config = get_symmetric_quantization_config()
        for node in model.graph.nodes:
            if node.target is torch.ops.aten.linear.default:
                node.meta[pt2e.ANNOTATION_KEY] = pt2e.QuantizationAnnotation(
                    input_qspec_map={node.args[0]: config.input_activation, node.args[1]: config.weight},
                    output_qspec=config.output_activation,
                    _annotated=True,
                )
        return model

    def validate(self, model: Any) -> None:
        pass


def test_foreign_quantizer_can_only_keep_layers_in_floats() -> None:
    context = Context(lower(quantizer=Foreign()))
    document = quantization_document(context, "forward")
    assert not document.configurable and document.by == "Foreign"
    assert document.state[row_of(document, "linear")] == "quantized"
    edit(context, layer("linear", "float"))
    document = quantization_document(context, "forward")
    assert document.state[row_of(document, "linear")] == "float"
    with pytest.raises(RecipeError, match="can't be told"):
        edit(context, layer("linear", "int8", "mse"))


# ---- elsewhere ---------------------------------------------------------------------------------------------


def test_picture_has_histograms_and_tables(context: Context) -> None:
    made = picture(context)
    assert made.html.count("<svg") > 1 and "clipped" in made.html
    assert "softmax" in made.text and "of 5 operators" in made.text
    measure(context, QuantizationMeasure("forward", 0))
    assert "against floats" in picture(context).text


def test_report_and_panel_hold_the_documents(context: Context, lowering: wb.Lowering, bundles: None) -> None:
    own = [("quantization", "forward"), ("quantization.accuracy", "forward")]
    wanted = {*own, ("graph", "quantized/forward")}
    assert wanted <= set(first_documents(context))
    assert {*wanted, ("overlays", "quantized/forward")} <= set(report_documents(context))
    page = write(lowering)
    assert 'data-document="quantization:forward"' in page
    assert "of 5 operators" in picture(context).html


def test_calls_are_answered_by_the_widget(lowering: wb.Lowering, show: Any) -> None:
    page = show(lowering, "quantization")
    assert {"quantization:forward", "quantization.accuracy:forward"} == set(page.widget.documents)
    header, buffers = page.ask(call="quantization.measure", arguments={"method": "forward", "samples": 1})
    assert "error" not in header and unpack(buffers[0])["samples"] == 1
    assert any(content.get("event") == "quantization.progress" for content, _ in page.sent)
    header, _ = page.ask(
        call="quantization.edit",
        arguments=dataclasses.asdict(QuantizationEdit("forward", "", "nothing", "float", "", "")),
    )
    assert "not there" in header["error"]["message"]
