"""Reports, opened from their file: all views, one selection, light and dark, and without a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import workbench as wb
from browser.lab import SCREENSHOTS
from networks import build

STAGES = ("exported", "edge", "partitioned", "lowered", "planned", "program", "run")
DEMO = "workbench.backends.demo:AddMulPartitionerDemo"


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    torch.set_num_threads(1)
    network = build("resnet18")
    return wb.lower(network.model, network.inputs, recipe=wb.Recipe(partitioner=DEMO), progress=False)


@pytest.fixture(scope="module")
def file(lowering: wb.Lowering, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    lowering.to_html(path, run=lowering.run(*lowering.example_inputs(), profile=True, repeat=3))
    return path


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test on errors and on requests for anything but the file."""
    made = browser.new_page(viewport={"width": 1400, "height": 900})
    problems: list[str] = []
    made.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:", "blob:")) else problems.append(request.url)
        ),
    )
    yield made
    made.close()
    assert problems == []


def test_every_stage_is_shown(page: Page, file: Path) -> None:
    page.goto(file.as_uri())
    for stage in STAGES:
        page.locator(f"[role=tab][data-stage={stage}]").click()
        expect(page.locator(".wb-slot:visible canvas").first).to_be_visible()
        expect(page.locator(".wb-error")).to_have_count(0)
    expect(page.get_by_role("button", name="Run with the example inputs")).to_have_count(0)


def test_selection_is_one_for_all_views(page: Page, file: Path) -> None:
    page.goto(file.as_uri())
    page.locator("[role=tab][data-stage=run]").click()
    row = page.locator("[data-view=profile] tr[data-row]").first
    name = row.locator("td").first.inner_text().strip()
    row.click()
    expect(page.locator(".wb-selection-line")).to_contain_text(name)
    page.locator("[role=tab][data-stage=program]").click()
    expect(page.locator("[data-view=program] tr[aria-selected=true]").first).to_be_visible()
    page.get_by_role("button", name="Select nothing").click()
    expect(page.locator(".wb-selection-line")).to_contain_text("Nothing selected")


@pytest.mark.parametrize("width", [1400, 480])
def test_theme_is_chosen_and_kept(page: Page, file: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(file.as_uri())
    page.locator("[role=tab][data-stage=planned]").click()
    expect(page.locator("[data-view=memory] canvas, [data-view=memory] svg").first).to_be_visible()
    colours = []
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        page.get_by_role("combobox", name="Theme").select_option(theme)
        page.wait_for_timeout(300)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.screenshot(path=SCREENSHOTS / f"report-{theme}-{width}.png")
    assert colours == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == colours[1]


def test_nothing_sticks_out_of_a_narrow_page(page: Page, file: Path) -> None:
    page.set_viewport_size({"width": 480, "height": 900})
    page.goto(file.as_uri())
    for stage in STAGES:
        page.locator(f"[role=tab][data-stage={stage}]").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 480


def test_still_pictures_stand_in_where_no_script_runs(browser: Browser, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("noscript section svg").first).to_be_visible()
    assert page.locator("noscript section").count() == 7
    expect(page.get_by_text("AddMulPartitionerDemo").first).to_be_attached()
    context.close()


def test_comparison_keeps_its_view(page: Page, lowering: wb.Lowering, tmp_path: Path) -> None:
    path = tmp_path / "compared.html"
    wb.compare(lowering.relower(wb.Recipe()), lowering, names=["plain", "delegated"]).to_html(path)
    page.goto(path.as_uri())
    page.get_by_role("radio", name="Hold the others against delegated").check()
    expect(page.get_by_role("grid", name="Rows of the comparison").locator("thead")).to_contain_text(
        "plain: Δ"
    )
    page.get_by_role("button", name="Each row as a point").click()
    page.get_by_role("button", name="The graphs next to each other").click()
    expect(page.locator(".wb-graph-side canvas:visible")).not_to_have_count(0)
    page.locator("tr[data-row]").filter(has_text="Changed").first.click()
    expect(page.locator("tr[aria-selected=true]")).to_have_count(1)
    expect(page.locator(".wb-error")).to_have_count(0)


def test_program_from_a_file_is_shown(page: Page, lowering: wb.Lowering, tmp_path: Path) -> None:
    path = tmp_path / "program.html"
    opened = wb.open(lowering.program.buffer)
    opened.to_html(path, run=opened.run(*opened.random_inputs(), profile=True))
    page.goto(path.as_uri())
    for stage in ("program", "run"):
        page.locator(f"[role=tab][data-stage={stage}]").click()
        expect(page.locator(".wb-slot:visible tr[data-row]").first).to_be_visible()
        expect(page.locator(".wb-error")).to_have_count(0)
    expect(page.get_by_role("button", name="All choices that lead to this program")).to_have_count(0)
