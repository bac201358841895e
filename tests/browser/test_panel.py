"""The panel of all views: its stages, its one selection, a run, lowering again, the report."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, expect

from browser.lab import Lab

SHOW = "shown = wb.workbench(fresh('chain')); shown"


def _stage(view: Locator, name: str) -> Locator:
    return view.locator(f"[role=tab][data-stage={name}]")


def test_stages_are_walked_by_keyboard(lab: Lab) -> None:
    view = lab.show(SHOW)
    bar = view.get_by_role("tablist", name="Stages")
    _stage(view, "exported").focus()
    seen = []
    for _ in range(7):
        chosen = bar.locator("[role=tab][aria-selected=true]")
        seen.append(chosen.get_attribute("data-stage"))
        expect(view.locator(".wb-slot:visible").first).to_be_visible()
        expect(view.locator(".wb-error")).to_have_count(0)
        lab.page.keyboard.press("ArrowRight")
    assert seen == ["exported", "edge", "partitioned", "lowered", "planned", "program", "run"]
    assert _stage(view, "exported").get_attribute("aria-selected") == "true"
    lab.page.keyboard.press("End")
    assert _stage(view, "run").get_attribute("aria-selected") == "true"


def test_selection_is_one_for_all_stages_and_python(lab: Lab) -> None:
    view = lab.show(SHOW)
    lab.kernel.run("shown.context.lowering.selection = 'relu'")
    line = view.locator(".wb-selection-line")
    expect(line).to_contain_text("relu")
    _stage(view, "program").click()
    rows = view.locator("[data-view=program] tr[aria-selected=true]")
    expect(rows.first).to_contain_text("relu")
    _stage(view, "run").click()
    view.get_by_role("button", name="Select nothing").click()
    lab.kernel.until("bool(shown.context.lowering.selection)", lambda found: found is False)
    expect(line).to_contain_text("Nothing selected")


def test_run_is_started_from_anywhere(lab: Lab) -> None:
    view = lab.show(SHOW)
    view.get_by_role("button", name="Run with the example inputs and measure").click()
    expect(_stage(view, "run")).to_have_attribute("aria-selected", "true")
    expect(_stage(view, "run")).to_contain_text("ms", timeout=20_000)
    expect(view.locator("[data-view=profile] tr[data-row]").first).to_be_visible()
    assert lab.kernel.value("shown.context.run is not None")


def test_lowering_again_is_told_in_the_panel(lab: Lab) -> None:
    view = lab.show(SHOW)
    lab.kernel.run("shown.context.lowering.update(wb.Recipe(partitioner=DEMO), progress=False)")
    note = view.locator(".wb-panel-note")
    expect(note).to_contain_text("Re-lowered")
    expect(note).to_contain_text("2 partitions, was 0 partitions")
    expect(_stage(view, "partitioned")).to_contain_text("2 partitions")
    assert "wb-stage-changed" in (_stage(view, "partitioned").get_attribute("class") or "")
    view.get_by_role("button", name="All choices that lead to this program").click()
    expect(view.locator(".wb-drawer")).to_contain_text("AddMulPartitionerDemo")
    lab.page.keyboard.press("Escape")


def test_graph_and_view_share_the_room(lab: Lab) -> None:
    view = lab.show(SHOW)
    _stage(view, "planned").click()
    graph, memory = view.locator("[data-view=graph]"), view.locator("[data-view=memory]")
    expect(memory).to_be_visible()
    border = view.get_by_role("separator", name="Border between the graph and the view")
    before = graph.bounding_box()
    border.focus()
    lab.page.keyboard.press("Home")
    after = graph.bounding_box()
    assert before is not None and after is not None and after["width"] < 0.5 * before["width"]
    view.get_by_role("button", name="Only the stage's own view").click()
    expect(graph).not_to_be_visible()
    view.get_by_role("button", name="Only the graph").click()
    expect(memory).not_to_be_visible()
    view.get_by_role("button", name="The graph and the stage's own view").click()
    expect(graph).to_be_visible()
    expect(memory).to_be_visible()


def test_panel_takes_the_height_of_the_window(lab: Lab) -> None:
    view = lab.show(SHOW)
    toggle = view.get_by_role("button", name="As high as the window")
    toggle.click()
    box = view.bounding_box()
    assert box is not None and box["height"] > 800
    toggle.click()
    box = view.bounding_box()
    assert box is not None and abs(box["height"] - 680) < 3


def test_report_is_saved_and_opens_without_a_kernel(lab: Lab, tmp_path: Path) -> None:
    view = lab.show(SHOW)
    _stage(view, "planned").click()
    with lab.page.expect_download() as download:
        view.get_by_role("button", name="Save all views as one HTML file").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    expect(view.locator(".wb-panel-note")).to_contain_text("Saved report_forward.html")
    page = lab.watched(lab.page.context.browser.new_page())  # type: ignore[union-attr]
    page.goto(path.as_uri())
    expect(page.locator("[role=tab][data-stage=planned]")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-view=memory]")).to_be_visible()
    page.close()
    lab.check()
