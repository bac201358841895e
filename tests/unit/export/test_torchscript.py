"""TorchScript modules become exported programs, with their own lines and modules as sources."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from workbench import provenance
from workbench.errors import ExportError
from workbench.export import export


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.repeats = 3

    def forward(self, x: Tensor, doubled: bool = True) -> Tensor:
        y = torch.relu(self.norm(self.convolution(x)))
        if doubled:
            y = y * 2
        parts = []
        for i in range(self.repeats):
            parts.append(y + i)
        return torch.cat(parts, 1).flatten(1).view(x.size(0), -1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class Accumulates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.total = self.total + x
        return self.total * 2


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x + 1
        return x - 1


def _agrees(script, *inputs, **options):
    program = export(script, inputs, **options)
    torch.testing.assert_close(program.module()(*inputs), script(*inputs))
    return program


def test_traced_model_of_a_file_is_captured(tmp_path):
    class MyModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(10, 5)

        def forward(self, x):
            return self.linear(x)

    example_input = torch.randn(1, 10)
    traced = torch.jit.trace(MyModel(), example_input)
    path = tmp_path / "my_model.pt"
    traced.save(str(path))
    program = export(path, (example_input,))
    torch.testing.assert_close(program.module()(example_input), torch.jit.load(str(path))(example_input))
    assert len(program.graph_signature.parameters) == 2


def test_script_with_branches_lists_and_loops_is_captured():
    script = torch.jit.script(Scripted().eval())
    image = torch.randn(2, 3, 8, 8)
    _agrees(script, image)
    _agrees(script, image, False)
    program = export(script, (image,), {"doubled": False})
    torch.testing.assert_close(program.module()(image, False), script(image, False))


@pytest.mark.parametrize("made", ["script", "trace"])
def test_dynamic_batch_is_kept(made):
    model, image = Scripted().eval(), torch.randn(2, 3, 8, 8)
    script = torch.jit.script(model) if made == "script" else torch.jit.trace(model, image)
    program = export(script, (image,), dynamic_shapes={"x": {0: Dim("batch", min=1, max=9)}})
    for batch in (1, 5):
        image = torch.randn(batch, 3, 8, 8)
        torch.testing.assert_close(program.module()(image), model(image))


def test_parameters_in_lists_are_parameters_of_the_program():
    program = _agrees(torch.jit.script(Recurrent().eval()), torch.randn(3, 2, 4))
    assert len(program.graph_signature.parameters) == 8
    assert not program.graph_signature.lifted_tensor_constants


def test_weights_are_shared_with_the_script():
    script = torch.jit.script(nn.Linear(4, 3))
    program = export(script, (torch.randn(1, 4),))
    (name,) = [item for item in program.state_dict if item.endswith("weight")]
    assert program.state_dict[name].data_ptr() == script.weight.data_ptr()


def test_state_of_a_script_is_a_mutable_buffer():
    program = export(torch.jit.script(Accumulates()), (torch.ones(3),))
    assert list(program.run_decompositions().graph_signature.buffers_to_mutate.values()) == ["module.total"]
    run = copy.deepcopy(program.module())
    assert [run(torch.ones(3))[0].item() for _ in range(3)] == [2.0, 4.0, 6.0]


def test_state_that_changes_its_size_is_refused():
    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(0))

        def forward(self, x: Tensor) -> Tensor:
            self.seen = torch.cat([self.seen, x])
            return self.seen.sum()

    with pytest.raises(ExportError, match="changes the size") as caught:
        export(torch.jit.script(Grows()), (torch.ones(3),))
    assert caught.value.expected == "torch.float32 [0]"
    assert caught.value.found == "torch.float32 [3]"


def test_nodes_know_the_lines_and_modules_of_the_script():
    image = torch.randn(1, 3, 8, 8)
    program = export(torch.jit.trace(Scripted().eval(), image), (image,))
    sources = provenance.source_map(program)
    relu = sources.named("relu")
    assert relu.source is not None
    assert "test_torchscript.py:" in relu.source
    assert [source.module_path for source in sources if source.target.startswith("aten._conv")] == [
        "convolution"
    ]


def test_branch_on_a_value_is_refused_with_the_scripts_line():
    with pytest.raises(ExportError) as caught:
        export(torch.jit.script(Branches()), (torch.ones(3),))
    assert caught.value.source is not None
    assert "test_torchscript.py:" in caught.value.source
    assert "torch.cond" in caught.value.hint


def test_unknown_keyword_is_refused():
    with pytest.raises(ExportError, match="no input `other`"):
        export(torch.jit.script(Scripted().eval()), (torch.randn(1, 3, 8, 8),), {"other": 1})


def test_script_function_is_captured():
    @torch.jit.script
    def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor

    x = torch.randn(3)
    torch.testing.assert_close(export(scaled, (x,)).module()(x), x * 2)
