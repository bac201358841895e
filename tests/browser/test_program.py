"""The program view: bytes, instructions, delegates, and any file."""

from __future__ import annotations

from pathlib import Path

from browser.lab import Lab

PROGRAM = "lowered('onet_static', partitioner=DEMO).program"
SELECTED = "sorted(lowered('onet_static', partitioner=DEMO).selection.handles)"


def test_instruction_is_linked_to_the_graph_and_to_python(lab: Lab) -> None:
    view = lab.show(PROGRAM)
    grid = view.get_by_role("grid", name="Instructions")
    grid.locator("tr[data-row]").filter(has_text="aten::_softmax").click()
    wanted = lab.kernel.value(
        "sorted(lowered('onet_static', partitioner=DEMO).edge.table.set_index('node').handles['_softmax'])"
    )
    lab.kernel.until(SELECTED, lambda found: found == wanted)
    lab.kernel.run("lowered('onet_static', partitioner=DEMO).selection = 'addmm'")
    lab.until(
        lambda: grid.locator("tr[aria-selected=true]").filter(has_text="addmm").count() == 1, "not marked"
    )


def test_treemap_is_walked_and_entered_by_keyboard(lab: Lab) -> None:
    view = lab.show(PROGRAM)
    where = view.get_by_role("navigation", name="Where the map is")
    start = where.inner_text()
    view.locator("canvas").first.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        lab.page.keyboard.press(key)
        lab.page.wait_for_timeout(60)
    lab.until(lambda: where.inner_text() != start, "Enter does not go in")
    lab.page.keyboard.press("Backspace")
    lab.until(lambda: where.inner_text() == start, "Backspace does not go out")


def test_click_on_a_constant_selects_who_uses_it(lab: Lab) -> None:
    view = lab.show(PROGRAM)
    lab.kernel.run("lowered('onet_static', partitioner=DEMO).selection.clear()")
    box = view.locator("canvas").first.bounding_box()
    assert box is not None
    # dense5.weight takes three quarters of the file: it covers the middle of the left half.
    lab.page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    dense = lab.kernel.value(
        "sorted(lowered('onet_static', partitioner=DEMO).edge.table.set_index('node').handles['addmm'])"
    )
    lab.kernel.until(SELECTED, lambda found: bool(set(found) & set(dense)) or 13 in found)


def test_delegates_are_opened(lab: Lab) -> None:
    view = lab.show(PROGRAM)
    view.get_by_role("tab", name="Delegates").click()
    text = view.inner_text()
    assert "AddMulBackendDemo" in text
    lab.until(lambda: "mul" in view.get_by_role("tabpanel").inner_text().lower(), "the blob is not opened")


def test_opened_file_shows_its_program_without_a_lowering(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "onet.pte"
    lab.kernel.run(f"lowered('onet_static').save({str(path)!r})")
    view = lab.show(f"opened = wb.open({str(path)!r})\nopened")
    assert "aten::convolution.out" in view.inner_text()
    view.get_by_role("grid", name="Instructions").locator("tr[data-row]").nth(3).click()
    lab.kernel.until("sorted(opened.selection.handles)", lambda found: found == [4])


def test_parts_are_found_by_name(lab: Lab) -> None:
    view = lab.show(PROGRAM)
    view.get_by_role("searchbox", name="Find parts of the file").fill("prelu")
    lab.page.wait_for_timeout(200)
    view.get_by_role("button", name="The parts of the file as a table").click()
    lab.until(lambda: view.get_by_role("grid").first.is_visible(), "no table")
    view.get_by_role("combobox", name="What the map is grouped by").select_option(index=1)
    assert view.locator(".wb-error").count() == 0
