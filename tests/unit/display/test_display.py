"""How stages look without widgets, and how something else takes over."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

import workbench as wb
from workbench import display
from workbench.stages import Stage
from workbench.svg import Rectangle, bars, rectangles

STAGES = ("exported", "edge", "partitioned", "lowered", "plan", "program")


@pytest.fixture(autouse=True)
def _static_views() -> Iterator[None]:
    """Whatever is installed."""
    display.register(display.StaticViews())
    yield
    display.register(None)


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    recipe = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")
    return wb.lower(model, (torch.ones(1, 4),), recipe=recipe)


@pytest.fixture
def own_views() -> Iterator[list[Stage]]:
    seen: list[Stage] = []

    class Own(display.StaticViews):
        def mimebundle(self, stage: Stage) -> dict[str, Any]:
            seen.append(stage)
            return {"text/plain": "mine"}

        def table(self, stage: Stage) -> pd.DataFrame:
            return pd.DataFrame({"mine": [1]})

    display.register(Own())
    yield seen


@pytest.mark.parametrize("name", STAGES)
def test_stage_shows_a_picture_and_a_table(lowering: wb.Lowering, name: str) -> None:
    bundle = getattr(lowering, name)._repr_mimebundle_()
    html = bundle["text/html"]
    picture = html[html.index("<svg") : html.index("</svg>") + len("</svg>")]
    root = ElementTree.fromstring(picture)
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert "<table" in html
    assert bundle["text/plain"]
    assert len(getattr(lowering, name).table) > 0


def test_table_of_nodes_leads_to_module_and_source(lowering: wb.Lowering) -> None:
    table = lowering.edge.table
    operators = table[table["op"].str.startswith("aten")]
    assert {"0", "2"} <= {path.split(".")[-1] for path in operators["module"] if path}
    assert operators["source"].str.contains(r"\.py:\d+$").all()
    assert all(operators["handles"])


def test_partitioned_table_has_tag_or_reason_for_each_operator(lowering: wb.Lowering) -> None:
    table = lowering.partitioned.table
    operators = table[table["op"].str.startswith("aten")]
    assert ((operators["tag"] != "") ^ (operators["why_not"] != "")).all()


def test_other_views_take_over(lowering: wb.Lowering, own_views: list[Stage]) -> None:
    assert lowering.edge._repr_mimebundle_() == {"text/plain": "mine"}
    assert own_views == [lowering.edge]
    assert list(lowering.edge.table.columns) == ["mine"]


def test_bars_sum_up_what_they_do_not_show() -> None:
    picture = bars([(f"row {index}", index) for index in range(50)], unit="bytes")
    assert "34 others" in picture
    assert "50 rows, 1,225 bytes in all" in picture
    ElementTree.fromstring(picture)


def test_labels_are_escaped() -> None:
    ElementTree.fromstring(bars([("<a & b>", 1), ("", 0)], unit="x"))
    ElementTree.fromstring(bars([], unit="x"))


def test_plan_draws_each_tensor_where_it_lies(lowering: wb.Lowering) -> None:
    html = lowering.plan._repr_mimebundle_()["text/html"]
    placed = lowering.plan.report.methods["forward"].tensors
    assert placed
    for tensor in placed:
        assert f"{tensor.name}: {tensor.nbytes:,} bytes at {tensor.offset:,}" in html


def test_rectangles_stay_inside_the_picture() -> None:
    items = [Rectangle(f"t{index}", index, index + 2, 16 * index, 64, index == 3) for index in range(8)]
    root = ElementTree.fromstring(rectangles(items, size=176, title="<plan>"))
    drawn = root.findall("{http://www.w3.org/2000/svg}rect")
    assert len(drawn) == len(items)
    for shape in drawn:
        left, top = float(shape.attrib["x"]), float(shape.attrib["y"])
        assert left >= 0
        assert top >= 0
        assert left + float(shape.attrib["width"]) <= 760
        assert top + float(shape.attrib["height"]) <= 260
    many = [Rectangle("t", 0, 1, 0, 1)] * 2000
    assert "1500 of 2000" in rectangles(many, size=1, title="")
