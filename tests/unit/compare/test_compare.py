"""Comparisons of lowerings and runs, joined on the exported nodes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.display import StaticViews

ADD_MUL = "workbench.backends.demo:AddMulPartitionerDemo"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return torch.sigmoid((y + x) * y)


INPUTS = (torch.randn(3, 4),)


@pytest.fixture(scope="module")
def plain() -> wb.Lowering:
    torch.manual_seed(0)
    return wb.lower(Model().eval(), INPUTS)


@pytest.fixture(scope="module")
def delegated(plain: wb.Lowering) -> wb.Lowering:
    return plain.relower(wb.Recipe(partitioner=ADD_MUL))


def test_lowering_matches_itself(plain: wb.Lowering) -> None:
    table = wb.compare(plain, plain).table
    assert set(table["status"]) == {"matched"}
    assert (table["b: Δ bytes"] == 0).all()


def test_lowering_of_the_same_model_again_matches(plain: wb.Lowering) -> None:
    torch.manual_seed(0)
    again = wb.lower(Model().eval(), INPUTS)
    assert set(wb.compare(plain, again).table["status"]) == {"matched"}


def test_delegate_stands_beside_the_nodes_that_it_replaces(
    plain: wb.Lowering, delegated: wb.Lowering
) -> None:
    table = wb.compare(plain, delegated, names=["plain", "delegated"]).table
    changed = table[table["status"] == "changed"]
    row = changed[changed["delegated: operators"].str.contains("executorch_call_delegate")].iloc[0]
    assert "aten.add.Tensor" in row["plain: operators"]
    assert "aten.mul.Tensor" in row["plain: operators"]
    sigmoid = table[table["plain: operators"].str.contains("sigmoid")].iloc[0]
    assert sigmoid["status"] == "matched"
    assert "test_compare.py" in sigmoid["source"]


def test_node_of_one_side_only_is_told(plain: wb.Lowering) -> None:
    class Longer(Model):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(super().forward(x))

    longer = wb.lower(Longer().eval(), INPUTS)
    comparison = wb.compare(plain, longer, names=["short", "long"])
    only = comparison.table[comparison.table["status"] == "only in long"]
    assert len(only) == 1
    assert "tanh" in only.iloc[0]["long: operators"]
    assert comparison.summary().set_index("side").loc["long", "only here"] == 1


def test_runs_add_times_and_errors(plain: wb.Lowering) -> None:
    one = plain.run(*INPUTS, values=True)
    other = plain.run(INPUTS[0] + 0.01, values=True)
    table = wb.compare(one, other).table
    assert table["a: ms"].notna().any()
    assert table["b: Δ ms"].notna().any()
    errors = table["b: max error"].dropna()
    assert len(errors) > 0
    assert (errors > 0).any()
    same = wb.compare(one, plain.run(*INPUTS, values=True)).table
    assert (same["b: max error"].dropna() == 0).all()
    assert (same["b: SQNR dB"].dropna() == float("inf")).all()


def test_three_sides_have_three_columns_each(plain: wb.Lowering, delegated: wb.Lowering) -> None:
    table = wb.compare(plain, delegated, plain).table
    assert {"a: nodes", "b: nodes", "c: nodes", "b: Δ bytes", "c: Δ bytes"} <= set(table.columns)
    assert "a: Δ bytes" not in table.columns


def test_comparison_shows_itself(plain: wb.Lowering, delegated: wb.Lowering) -> None:
    comparison = wb.compare(plain, delegated)
    assert "<table" in StaticViews().mimebundle(comparison)["text/html"]
    assert "rows" in repr(comparison)


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_names_that_do_not_fit_are_refused(plain: wb.Lowering, names: list[str]) -> None:
    with pytest.raises(wb.WorkbenchError, match="name"):
        wb.compare(plain, plain, names=names)


def test_one_side_is_no_comparison(plain: wb.Lowering) -> None:
    with pytest.raises(wb.WorkbenchError, match="at least two"):
        wb.compare(plain)
    with pytest.raises(wb.WorkbenchError, match="no method"):
        wb.compare(plain, plain, method="backward")
