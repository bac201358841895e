"""What the graph view says about a node, and the numbers that it colours by."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.errors import WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.graph.contract import GraphDetails, GraphRow
from workbench_widgets.graph.details import graph_details
from workbench_widgets.graph.document import graph_document
from workbench_widgets.graph.overlays import overlay_document
from workbench_widgets.pack import pack

INPUT = torch.linspace(-1, 1, 12).reshape(3, 4)


def details(context: Context, stage: str, name: str) -> GraphDetails:
    document = graph_document(context, f"{stage}/forward")
    made = graph_details(context, GraphRow(stage, "forward", list(document.name).index(name)))
    pack(made)  # holds every field against the contract
    return made


def test_tensors_have_shapes_strides_and_dim_order() -> None:
    model = nn.Conv2d(3, 4, 3).eval().to(memory_format=torch.channels_last)
    inputs = torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last)
    context = Context(wb.lower(model, (inputs,), progress=False))
    known = details(context, "exported", "conv2d")
    x = next(tensor for tensor in known.inputs if "input" in tensor.name)
    assert (x.shape, x.dtype, x.strides) == ("(1, 3, 8, 8)", "float32", "(192, 1, 24, 3)")
    assert x.dim_order == "(0, 2, 3, 1)"
    assert x.bytes == 1 * 3 * 8 * 8 * 4
    assert [tensor.shape for tensor in known.outputs] == ["(1, 4, 6, 6)"]
    assert {argument.name for argument in known.arguments} >= {"input", "weight", "bias", "stride"}


def test_the_source_comes_with_its_lines(lowering: wb.Lowering) -> None:
    known = details(Context(lowering), "exported", "relu")
    file, _, number = known.source.rpartition(":")
    assert file.endswith("conftest.py")
    line = next(line for line in known.code if line.number == int(number))
    assert "torch.relu(self.first(x))" in line.text


def test_provenance_leads_through_all_stages(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    known = details(context, "exported", "linear")
    assert [origin.name for origin in known.origins] == ["linear"]
    stages = {entry.stage: entry for entry in known.stages}
    assert list(stages) == ["exported", "edge", "partitioned", "lowered", "planned", "program"]
    assert "addmm" in stages["edge"].names
    edge = graph_document(context, "edge/forward")
    assert [edge.name[row] for row in stages["edge"].rows] == stages["edge"].names
    program = stages["program"]
    assert any("addmm" in op for op in program.ops)


def test_reasons_stand_with_the_node_that_is_left() -> None:
    recipe = wb.Recipe(partitioner=AddMulPartitionerDemo())
    lowered = wb.lower(
        nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), (INPUT,), recipe=recipe, progress=False
    )
    reason = lowered.partitioned.reasons["forward"][0]
    known = details(Context(lowered), "partitioned", reason.node)
    assert any(reason.reason in text for text in known.why_not)


def test_instructions_have_values_and_places(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    document = graph_document(context, "program/forward")
    row = int(np.nonzero(document.instruction == 0)[0][0])
    known = graph_details(context, GraphRow("program", "forward", row))
    pack(known)
    assert known.metadata["instruction"] == "0"
    assert known.outputs[0].shape == document.shape[row]
    assert "arena" in known.outputs[0].name
    assert known.origins


def test_a_row_that_is_not_there_is_refused(lowering: wb.Lowering) -> None:
    with pytest.raises(WorkbenchError, match="no such row"):
        graph_details(Context(lowering), GraphRow("edge", "forward", 10_000))


# ---- overlays ----------------------------------------------------------------------------------------------


def columns(context: Context, stage: str) -> dict[str, np.ndarray]:
    made = overlay_document(context, f"{stage}/forward")
    pack(made)
    return {column.name: column.values for column in made.columns}


def test_bytes_and_operations_are_always_there(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    document = graph_document(context, "exported/forward")
    found = columns(context, "exported")
    assert set(found) == {"output_bytes", "weight_bytes", "flops"}
    linear = list(document.name).index("linear")
    assert found["flops"][linear] == 2 * 3 * 4 * 8 + 3 * 8
    assert found["output_bytes"][linear] == 3 * 8 * 4
    weight = list(document.name).index("p_first_weight")
    assert found["weight_bytes"][weight] == 4 * 8 * 4
    assert math.isnan(found["output_bytes"][weight])


@pytest.mark.parametrize("stage", ["exported", "edge", "planned", "program"])
def test_times_add_up_to_those_of_the_run(lowering: wb.Lowering, stage: str) -> None:
    run = lowering.run(INPUT, profile=True, repeat=3)
    context = Context(lowering, run=run)
    found = columns(context, stage)
    wanted = sum(
        event.perf_data.p50
        for event in run.events_of("forward")
        if event.perf_data and event.instruction >= 0
    )
    assert np.nansum(found["time"]) == pytest.approx(wanted)
    assert np.nansum(found["share"]) == pytest.approx(1)


def test_times_stand_with_the_right_instruction(lowering: wb.Lowering) -> None:
    run = lowering.run(INPUT, profile=True, repeat=3)
    context = Context(lowering, run=run)
    document = graph_document(context, "program/forward")
    found = columns(context, "program")["time"]
    for event in run.events_of("forward"):
        if event.perf_data and event.instruction >= 0:
            row = int(np.nonzero(document.instruction == event.instruction)[0][0])
            assert found[row] == pytest.approx(event.perf_data.p50)


def test_a_delegates_time_stands_with_its_call() -> None:
    recipe = wb.Recipe(partitioner=AddMulPartitionerDemo())

    class Sums(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.sin((x + y) * y)

    inputs = torch.randn(3), torch.randn(3)
    lowered = wb.lower(Sums().eval(), inputs, recipe=recipe, progress=False)
    run = lowered.run(*inputs, profile=True)
    context = Context(lowered, run=run)
    document = graph_document(context, "lowered/forward")
    found = columns(context, "lowered")["time"]
    inside = [
        row
        for row in range(len(document.name))
        if document.module_kind[int(document.module[row])] == "delegate"
    ]
    assert sum(found[row] for row in inside if not math.isnan(found[row])) > 0
    total = sum(
        e.perf_data.p50
        for e in run.events_of("forward")
        if e.perf_data and e.delegate_debug_identifier is None and e.instruction >= 0
    )
    assert np.nansum(found) == pytest.approx(total)


@pytest.mark.parametrize("stage", ["exported", "edge", "program"])
def test_recorded_values_give_the_error(lowering: wb.Lowering, stage: str) -> None:
    run = lowering.run(INPUT, values=True)
    context = Context(lowering, run=run)
    found = columns(context, stage)
    known = found["sqnr"][~np.isnan(found["sqnr"])]
    assert len(known) >= 4
    assert (known > 60).all()


def test_another_methods_run_is_not_shown(lowering: wb.Lowering) -> None:
    run = lowering.run(INPUT, profile=True)
    run.method = "other"
    assert "time" not in columns(Context(lowering, run=run), "edge")


def test_a_run_of_another_program_is_not_shown(lowering: wb.Lowering, lowered: wb.Lowering) -> None:
    run = lowered.run(INPUT, profile=True)
    assert "time" in columns(Context(lowered, run=run), "edge")
    assert "time" not in columns(Context(lowering, run=run), "edge")


def test_an_opened_program_has_times(lowering: wb.Lowering) -> None:
    opened = wb.open(lowering.program.buffer)
    run = opened.run(INPUT, profile=True)
    found = columns(Context(opened, run=run), "program")
    assert np.nansum(found["time"]) > 0
    assert "flops" not in found


def test_methods_have_documents_of_their_own() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    x = torch.randn(2, 3)
    programs = {
        name: torch.export.export(model.eval(), (x,))
        for name, model in (("sine", Sine()), ("scale", Scaled()))
    }
    context = Context(wb.lower(programs, progress=False))
    ops = {
        method: [op for op in graph_document(context, f"exported/{method}").op if op.startswith("aten")]
        for method in ("sine", "scale")
    }
    assert ops == {"sine": ["aten.sin.default"], "scale": ["aten.mul.Tensor"]}
    made = graph_details(context, GraphRow("exported", "scale", 1))
    assert {entry.stage for entry in made.stages} >= {"edge", "program"}


class Sine(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)
