"""Programs from files: what is in them, and running them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import workbench as wb
from networks import Network, build
from workbench.display import StaticViews
from workbench.errors import ExecutionError, SerializationError


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    network = build("mlp")
    return wb.lower(network.model, network.inputs)


@pytest.fixture(scope="module")
def opened(lowering: wb.Lowering, tmp_path_factory: pytest.TempPathFactory) -> wb.OpenedProgram:
    path = tmp_path_factory.mktemp("opened") / "mlp.pte"
    lowering.save(path)
    return wb.open(path)


def test_tables_show_what_was_lowered(opened: wb.OpenedProgram, lowering: wb.Lowering) -> None:
    (method,) = opened.methods.itertuples(index=False)
    assert method.method == "forward"
    assert method.inputs == "float32 [1, 784]"
    assert method.outputs == "float32 [1, 10]"
    assert method.instructions == len(opened.instructions)
    assert method.arena_bytes == sum(lowering.plan.emitted.program.methods[0].arena_sizes)
    constants = opened.sizes.set_index("segment").loc["constants", "bytes"]
    assert constants == 4 * sum(p.numel() for p in build("mlp").model.parameters())
    assert opened.operators["calls"].sum() == (opened.instructions["kind"] == "kernel").sum()
    assert opened.delegates.empty


def test_plan_has_no_overlap_of_live_tensors(opened: wb.OpenedProgram) -> None:
    rows = list(opened.plan.itertuples(index=False))
    assert rows
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            apart = one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset
            never = one.last < other.first or other.last < one.first
            assert one.arena != other.arena or apart or never, (one, other)


def test_opened_program_runs_as_the_lowering(opened: wb.OpenedProgram, lowering: wb.Lowering) -> None:
    inputs = opened.random_inputs()
    run = opened.run(*inputs, profile=True)
    torch.testing.assert_close(run.outputs[0], lowering.execute(*inputs)[0])
    assert len(run.summary()) > 0
    with pytest.raises(wb.WorkbenchError, match="from a file"):
        run.lowering  # noqa: B018


def test_bytes_are_opened_as_well(opened: wb.OpenedProgram, lowering: wb.Lowering) -> None:
    again = wb.open(lowering.program.buffer)
    assert again.instructions.equals(opened.instructions)
    assert "bytes" in repr(again)
    assert "<svg" in StaticViews().mimebundle(again)["text/html"]


def test_values_say_where_they_live(opened: wb.OpenedProgram) -> None:
    values = opened.values
    tensors = values[values["kind"] == "Tensor"]
    assert tensors["place"].str.contains("constant|arena|caller").all()


@pytest.mark.parametrize("content", [b"", b"ET12", b"\0" * 100, b"x" * 4096])
def test_broken_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.pte"
    path.write_bytes(content)
    with pytest.raises(SerializationError):
        wb.open(path)
    with pytest.raises(SerializationError):
        wb.open(content)


def test_missing_file_and_method_are_named(opened: wb.OpenedProgram, tmp_path: Path) -> None:
    with pytest.raises(SerializationError, match=r"none\.pte"):
        wb.open(tmp_path / "none.pte")
    with pytest.raises(ExecutionError, match="backward"):
        opened.random_inputs("backward")
    with pytest.raises(ExecutionError):
        opened.run(method="backward")


@pytest.mark.peer
def test_program_of_executorch_is_opened(made_by_executorch: Callable[[Network], Path]) -> None:
    opened = wb.open(made_by_executorch(build("mlp")))
    assert opened.methods["method"].tolist() == ["forward"]
    assert any("addmm" in name or "linear" in name for name in opened.operators["operator"])
