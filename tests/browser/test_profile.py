"""The profile view: running, stopping, sorting, grouping, saving."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from playwright.sync_api import Locator

from browser.lab import Lab

SUBJECT = "measured('onet_static', partitioner=DEMO)"
SELECTED = "sorted(lowered('onet_static', partitioner=DEMO).selection.handles)"


def first_cells(view: Locator) -> list[str]:
    return [text.strip() for text in view.locator("tbody tr[data-row] td:first-child").all_inner_texts()]


def test_row_selects_its_node_and_python_marks_the_row(lab: Lab) -> None:
    view = lab.show(SUBJECT)
    grid = view.get_by_role("treegrid", name="Profile")
    grid.locator("tr[data-row]").filter(has_text="convolution_1").click()
    lab.kernel.run("table = lowered('onet_static', partitioner=DEMO).edge.table.set_index('node')")
    wanted = lab.kernel.value("sorted(table.handles['convolution_1'])")
    lab.kernel.until(SELECTED, lambda found: found == wanted)
    lab.kernel.run("lowered('onet_static', partitioner=DEMO).selection = '_softmax'")
    lab.until(
        lambda: grid.locator("tr[aria-selected=true]").filter(has_text="softmax").count() == 1, "not marked"
    )


def test_headings_sort(lab: Lab) -> None:
    view = lab.show(SUBJECT)
    by_time = first_cells(view)
    view.get_by_role("button", name="Node", exact=True).click()
    lab.until(lambda: first_cells(view) != by_time, "not sorted by name")
    names = [name.lstrip("▸▾ ") for name in first_cells(view)]
    assert names == sorted(names)


def test_rows_are_grouped_by_module_and_operator(lab: Lab) -> None:
    view = lab.show(SUBJECT)
    group = view.get_by_role("combobox", name="Group rows by")
    values = group.locator("option").evaluate_all("(all) => all.map((one) => one.textContent)")
    assert any("module" in text for text in values) and any("operator" in text for text in values)
    group.select_option(label=next(text for text in values if "operator" in text))
    lab.until(
        lambda: any(name.lstrip("▸▾ ").startswith("convolution ") for name in first_cells(view)),
        "no group of convolutions",
    )
    group.select_option(label=next(text for text in values if "module" in text))
    lab.until(
        lambda: any("prelu1" in name or "conv1" in name for name in first_cells(view)), "no group of a module"
    )


def test_inside_of_a_delegate_is_opened(lab: Lab) -> None:
    view = lab.show(SUBJECT)
    grid = view.get_by_role("treegrid", name="Profile")
    closed = grid.locator("tr[aria-expanded=false]").first
    closed.wait_for()
    before = view.locator("tr[data-row]").count()
    closed.click()
    lab.page.keyboard.press("ArrowRight")
    lab.until(lambda: view.locator("tr[aria-expanded=true]").count() >= 1, "the delegate stays closed")
    assert view.locator("tr[data-row]").count() >= before


def test_run_fills_the_table_while_it_runs_and_stop_ends_it(lab: Lab) -> None:
    lab.kernel.run("live = fresh('vit_tiny')")
    view = lab.show("live.run(*network('vit_tiny').inputs, profile=True)")
    view.get_by_role("spinbutton", name="Executions at most").fill("5000")
    view.get_by_role("spinbutton", name="Seconds at most").fill("60")
    view.get_by_role("button", name="Run and measure").click()
    stop = view.get_by_role("button", name="Stop")
    stop.wait_for()
    status = view.get_by_role("status").first
    seen = set()

    def fills() -> bool:
        seen.add(status.inner_text())
        return len(seen) >= 4

    lab.until(fills, "the figures do not change while it runs", timeout=20)
    stop.click()
    lab.until(
        lambda: view.get_by_role("button", name="Run and measure").is_visible(), "it did not stop", timeout=20
    )
    assert lab.kernel.value("1 + 1") == 2, "the kernel is free"


def test_timeline_and_roofline_draw(lab: Lab) -> None:
    view = lab.show(SUBJECT)
    for page in ("Timeline", "Roofline"):
        view.get_by_role("tab", name=page).click()
        lab.until(lambda: view.locator("canvas, svg").first.is_visible(), f"no picture on {page}", timeout=20)
        assert view.locator(".wb-error").count() == 0
    lab.until(
        lambda: "GFLOP" in view.inner_text() or "FLOP" in view.inner_text(), "no peaks are named", timeout=20
    )


def test_trace_and_table_are_saved(lab: Lab, tmp_path: Path) -> None:
    view = lab.show(SUBJECT)
    save = view.get_by_role("combobox", name="Save")
    options = save.locator("option").evaluate_all("(all) => all.map((one) => [one.value, one.textContent])")
    saved = {}
    for value, text in options:
        if not value:
            continue
        with lab.page.expect_download() as started:
            save.select_option(value)
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        saved[text] = path
    kinds = {path.suffix for path in saved.values()}
    assert {".json", ".csv"} <= kinds, saved
    trace = json.loads(next(path for path in saved.values() if path.suffix == ".json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert any("convolution" in str(event.get("name")) for event in events)
    rows = list(csv.DictReader(next(p for p in saved.values() if p.suffix == ".csv").open()))
    assert len(rows) > 10
