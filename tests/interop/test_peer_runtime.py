"""Our programs in ExecuTorch's runtime, through `run(..., runtime="executorch")`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import workbench as wb
from agreement import assert_agrees
from networks import Network, build, small
from workbench.errors import ExecutionError, MissingKernelError, TraceError

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module", params=["mlp", "dscnn"])
def network(request: pytest.FixtureRequest) -> Network:
    return build(request.param)


@pytest.fixture(scope="module")
def lowering(network: Network) -> wb.Lowering:
    return wb.lower(network.model, network.inputs)


def test_outputs_agree_with_eager(lowering: wb.Lowering, network: Network) -> None:
    run = lowering.run(*network.inputs, runtime="executorch")
    assert run.runtime == "executorch"
    assert run.trace is None
    assert_agrees(run.outputs, network.eager())
    again = wb.open(lowering.program.buffer).run(*network.inputs, runtime="executorch")
    assert_agrees(again.outputs, network.eager())


def test_nothing_of_its_loading_is_written_to_the_terminal(tmp_path: Path) -> None:
    program = tmp_path / "linear.pte"
    inputs = (torch.randn(1, 4),)
    wb.lower(nn.Linear(4, 4).eval(), inputs, progress=False).save(program)
    code = (
        "import sys, torch, workbench as wb\n"
        "print(len(wb.open(sys.argv[1]).run(torch.randn(1, 4), runtime='executorch').outputs))"
    )
    command = [sys.executable, "-c", code, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr
    assert "cpuinfo" not in done.stderr


def test_table_has_a_time_for_each_instruction_of_each_execution(
    lowering: wb.Lowering, network: Network
) -> None:
    theirs = lowering.run(*network.inputs, profile=True, repeat=3, runtime="executorch")
    ours = lowering.run(*network.inputs, profile=True, repeat=3)
    rows = theirs.table[theirs.table["event_name"].str.startswith("native_call_")]
    same = ours.table[ours.table["event_name"].str.startswith("native_call_")]
    assert rows["event_name"].tolist() == same["event_name"].tolist()
    assert rows["handles"].tolist() == same["handles"].tolist()
    assert all(len(raw) == 3 and min(raw) > 0 for raw in rows["raw"])
    # Three times each kernel and the method, and what loading is made of.
    assert len(theirs.trace) == 3 * (len(rows) + 1) + 2
    assert theirs.summary()["operator"].tolist() != []
    assert theirs.summary()["calls"].sum() == len(rows)


def test_runtimes_are_compared_instruction_by_instruction(lowering: wb.Lowering, network: Network) -> None:
    ours = lowering.run(*network.inputs, values=True, repeat=2)
    theirs = lowering.run(*network.inputs, values=True, repeat=2, runtime="executorch")
    comparison = wb.compare(ours, theirs, names=["ours", "theirs"])
    assert set(comparison.table["status"]) == {"matched"}
    # What needs no instruction (a view) takes no time on either side.
    timed = comparison.table["ours: ms"].notna()
    assert timed.sum() >= 5
    assert comparison.table["theirs: Δ ms"].notna().tolist() == timed.tolist()
    assert comparison.table["theirs: SQNR dB"].min() > 80


def test_values_are_those_of_eager(lowering: wb.Lowering, network: Network) -> None:
    run = lowering.run(*network.inputs, values=True, runtime="executorch")
    gap = run.inspector.calculate_numeric_gap("SQNR", run.inputs)
    assert len(gap) > 3
    assert gap["gap"].min() > 80


def test_trace_is_saved_and_read_again(lowering: wb.Lowering, network: Network, tmp_path: Path) -> None:
    run = lowering.run(*network.inputs, profile=True, repeat=2, runtime="executorch")
    run.save(tmp_path / "trace.etdp")
    run.save(tmp_path / "trace.json")
    again = wb.Inspector(tmp_path / "trace.etdp").to_dataframe()
    calls = run.table["event_name"].str.startswith("native_call_")
    assert run.table[calls]["event_name"].tolist() == [
        name for name in again["event_name"] if name.startswith("native_call_")
    ]


def test_events_arrive_while_it_runs_in_the_background(lowering: wb.Lowering, network: Network) -> None:
    run = lowering.run(*network.inputs, profile=True, repeat=40, background=True, runtime="executorch")
    batches = [len(batch) for batch in run.events()]
    assert_agrees(run.outputs, network.eager())
    assert len(batches) > 1
    assert sum(batches) == len(run.trace)


def test_channels_last_inputs_and_conditionals_run() -> None:
    for name in ("cat_channels_last", "cond_aliases", "cond_aliases_true"):
        model = small(name)
        lowering = wb.lower(model.model, model.inputs)
        # Other layouts than the example's are brought to the program's.
        inputs = [value.contiguous() for value in model.inputs]
        run = lowering.run(*inputs, values=True, runtime="executorch")
        assert_agrees(run.outputs, model.eager())
        assert any(event.debug_data for event in run.events_of("forward"))


def test_loop_runs_and_its_values_are_refused() -> None:
    model = small("while_counter")
    lowering = wb.lower(model.model, model.inputs)
    run = lowering.run(*model.inputs, profile=True, runtime="executorch")
    assert_agrees(run.outputs, model.eager())
    assert (run.table["event_name"] == "JF_CALL").any()
    # The debug buffer has one size, and ExecuTorch ends the process when it overflows.
    with pytest.raises(TraceError, match="loops"):
        lowering.run(*model.inputs, values=True, runtime="executorch")


def test_missing_kernel_is_named() -> None:
    class Sort(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sort(x)[0]

    x = torch.randn(5)
    lowering = wb.lower(Sort(), (x,))
    assert_agrees(lowering.run(x).outputs, torch.sort(x)[0])
    with pytest.raises(MissingKernelError, match="no kernel") as caught:
        lowering.run(x, runtime="executorch")
    assert "aten::sort" in str(caught.value)


def test_missing_backend_is_named() -> None:
    class Scale(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x * x + x)

    x = torch.randn(2, 4)
    recipe = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")
    lowering = wb.lower(Scale(), (x,), recipe=recipe)
    assert len(lowering.partitioned.tags["forward"])
    with pytest.raises(ExecutionError, match="no backend AddMulBackendDemo") as caught:
        lowering.run(x, runtime="executorch")
    assert caught.value.code == "NotFound"
    assert "XnnpackBackend" in str(caught.value.found)


def test_wrong_inputs_and_methods_are_refused(lowering: wb.Lowering, network: Network) -> None:
    with pytest.raises(ExecutionError, match="other inputs"):
        lowering.run(runtime="executorch")
    [fitting] = network.inputs
    for wrong in (torch.randn(1, 2, 3, 4, 5), fitting.double(), fitting[..., 1:], 3.0):
        with pytest.raises(ExecutionError, match="input 0 of 'forward'") as caught:
            lowering.run(wrong, runtime="executorch")
        assert caught.value.code == "InvalidArgument"
    with pytest.raises(ExecutionError, match="no such runtime") as caught:
        lowering.run(fitting, runtime="onnx")  # type: ignore[arg-type]
    assert "native or executorch" in str(caught.value)
    with pytest.raises(ExecutionError, match="no method 'backward'"):
        lowering.run(*network.inputs, method="backward", runtime="executorch")
    assert_agrees(lowering.run(*network.inputs, runtime="executorch").outputs, network.eager())


def test_delegate_of_executorch_is_traced_inside(tmp_path: Path) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
    x = torch.randn(1, 3, 8, 8)
    program = to_edge_transform_and_lower(
        torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()]
    )
    path = tmp_path / "conv.pte"
    program.to_executorch().save(str(path))
    run = wb.open(path).run(x, profile=True, repeat=2, runtime="executorch")
    with torch.no_grad():
        assert_agrees(run.outputs, model(x))
    inside = run.table[run.table["is_delegated_op"].eq(True)]
    assert any("Convolution" in str(name) for name in inside["event_name"])
