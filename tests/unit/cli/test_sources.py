"""What the command line is pointed at: models, shapes, dynamic dimensions, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from workbench import sources
from workbench.errors import ExportError, PartitionError, RecipeError

MODULE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def bare(): return Model()
def with_inputs(): return Model(), (torch.ones(2),)
def single_input(): return Model(), torch.ones(2)
def with_shapes(): return Model(), (torch.ones(2),), ({0: torch.export.Dim("n", min=1, max=4)},)
def nothing(): return 5
def broken(): raise ValueError("no weights here")
instance = Model()
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "some_model.py"
    path.write_text(MODULE)
    return path


@pytest.mark.parametrize(
    ("name", "inputs", "shapes"),
    [
        ("bare", None, False),
        ("with_inputs", 1, False),
        ("single_input", 1, False),
        ("with_shapes", 1, True),
        ("instance", None, False),
    ],
)
def test_factory_gives_model_and_what_it_returns(
    module: Path, name: str, inputs: int | None, shapes: bool
) -> None:
    model = sources.load_model(f"{module}:{name}")
    assert isinstance(model.model, torch.nn.Module)
    assert not model.model.training
    assert (None if model.inputs is None else len(model.inputs)) == inputs
    assert (model.dynamic_shapes is not None) == shapes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{module}:nothing", "returned no model"),
        ("{module}:broken", "no weights here"),
        ("{module}:missing", "has no `missing`"),
        ("{module}", "name the factory"),
        ("no/such/file.py:f", "no file"),
        ("no.such.module:f", "can't be imported"),
        ("no_such.pt2", "no file"),
    ],
)
def test_bad_model_is_named(module: Path, text: str, said: str) -> None:
    with pytest.raises(ExportError, match=said):
        sources.load_model(text.format(module=module))


def test_exported_program_and_torchscript_are_read(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 3).eval()
    torch.export.save(torch.export.export(model, (torch.ones(1, 2),)), tmp_path / "m.pt2")
    assert isinstance(sources.load_model(str(tmp_path / "m.pt2")).model, torch.export.ExportedProgram)
    torch.jit.trace(model, torch.ones(1, 2)).save(str(tmp_path / "m.pt"))
    assert isinstance(sources.load_model(str(tmp_path / "m.pt")).model, torch.jit.ScriptModule)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("1x3x4", (1, 3, 4), torch.float32),
        ("7", (7,), torch.float32),
        ("", (), torch.float32),
        ("2x2:int64", (2, 2), torch.int64),
        (":bool", (), torch.bool),
        ("0x4:float16", (0, 4), torch.float16),
    ],
)
def test_shape_becomes_a_tensor(text: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    value = sources.shaped(text)
    assert tuple(value.shape) == shape
    assert value.dtype == dtype


@pytest.mark.parametrize("text", ["1x", "axb", "1x2:float33", "1x2:nn", "-1"])
def test_malformed_shape_is_refused(text: str) -> None:
    with pytest.raises(RecipeError):
        sources.shaped(text)


def test_dynamic_dimensions_with_one_name_are_one_dimension() -> None:
    inputs = (torch.ones(2, 3), torch.ones(2, 5))
    first, second = sources.dynamic_shapes(["0.0=N:1..8", "1.0=N:1..8", "1.1=2..6"], inputs)
    assert first[0] is second[0]
    assert (second[1].min, second[1].max) == (2, 6)
    assert sources.dynamic_shapes([], inputs) is None


@pytest.mark.parametrize("text", ["0.0", "0=1..2", "0.0=2..1", "2.0=1..2", "0.5=1..2", "0.0=1..", "x.0=1..2"])
def test_malformed_dynamic_dimension_is_refused(text: str) -> None:
    with pytest.raises(RecipeError):
        sources.dynamic_shapes([text], (torch.ones(2, 3), torch.ones(2)))


def test_tensors_of_all_kinds_of_files_are_read_in_order(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full(2, 1.0))
    np.savez(tmp_path / "b.npz", x=np.full(1, 2.0), y=np.full(1, 3.0))
    torch.save([torch.full((1,), 4.0), 5], tmp_path / "c.pt")
    found = sources.load_tensors([str(tmp_path / name) for name in ("a.npy", "b.npz", "c.pt")])
    assert [float(torch.as_tensor(value).flatten()[0]) for value in found] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["missing.npy", "damaged.npy", "damaged.pt", "pickle.npy", "text.txt"])
def test_bad_input_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY\x01")
    (tmp_path / "damaged.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "text.txt").write_text("1 2 3")
    np.save(tmp_path / "pickle.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecipeError, match=name):
        sources.load_tensors([str(tmp_path / name)])


def test_pickled_code_is_not_run(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "exploded",)

    torch.save(Bomb(), tmp_path / "bomb.pt")
    with pytest.raises(RecipeError):
        sources.load_tensors([str(tmp_path / "bomb.pt")])
    assert not (tmp_path / "exploded").exists()


def test_partitioner_is_found_by_the_name_of_its_class() -> None:
    assert sources.partitioner_named("AddMulPartitionerDemo").endswith(":AddMulPartitionerDemo")
    assert sources.partitioner_named("a.b:C") == "a.b:C"
    with pytest.raises(PartitionError, match="AddMulPartitionerDemo"):
        sources.partitioner_named("AddMulPartitionrDemo")
