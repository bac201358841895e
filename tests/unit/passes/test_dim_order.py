from __future__ import annotations

import pytest
import torch
from torch import nn

from workbench.edge.dim_order_ops import CLONE, EMPTY, TO_COPY, dim_order_of_format
from workbench.passes.dead_code import DeadCode
from workbench.passes.legalize_dim_order import LegalizeDimOrder

LAST = torch.channels_last


def _image(*sizes):
    return torch.randn(*sizes).to(memory_format=LAST)


def test_formats_become_dim_orders(lab, count):
    def formats(x):
        return x.clone(memory_format=LAST), x.to(torch.float64, memory_format=LAST), x.to(torch.float16)

    program = lab.edge(formats, torch.randn(1, 3, 4, 5))
    orders = [node.kwargs["dim_order"] for node in program.graph.nodes if node.target in (CLONE, TO_COPY)]
    assert orders == [[0, 2, 3, 1], [0, 2, 3, 1], [0, 1, 2, 3]]
    lab.agrees(program)


def test_preserve_format_takes_the_order_of_the_input(lab):
    program = lab.edge(lambda x: x.sin().to(torch.float64), _image(1, 3, 4, 5))
    copy = next(node for node in program.graph.nodes if node.target is TO_COPY)
    assert copy.kwargs["dim_order"] == [0, 2, 3, 1]


def test_operators_agree_with_the_formats_they_stand_for():
    x = torch.randn(2, 3, 4, 5)
    last = TO_COPY(x, dtype=torch.float64, dim_order=[0, 2, 3, 1])
    assert last.is_contiguous(memory_format=LAST)
    torch.testing.assert_close(last, x.double())
    assert CLONE(last, dim_order=[0, 1, 2, 3]).is_contiguous()
    assert EMPTY([2, 3, 4, 5], dim_order=[0, 2, 3, 1]).is_contiguous(memory_format=LAST)
    assert dim_order_of_format(LAST, 4) == (0, 2, 3, 1)
    assert dim_order_of_format(torch.channels_last_3d, 5) == (0, 2, 3, 4, 1)
    with pytest.raises(ValueError, match="no dim order"):
        dim_order_of_format(LAST, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat([x, x], 1),
        lambda x: torch.topk(x, 2, 1),
        lambda x: nn.functional.pad(x, (1, 1)),
        lambda x: x.mean((2, 3)),
        lambda x: x.softmax(1),
        lambda x: x * torch.ones(3, 1, 1),
        lambda x: x.flatten(1),
    ],
    ids=["cat", "topk", "pad", "mean", "softmax", "broadcast", "flatten"],
)
def test_channels_last_operands_are_copied_where_kernels_read_rows(lab, function):
    program = lab.edge(function, _image(1, 3, 4, 5))
    lab.run(program, LegalizeDimOrder(), DeadCode())
    reading = [node for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    for node in reading:
        if node.target not in (TO_COPY, CLONE):
            assert all(item.meta["val"].is_contiguous() for item in node.all_input_nodes), node


def test_convolution_and_pointwise_operators_stay_channels_last(lab, count):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
    program = lab.edge(model, _image(1, 3, 8, 8))
    assert not lab.run(program, LegalizeDimOrder()).counts["copies"]


def test_convolution_with_channels_last_weight_gets_its_input_in_that_order(lab):
    model = nn.Conv2d(3, 4, 3).to(memory_format=LAST)
    program = lab.edge(model, torch.randn(1, 3, 8, 8))
    assert lab.run(program, LegalizeDimOrder()).counts["copies"] == 1


def test_one_copy_serves_all_users(lab):
    program = lab.edge(lambda x: (x.mean(1), x.sum(1)), _image(1, 3, 4, 5))
    assert lab.run(program, LegalizeDimOrder()).counts["copies"] == 1
