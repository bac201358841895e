import pytest
import torch

from workbench.backends import partition
from workbench.backends.costs import boundaries, value_bytes

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("recorder")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        a = torch.sin(x * self.weight)
        return torch.cos(a), torch.exp(a)


def test_bytes_in_out_and_owned(edge, take):
    result = partition(
        edge(Model(), (torch.ones(2, 4),)), take([aten.mul.Tensor, aten.sin.default, aten.cos.default])
    )
    (border,) = boundaries(result.tagged_exported_program).values()
    assert border.inputs == (("x", 32),)
    assert border.outputs == (("sin", 32), ("cos", 32))
    assert border.constant_bytes == 16 and border.nodes == 3
    assert border.crossing_bytes == 96


def test_dynamic_sizes_count_with_their_upper_bound(edge, take):
    batch = torch.export.Dim("batch", min=2, max=10)
    program = edge(Model(), (torch.ones(2, 4),), ({0: batch},))
    (border,) = boundaries(partition(program, take([aten.sin.default])).tagged_exported_program).values()
    assert border.inputs == (("mul", 160),)


def test_unbounded_sizes_are_told_apart(edge, take):
    program = edge(Model(), (torch.ones(2, 4),), ({0: torch.export.Dim.DYNAMIC},))
    (border,) = boundaries(partition(program, take([aten.sin.default])).tagged_exported_program).values()
    assert border.inputs == (("mul", None),)


def test_lists_add_up_and_numbers_take_eight_bytes():
    assert value_bytes((torch.ones(2), torch.ones(3, dtype=torch.int64)), {}) == 32
    assert value_bytes(3, {}) == 8
