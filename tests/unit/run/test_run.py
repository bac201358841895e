"""Runs where ExecuTorch is not installed, and what runs keep."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench import peer
from workbench.errors import ExecutionError, SelectionError


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    return wb.lower(nn.Sequential(nn.Linear(4, 8), nn.ReLU()).eval(), (torch.ones(1, 4),))


@pytest.fixture
def without_executorch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    original = importlib.import_module

    def refuse(name: str, package: str | None = None) -> Any:
        if name.startswith("executorch"):
            raise ModuleNotFoundError("No module named 'executorch'")
        return original(name, package)

    peer._library.cache_clear()
    monkeypatch.setattr(importlib, "import_module", refuse)
    yield
    peer._library.cache_clear()


@pytest.mark.usefixtures("without_executorch")
def test_run_without_executorch_says_what_to_install(lowering: wb.Lowering) -> None:
    for program in (lowering, wb.open(lowering.program.buffer)):
        with pytest.raises(ExecutionError, match="can't be loaded") as caught:
            program.run(torch.ones(1, 4), runtime="executorch")
        assert caught.value.code == "NotFound"
        assert "pip install executorch" in str(caught.value)
    assert lowering.run(torch.ones(1, 4)).outputs


def test_opened_program_selects_instructions_by_their_place(lowering: wb.Lowering) -> None:
    opened = wb.open(lowering.program.buffer)
    run = opened.run(torch.ones(1, 4), profile=True)
    rows = run.table[run.table["event_name"].str.startswith("native_call_")]
    assert rows["handles"].tolist() == [(1,), (2,)]
    opened.selection = rows.iloc[1]
    assert opened.selection.handles == {2}
    assert opened.selection.method == "forward"
    assert opened.selection is not lowering.selection
    with pytest.raises(SelectionError, match="no stage has a node"):
        opened.selection = "relu"


def test_run_of_lowering_and_of_its_file_have_the_same_interface(lowering: wb.Lowering) -> None:
    x = torch.randn(1, 4)
    for program in (lowering, wb.open(lowering.program.buffer)):
        run = program.run(x, values=True, repeat=3)
        assert run.inputs == (x,)
        assert run.runtime == "native"
        assert run.of is program
        assert len(run.table) == len(run.table["handles"])
        with pytest.raises(ExecutionError, match="at least once"):
            program.run(x, repeat=0)
