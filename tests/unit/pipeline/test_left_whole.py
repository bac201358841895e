"""Operators that were kept whole for a partitioner, and that a hand took out of its partition."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import workbench as wb


class Small(nn.Module):
    """A layer of each kind that both partitioners keep whole."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 12)
        self.last = nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.first(x).view(1, 5, 3, 4).transpose(1, 2)
        mixed = nn.functional.scaled_dot_product_attention(heads, heads, heads)
        return self.last(mixed.transpose(1, 2).reshape(1, 5, 12)).relu()


@pytest.mark.parametrize("partitioner", [wb.CpuPartitioner, wb.XnnpackPartitioner], ids=lambda c: c.__name__)
@pytest.mark.parametrize("erased", ["linear_1", "scaled_dot_product_attention"])
def test_erased_operator_is_decomposed_and_computes_the_same(erased: str, partitioner: type) -> None:
    torch.manual_seed(0)
    model, x = Small().eval(), torch.randn(1, 5, 8)
    lowering = wb.lower(model, (x,), recipe=wb.Recipe(partitioner=partitioner()))
    assert erased in set(lowering.edge.table.node)
    edit = wb.Edit("partition", {"action": "erase", "nodes": [erased]})
    edited = lowering.relower(lowering.recipe.replace(edits=[edit]))
    assert erased not in set(edited.lowered.table.node)
    run = edited.run(x, profile=True)
    torch.testing.assert_close(run.outputs[0], model(x), atol=1e-5, rtol=1e-5)
    handles = lowering.edge.table.set_index("node").handles[erased]
    seen = {handle for row in run.table.handles for handle in row}
    assert set(handles) <= seen, "the parts lead back to the operator that they came from"
