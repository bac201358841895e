"""Small models that fail, or once failed, in some lowering stack: here they run and agree with eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import workbench as wb
from agreement import assert_agrees
from networks import SMALL, Network, small

# What ExecuTorch 1.5.1's own runtime has no kernel for, or computes wrongly, whoever made the program.
NOT_IN_EXECUTORCH = {
    "bucketize": "no kernel for aten::bucketize.Tensor_out",
    "right_shift": "no kernel for bitwise_right_shift with a scalar",
}


@pytest.mark.parametrize("name", SMALL)
def test_small_model_agrees_with_eager(name: str) -> None:
    model = small(name)
    lowering = wb.lower(model.model, model.inputs, dynamic_shapes=model.dynamic_shapes)
    assert_agrees(lowering.execute(*model.inputs), model.eager())


@pytest.mark.parametrize("name", [name for name in SMALL if name not in NOT_IN_EXECUTORCH])
@pytest.mark.peer
def test_program_of_small_model_runs_in_executorch(
    name: str, tmp_path: Path, run_in_executorch: Callable[..., list[Any]]
) -> None:
    model = small(name)
    path = tmp_path / "small.pte"
    wb.lower(model.model, model.inputs, dynamic_shapes=model.dynamic_shapes).save(path)
    assert_agrees(run_in_executorch(path, model.inputs), model.eager())


# What ExecuTorch 1.5.1 can't make a program of, or makes a program of that is wrong whoever runs it.
NOT_MADE_BY_EXECUTORCH = {
    "bucketize": "refused by its verifier",
    "right_shift": "refused by its verifier",
    "while_counter": "its emitter has no while_loop",
    "cond_aliases": "both conditionals write to the same memory",
    "cond_aliases_true": "both conditionals write to the same memory",
}


@pytest.mark.parametrize("name", [name for name in SMALL if name not in NOT_MADE_BY_EXECUTORCH])
@pytest.mark.peer
def test_program_of_small_model_by_executorch_runs_here(
    name: str, made_by_executorch: Callable[[Network], Path]
) -> None:
    model = small(name)
    opened = wb.open(made_by_executorch(model))
    assert_agrees(opened.run(*model.inputs).outputs, model.eager())


def test_conditionals_do_not_share_memory() -> None:
    model = small("cond_aliases")
    lowering = wb.lower(model.model, model.inputs)
    five_six = model.inputs[1]
    assert lowering.execute(torch.tensor(True), five_six)[0].tolist() == [111.0, 113.0]
    assert lowering.execute(torch.tensor(False), five_six)[0].tolist() == [-85.0, -82.0]


def test_wide_dynamic_image_runs_at_its_limits() -> None:
    model = small("conv_wide_dynamic")
    lowering = wb.lower(model.model, model.inputs, dynamic_shapes=model.dynamic_shapes)
    for height, width in ((8, 8), (8, 2048), (100, 9)):
        image = torch.randn(1, 3, height, width)
        with torch.no_grad():
            assert_agrees(lowering.execute(image), model.model(image))
