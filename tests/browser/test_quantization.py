"""The quantization view: the table, the pictures of observers, the switch of a layer, the graph beside it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator

from browser.lab import Lab

# A network with a value far from the others, so that an observer clips, and an operator left in floats.
SETUP = """
class Block(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))

class Digits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(1, 8), Block(8, 16)
        self.head = torch.nn.Linear(16 * 16, 10)

    def forward(self, x):
        y = torch.nn.functional.max_pool2d(self.second(self.first(x)), 2)
        return torch.softmax(self.head(y.flatten(1)), dim=-1)

def digits(**options):
    from workbench.quantization import XNNPACKQuantizer, get_symmetric_quantization_config
    torch.manual_seed(0)
    model = Digits().eval()
    with torch.no_grad():
        model.second.conv.weight[3] *= 12
    samples = [(torch.randn(1, 1, 8, 8),) for _ in range(8)]
    samples[3][0][0, 0, 2, 2] = 40.0
    config = get_symmetric_quantization_config(
        is_per_channel=True, observer="percentile", observer_options={"percentile": 99.5}
    )
    recipe = wb.Recipe(
        quantizer=XNNPACKQuantizer().set_global(config), calibration=samples,
        partitioner="workbench.backends.xnnpack:XnnpackPartitioner", **options,
    )
    return wb.lower(model, samples[0], recipe=recipe, progress=False)
"""


@pytest.fixture
def shown(lab: Lab) -> Lab:
    """A kernel that knows the network."""
    lab.kernel.run(SETUP)
    lab.kernel.run("lowering = digits()")
    return lab


def rows(view: Locator) -> list[str]:
    return view.locator('[aria-label="Operators"] tbody tr[data-row]').all_inner_texts()


def pick(view: Locator, name: str) -> None:
    view.locator('[aria-label="Operators"] tbody td', has_text=re.compile(rf"^{name}$")).first.click()


def test_stage_shows_operators_and_what_observers_saw(shown: Lab) -> None:
    view = shown.show("lowering.calibrated")
    assert view.locator(".wb-error").count() == 0, view.inner_text()
    table = rows(view)
    states = {row.split("\t")[0]: row.split("\t")[1] for row in table}
    assert states["conv2d"] == "● quantized" and states["softmax"] == "○ float", states
    # The worst first: before anything was measured, what is clipped most.
    shares = view.locator('[aria-label="Operators"] tbody tr[data-row] td:nth-child(3)').all_inner_texts()
    numbers = [float(text.rstrip(" %")) for text in shares if "%" in text]
    assert numbers == sorted(numbers, reverse=True) and numbers[0] > 0
    pick(view, "conv2d")
    view.get_by_role("tab", name="input x").click()
    picture = view.locator('[aria-label="Histogram"] svg')
    assert "clipped" in (picture.get_attribute("aria-label") or "")
    assert picture.locator(".wb-quant-outside").count() > 0
    picture.focus()
    shown.page.keyboard.press("End")
    assert "clipped" in view.locator('[aria-label="Histogram"] .wb-quant-said').inner_text()
    view.get_by_text("The histogram as a table").click()
    bins = view.locator('table[aria-label="Histogram"] tbody tr[data-row]')
    shown.until(lambda: bins.count() > 0, "the table of bins stays empty")
    shown.pictures("quantization-stage", view)
    shown.width(480)
    shown.page.wait_for_timeout(200)
    assert shown.overflow(view) == []


def test_layer_is_switched_measured_again_and_taken_back(shown: Lab) -> None:
    shown.open("wb.workbench(lowering)")
    shown.run()
    panel = shown.view()
    panel.get_by_role("tab", name=re.compile("^Quantized")).click()
    view = panel.locator('[data-view="quantization"]')
    view.get_by_role("button", name="Measure the error of each operator").click()
    said = view.locator(".wb-quant-foot")
    shown.until(lambda: "Measured on 8 samples" in said.inner_text(), "nothing was measured")
    errors = view.locator('[aria-label="Operators"] tbody tr[data-row] td:nth-child(4)')
    shown.until(lambda: any("dB" in text for text in errors.all_inner_texts()), "no errors are shown")
    numbers = [float(text.split()[0]) for text in errors.all_inner_texts() if "dB" in text]
    assert len(numbers) > 3 and numbers == sorted(numbers)
    colours = panel.locator('[data-view="graph"] select option').all_inner_texts()
    assert {"Own error (SQNR)", "Inherited error (SQNR)", "Saturation"} <= set(colours)
    colour = panel.locator('[data-view="graph"]').get_by_label("Colour by", exact=True)
    shown.until(lambda: colour.input_value() == "quantization_own", "the graph has other colours")
    before = shown.kernel.value("lowering.quantized.fingerprint")
    pick(view, "conv2d_1")
    assert shown.kernel.value("lowering.selection.node") == "conv2d_1"
    view.get_by_label("Type", exact=True).select_option("float")
    view.get_by_role("button", name="Write the decision").click()
    shown.until(lambda: "conv2d_1: float" in said.inner_text(), "the layer was not switched", 30)
    edits = "[dict(edit.data) for edit in lowering.recipe.edits]"
    assert shown.kernel.value(edits) == [{"config": None, "node": "conv2d_1"}]
    measured = re.search(r"(\d+) of (\d+) operators measured again", said.inner_text())
    assert measured is not None and 0 < int(measured[1]) < int(measured[2])
    assert any(row.startswith("conv2d_1") and "float" in row for row in rows(view))
    shown.pictures("quantization-panel", panel)
    view.get_by_role("button", name="Decisions by hand").click()
    code = view.locator(".wb-quant-code").inner_text()
    # The code replays: on a lowering without edits it gives the same program.
    shown.kernel.run(f"other = digits(); exec({code!r}, {{'lowering': other}})")
    assert shown.kernel.value("other.program.buffer == lowering.program.buffer")
    view.get_by_role("button", name="Undo", exact=True).click()
    shown.until(lambda: "Undone" in said.inner_text(), "nothing was undone", 30)
    assert shown.kernel.value("lowering.quantized.fingerprint") == before
    assert shown.kernel.value("len(lowering.recipe.edits)") == 0


def test_lowering_without_a_quantizer_has_no_such_stage(lab: Lab) -> None:
    panel = lab.show("wb.workbench(lowered('chain'))")
    assert panel.get_by_role("tab", name=re.compile("^Quantized")).count() == 0
