"""Comparisons of lowerings and runs, joined on the exported nodes."""

from __future__ import annotations

import math
import time

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.compare import error
from workbench.display import StaticViews
from workbench.errors import TraceError

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


def test_rows_have_the_handles_of_the_first_side(plain: wb.Lowering, delegated: wb.Lowering) -> None:
    comparison = wb.compare(plain, delegated)
    operators = plain.edge.table[plain.edge.table["op"].str.startswith("aten")]
    for row in comparison.rows:
        ours = operators[operators["node"].isin([node.name for node in row.cells[0].nodes])]
        assert row.handles == {handle for handles in ours["handles"] for handle in handles}
        assert row.cells[1].handles <= row.handles
    sigmoid = comparison.table[comparison.table["a: operators"].str.contains("sigmoid")]
    plain.selection = sigmoid
    assert plain.selection.handles == set(sigmoid.iloc[0]["handles"]) != set()
    plain.selection = None


def test_handles_of_a_row_that_another_capture_has_alone_are_left_out(plain: wb.Lowering) -> None:
    class Longer(Model):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(super().forward(x))

    comparison = wb.compare(plain, wb.lower(Longer().eval(), INPUTS))
    only = next(row for row in comparison.rows if row.status == "only in b")
    assert only.handles == frozenset()
    assert only.cells[1].handles
    assert comparison.table.loc[comparison.table["status"] == "only in b", "handles"].tolist() == [()]


def test_totals_add_up_and_are_held_against_the_first(plain: wb.Lowering, delegated: wb.Lowering) -> None:
    one, other = plain.run(*INPUTS, values=True, repeat=3), delegated.run(*INPUTS, values=True, repeat=3)
    comparison = wb.compare(one, other, names=["plain", "delegated"])
    totals, table = comparison.totals, comparison.table
    assert totals.index.tolist() == ["plain", "delegated"]
    assert totals.loc["plain", "program bytes"] == len(plain.program.buffer)
    assert totals.loc["delegated", "arena bytes"] == delegated.plan.report.methods["forward"].size
    for name in comparison.names:
        assert totals.loc[name, "bytes"] == table[f"{name}: bytes"].sum()
        assert totals.loc[name, "ms"] == pytest.approx(table[f"{name}: ms"].sum())
    assert totals.loc["plain", "Δ ms"] == 0
    assert (
        totals.loc["delegated", "Δ nodes"] == totals.loc["delegated", "nodes"] - totals.loc["plain", "nodes"]
    )
    assert totals.loc["delegated", "Δ nodes"] < 0
    assert totals.loc["delegated", "worst SQNR dB"] == table["delegated: SQNR dB"].min()
    assert math.isnan(totals.loc["plain", "worst SQNR dB"])
    assert wb.compare(plain, delegated).totals["ms"].isna().all()


def test_inside_of_a_delegate_is_beside_its_call(plain: wb.Lowering, delegated: wb.Lowering) -> None:
    comparison = wb.compare(plain.run(*INPUTS, values=True), delegated.run(*INPUTS, values=True))
    inside = comparison.inside
    assert len(inside) >= 2
    assert set(inside["side"]) == {"b"}
    for item in inside.itertuples():
        row = comparison.rows[item.row]
        assert set(item.handles) <= row.handles
        assert item.handles
        assert any("call_delegate" in name for name in row.cells[1].operators)
        assert 0 <= item.ms <= row.cells[1].milliseconds
    assert not len(wb.compare(plain, delegated).inside)


def test_runs_of_a_file_are_compared_by_instruction(plain: wb.Lowering) -> None:
    opened = wb.open(plain.program.buffer)
    again = wb.open(plain.program.buffer)
    comparison = wb.compare(
        opened.run(*INPUTS, values=True), again.run(INPUTS[0] + 0.1, values=True), names=["one", "two"]
    )
    assert len(comparison.table) == len(opened.instructions)
    assert set(comparison.table["status"]) == {"matched"}
    assert comparison.table["handles"].tolist() == [(index + 1,) for index in range(len(opened.instructions))]
    assert comparison.table["two: Δ ms"].notna().all()
    assert (comparison.table["two: max error"] > 0).all()
    assert comparison.totals.loc["one", "program bytes"] == len(plain.program.buffer)


def test_file_beside_its_lowering_is_joined_through_it(plain: wb.Lowering) -> None:
    opened = wb.open(plain.program.buffer)
    run = opened.run(*INPUTS, profile=True)
    with pytest.raises(TraceError, match="nothing says"):
        wb.compare(plain.relower(wb.Recipe(partitioner=ADD_MUL)), run)
    comparison = wb.compare(plain, opened, run)
    assert set(comparison.table["status"]) == {"matched"}
    assert comparison.table["c: ms"].notna().any()
    assert "a: ms" not in comparison.table


def test_files_of_different_programs_are_refused(plain: wb.Lowering, delegated: wb.Lowering) -> None:
    with pytest.raises(TraceError, match="same program"):
        wb.compare(wb.open(plain.program.buffer), wb.open(delegated.program.buffer))
    with pytest.raises(wb.WorkbenchError, match="can't be compared"):
        wb.compare(plain, 3)  # type: ignore[arg-type]


def test_instruction_of_several_ways_counts_once() -> None:
    class Ways(nn.Module):
        def forward(self, p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(p, lambda x: x.sin(), lambda x: x.cos(), (torch.relu(x),)) * 3

    x = torch.randn(64)
    lowering = wb.lower(Ways(), (torch.tensor(True), x))
    trace = lowering.new_trace()
    for way in (True, False, True):
        lowering.execute(torch.tensor(way), x, trace=trace)
    run = lowering.profile(trace)
    comparison = wb.compare(run, run)
    row = next(row for row in comparison.rows if any("relu" in name for name in row.cells[0].operators))
    events = [event for event in run.events_of("forward") if "relu" in event.name]
    assert len(events) == 2  # one block for each way
    times = sorted(time for event in events for time in event.perf_data.raw)
    assert row.cells[0].milliseconds == pytest.approx(times[1])


@pytest.mark.parametrize(
    ("reference", "value", "ratio", "largest"),
    [
        ([1.0, 2.0], [1.0, 2.0], math.inf, 0.0),
        ([1.0, 1.0], [1.0, 0.9], 10 * math.log10(2 / 0.01), 0.1),
        ([0.0, 0.0], [0.0, 1.0], -math.inf, 1.0),
        ([1.0, 1.0], [1.0, math.inf], -math.inf, math.inf),
        ([1.0, math.inf], [1.0, math.inf], math.inf, 0.0),
        ([1.0, 1.0], [1.0, math.nan], math.nan, math.nan),
        ([], [], math.inf, 0.0),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_error_of_special_values(
    reference: list[float], value: list[float], ratio: float, largest: float, dtype: torch.dtype
) -> None:
    found = error(torch.tensor(reference, dtype=dtype), torch.tensor(value, dtype=dtype))
    tolerance = 1e-5 if dtype is torch.float32 else 3e-2
    assert found == pytest.approx((ratio, largest), rel=tolerance, nan_ok=True)


def test_comparison_of_a_thousand_nodes_takes_little_time() -> None:
    class Deep(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(250):
                x = torch.relu(x + 1.5)
            return x

    x = torch.randn(4)
    lowering = wb.lower(Deep(), (x,))
    run = lowering.run(x, values=True, repeat=2)
    assert len(run.table) > 500
    start = time.process_time()
    comparison = wb.compare(run, run)
    assert time.process_time() - start < 0.5  # 0.05 on an idle machine; 10,000 nodes take less than 1 s
    assert len(comparison.rows) == 500


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_names_that_do_not_fit_are_refused(plain: wb.Lowering, names: list[str]) -> None:
    with pytest.raises(wb.WorkbenchError, match="name"):
        wb.compare(plain, plain, names=names)


def test_one_side_is_no_comparison(plain: wb.Lowering) -> None:
    with pytest.raises(wb.WorkbenchError, match="at least two"):
        wb.compare(plain)
    with pytest.raises(wb.WorkbenchError, match="no method"):
        wb.compare(plain, plain, method="backward")
