"""The graph where no script runs."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import DisplayError
from workbench_widgets.context import Context
from workbench_widgets.graph import VIEW
from workbench_widgets.view import Picture

SVG = "{http://www.w3.org/2000/svg}"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.a(x)) + torch.sigmoid(self.b(x))


def draw(context: Context) -> Picture:
    assert VIEW.picture is not None
    return VIEW.picture(context)


def drawing(picture: Picture) -> ElementTree.Element:
    found = re.search(r"<svg.*?</svg>", picture.html, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found[0])


@pytest.fixture
def blocks() -> Context:
    model = nn.Sequential(*(Block() for _ in range(20))).eval()
    return Context(wb.lower(model, (torch.randn(2, 4),), progress=False))


def test_equal_blocks_are_one_box(blocks: Context) -> None:
    pytest.importorskip("workbench_widgets._layout", reason="the native layout engine is not built")
    root = drawing(draw(blocks))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "\N{MULTIPLICATION SIGN}20 Block" in texts
    assert len(texts) < 20


def test_boxes_lie_inside_and_apart(lowering: wb.Lowering) -> None:
    pytest.importorskip("workbench_widgets._layout", reason="the native layout engine is not built")
    root = drawing(draw(Context(lowering.edge)))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    boxes = [
        tuple(float(element.attrib[name]) for name in ("x", "y", "width", "height"))
        for element in root.iter(f"{SVG}rect")
    ]
    assert len(boxes) >= 5
    for number, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
        for x2, y2, w2, h2 in boxes[:number]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_without_the_engine_operators_are_counted(
    lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DisplayError("not built")

    # By its name, the package has the function in it, not the module.
    monkeypatch.setattr(sys.modules["workbench_widgets.graph.picture"], "layout", refuse)
    root = drawing(draw(Context(lowering.exported)))
    texts = " ".join(element.text or "" for element in root.iter(f"{SVG}text"))
    assert "aten.linear.default" in texts


def test_the_text_counts_operators(lowering: wb.Lowering) -> None:
    picture = draw(Context(lowering.exported))
    assert picture.text.startswith("forward, exported: 6 calls")
    assert re.search(r"2 +aten\.linear\.default", picture.text)
    assert "<table>" in picture.html
    assert "aten.sigmoid.default" in picture.html


def test_an_opened_program_is_drawn(lowering: wb.Lowering) -> None:
    opened = wb.open(lowering.program.buffer)
    assert "forward, program" in draw(Context(opened)).text
