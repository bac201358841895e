"""The comparison: matched rows, another reference, another metric, ExecuTorch beside."""

from __future__ import annotations

import pytest

from browser.lab import Lab
from browser.test_every_view import SUBJECTS


def test_row_selects_its_nodes(lab: Lab) -> None:
    view = lab.show(SUBJECTS["compare"])
    view.get_by_role("grid", name="Rows of the comparison").locator("tr[data-row]").filter(
        has_text="softmax"
    ).click()
    lab.kernel.until(
        "sorted(lowered('onet_static').selection.handles)",
        lambda found: (
            found
            == lab.kernel.value(
                "sorted(lowered('onet_static').edge.table.set_index('node').handles['_softmax'])"
            )
        ),
    )


def test_row_that_is_drawn_anew_while_it_is_pressed_is_chosen(lab: Lab) -> None:
    """Another size, another selection or another metric draw the rows between press and release."""
    view = lab.show(SUBJECTS["compare"])
    rows = view.get_by_role("grid", name="Rows of the comparison").locator("tr[data-row]")
    lab.kernel.run("shown = lowered('onet_static')\nshown.selection.clear()")
    disturbances = {
        "another size": "(root) => { root.querySelector('.wb-frame').style.height = '680px'; }",
        "another selection": None,
        "another metric": "(root) => root.wbView.fill()",
    }
    for name, disturb in disturbances.items():
        row = rows.filter(has_text="softmax")
        row.scroll_into_view_if_needed()
        box = row.bounding_box()
        assert box is not None
        lab.page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
        lab.page.mouse.down()
        if disturb is None:
            lab.kernel.run("shown.selection.set(shown.edge.table.handles.explode().dropna())")
            selected = rows.and_(lab.page.locator("[aria-selected=true]"))
            lab.until(lambda: selected.count() > 5, "the other selection is not shown")  # noqa: B023
        else:
            view.evaluate(disturb)
        lab.frames(3)
        lab.page.mouse.up()
        lab.kernel.until(
            "set(shown.selection.handles) == set(shown.edge.table.set_index('node').handles['_softmax'])"
        )
        assert row.get_attribute("aria-selected") == "true", name
        lab.kernel.run("shown.selection.clear()")
        lab.until(lambda: row.get_attribute("aria-selected") == "false", "still selected")  # noqa: B023


def test_statuses_filter_the_rows(lab: Lab) -> None:
    view = lab.show(SUBJECTS["compare"])
    rows = view.get_by_role("grid", name="Rows of the comparison")
    matched = view.get_by_role("button", name="Show rows: matched")
    matched.click()
    lab.until(
        lambda: rows.locator("tr[data-row]").filter(has_text="Matched").count() == 0, "still matched rows"
    )
    assert rows.locator("tr[data-row]").filter(has_text="Changed").count() == 5


def test_metric_and_reference_change(lab: Lab) -> None:
    view = lab.show(SUBJECTS["compare"])
    headings = view.get_by_role("grid", name="Rows of the comparison").locator("thead")
    before = headings.inner_text()
    metric = view.get_by_role("combobox", name="What is compared")
    values = metric.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
    metric.select_option(next(value for value in values if "bytes" in value))
    lab.until(lambda: headings.inner_text() != before, "the columns do not follow the metric")
    view.get_by_role("radio", name="Hold the others against delegated").check()
    lab.until(lambda: "plain: Δ" in headings.inner_text(), "the reference stays")


def test_graphs_stand_side_by_side(lab: Lab) -> None:
    view = lab.show(SUBJECTS["compare"])
    view.get_by_role("button", name="The graphs next to each other").click()
    lab.until(lambda: view.locator("canvas[aria-label^='Graph.']").count() == 2, "no two graphs", timeout=15)


@pytest.mark.peer
def test_executorch_is_put_beside(lab: Lab) -> None:
    view = lab.show(SUBJECTS["compare"])
    view.get_by_role("button", name="Run the first side's program in ExecuTorch").click()
    totals = view.get_by_role("table", name="Totals")
    lab.until(lambda: "ExecuTorch" in totals.inner_text(), "no third side", timeout=90)
    assert view.locator(".wb-error").count() == 0, view.locator(".wb-error").inner_text()
