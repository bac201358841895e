"""Lowerings and runs: outputs, profiles, live events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import workbench as wb
from networks import build
from workbench.errors import ExecutionError, TraceError


@pytest.fixture(scope="module")
def network() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    made = build("dscnn")
    return made.model, made.inputs


@pytest.fixture(scope="module")
def lowering(network: tuple[nn.Module, tuple[torch.Tensor, ...]]) -> wb.Lowering:
    return wb.lower(*network)


def test_outputs_agree_with_eager(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]]
) -> None:
    model, inputs = network
    run = lowering.run(*inputs)
    with torch.no_grad():
        torch.testing.assert_close(run.outputs[0], model(*inputs), rtol=1e-4, atol=1e-5)
    assert run.trace is None
    with pytest.raises(TraceError, match="profile=True"):
        run.table  # noqa: B018


def test_profile_has_a_row_for_each_instruction(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]]
) -> None:
    run = lowering.run(*network[1], profile=True, repeat=5)
    instructions = wb.open(lowering.program.buffer).instructions
    kernels = instructions[instructions["kind"] == "kernel"]
    rows = run.table[run.table["event_name"].str.startswith("native_call")]
    assert len(rows) == len(kernels)
    assert all(len(raw) == 5 for raw in rows["raw"])
    convolutions = rows[rows["event_name"].str.contains("convolution")]
    assert len(convolutions) == 9
    for hierarchy in convolutions["module_hierarchy"]:
        assert hierarchy, "a convolution is not joined with its module"


def test_summary_adds_up_to_the_whole(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]]
) -> None:
    summary = lowering.run(*network[1], profile=True, repeat=3).summary()
    assert summary["%"].sum() == pytest.approx(100, abs=1)
    assert summary["ms"].is_monotonic_decreasing
    assert summary["operator"].is_unique


def test_trace_is_saved_as_etdump_and_for_perfetto(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]], tmp_path: Path
) -> None:
    run = lowering.run(*network[1], profile=True)
    run.save(tmp_path / "t.etdp")
    run.save(tmp_path / "t.json")
    assert (tmp_path / "t.etdp").read_bytes()[8:12] == b"ED00"
    named = {event["name"] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]}
    assert any("convolution" in name for name in named)
    lowering.save_etrecord(tmp_path / "t.etrecord")
    inspector = wb.Inspector(etdump=tmp_path / "t.etdp", etrecord=tmp_path / "t.etrecord")
    assert any("convolution" in str(types) for types in inspector.to_dataframe()["op_types"])


def test_events_arrive_while_the_program_runs(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]]
) -> None:
    run = lowering.run(*network[1], profile=True, repeat=300, background=True)
    total, while_running, batches = 0, 0, 0
    for batch in run.events():
        total += len(batch)
        batches += 1
        while_running += run.running
    assert batches > 1
    assert while_running > 0
    assert not run.running
    assert total == len(run.trace)
    assert run.trace.dropped == 0
    assert len(run.outputs) == 1


def test_error_in_the_background_is_raised_where_it_is_asked_for(lowering: wb.Lowering) -> None:
    run = lowering.run(torch.zeros(3), profile=True, background=True)
    with pytest.raises(ExecutionError):
        list(run.events())
    with pytest.raises(ExecutionError):
        run.outputs  # noqa: B018


def test_method_runs_correctly_after_a_refused_input(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]]
) -> None:
    model, inputs = network
    for wrong in ((), (inputs[0], inputs[0]), (inputs[0][..., :5],), (inputs[0].double(),)):
        with pytest.raises(ExecutionError):
            lowering.run(*wrong)
    with torch.no_grad():
        torch.testing.assert_close(lowering.run(*inputs).outputs[0], model(*inputs), rtol=1e-4, atol=1e-5)


def test_zero_repeats_are_refused(lowering: wb.Lowering) -> None:
    with pytest.raises(ExecutionError, match="at least once"):
        lowering.run(repeat=0)


def test_saved_program_is_the_buffer(lowering: wb.Lowering, tmp_path: Path) -> None:
    lowering.save(tmp_path / "x.pte")
    assert (tmp_path / "x.pte").read_bytes() == lowering.program.buffer


def test_model_from_a_file_is_lowered(
    network: tuple[nn.Module, tuple[torch.Tensor, ...]], lowering: wb.Lowering, tmp_path: Path
) -> None:
    model, inputs = network
    torch.export.save(torch.export.export(model, inputs), tmp_path / "m.pt2")
    again = wb.lower(tmp_path / "m.pt2")
    torch.testing.assert_close(again.execute(*inputs)[0], lowering.execute(*inputs)[0])


def test_values_are_recorded_on_request(
    lowering: wb.Lowering, network: tuple[nn.Module, tuple[torch.Tensor, ...]]
) -> None:
    run = lowering.run(*network[1], values=True)
    values = [event.debug_data for event in run.events_of("forward") if event.debug_data]
    assert len(values) >= 10
