from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.export import Dim

from workbench import provenance
from workbench.errors import ExportError
from workbench.export import export, load, save


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("nothing here")


class Mismatch(nn.Module):
    def forward(self, x):
        return x @ x


class Numpy(nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy())


def test_program_has_a_handle_on_every_node():
    program = export(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), (torch.randn(1, 4),))
    sources = provenance.source_map(program)
    assert len(sources) == len(program.graph.nodes)
    (relu,) = sources.resolve(provenance.handles(next(n for n in program.graph.nodes if n.name == "relu")))
    assert (relu.name, relu.module_path, relu.module_type) == (
        "relu",
        "1",
        "torch.nn.modules.activation.ReLU",
    )


def test_handles_are_the_same_for_the_same_model():
    def named():
        program = export(nn.Linear(4, 3), (torch.randn(1, 4),))
        return [(source.handle, source.name) for source in provenance.source_map(program)]

    assert named() == named()


def test_keyword_inputs_are_captured():
    class Scaled(nn.Module):
        def forward(self, x, *, factor):
            return x * factor

    program = export(Scaled(), (torch.ones(2),), {"factor": torch.tensor(3.0)})
    assert torch.equal(program.module()(torch.ones(2), factor=torch.tensor(3.0)), torch.full((2,), 3.0))


@pytest.mark.parametrize("model", [Branches(), Raises(), Numpy()], ids=lambda model: type(model).__name__)
def test_failure_names_the_line_of_the_model_and_a_remedy(model):
    with pytest.raises(ExportError) as caught:
        export(model, (torch.ones(3),))
    error = caught.value
    assert type(model).__name__ in error.message
    assert error.source is not None
    assert "test_capture.py:" in error.source
    assert error.hint
    assert error.__cause__ is not None


def test_branch_on_a_value_is_told_to_use_cond():
    with pytest.raises(ExportError) as caught:
        export(Branches(), (torch.ones(3),))
    assert "torch.cond" in caught.value.hint


def test_inputs_that_do_not_fit_are_told_so():
    with pytest.raises(ExportError) as caught:
        export(Mismatch(), (torch.ones(3, 4),))
    assert "example inputs" in caught.value.hint


def test_violated_constraint_is_told_so():
    shapes = {"x": {0: Dim("rows"), 1: Dim("columns")}}
    with pytest.raises(ExportError) as caught:
        export(Mismatch(), (torch.ones(3, 3),), dynamic_shapes=shapes)
    assert "suggested fixes" in caught.value.hint


def test_inputs_must_be_a_tuple():
    with pytest.raises(ExportError, match="must be a tuple"):
        export(nn.ReLU(), torch.ones(3))


def test_training_mode_is_warned_about_where_it_matters():
    with pytest.warns(UserWarning, match="training mode"):
        export(nn.Sequential(nn.Linear(4, 4), nn.Dropout()), (torch.ones(1, 4),))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*training mode.*")
        export(nn.Sequential(nn.Linear(4, 4), nn.Dropout()).eval(), (torch.ones(1, 4),))
        export(nn.Linear(4, 4), (torch.ones(1, 4),))


def test_exported_program_is_taken_as_it_is():
    program = torch.export.export(nn.ReLU(), (torch.ones(3),))
    assert export(program) is program
    assert len(provenance.source_map(program)) == 3


def test_program_and_handles_survive_a_file(tmp_path):
    program = export(nn.Linear(4, 3), (torch.randn(1, 4),))
    path = tmp_path / "linear.pt2"
    save(program, path)
    again = export(path)
    assert [provenance.handles(node) for node in again.graph.nodes] == [
        provenance.handles(node) for node in program.graph.nodes
    ]
    x = torch.randn(1, 4)
    torch.testing.assert_close(again.module()(x), program.module()(x))


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(ExportError, match="there is no file"):
        load(tmp_path / "nothing.pt2")
    text = tmp_path / "model.pt"
    text.write_text("print('hello')")
    with pytest.raises(ExportError, match="no TorchScript module and no exported program"):
        load(text)
    weights = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(1)}, weights)
    with pytest.raises(ExportError, match="no TorchScript module and no exported program") as caught:
        load(weights)
    assert "state_dict" in caught.value.hint
