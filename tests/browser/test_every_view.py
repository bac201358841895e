"""What holds for each view: it draws, light and dark, wide and narrow, and keeps to itself."""

from __future__ import annotations

import pytest

from browser.lab import Lab

SUBJECTS = {
    "graph": "lowered('onet_static').edge",
    "partition": "lowered('onet_static', partitioner=DEMO).partitioned",
    "memory": "lowered('onet_static').plan",
    "program": "lowered('onet_static', partitioner=DEMO).program",
    "profile": "measured('onet_static', partitioner=DEMO)",
    "quantization": "quantized('onet_static').quantized",
    "compare": (
        "wb.compare(measured('onet_static'), measured('onet_static', partitioner=DEMO),"
        " names=['plain', 'delegated'])"
    ),
    "panel": "wb.workbench(lowered('onet_static', partitioner=DEMO))",
}
# What takes the keyboard.
STOPS = "canvas[tabindex], table[tabindex], svg[tabindex], select, button:not([disabled])"
views = pytest.mark.parametrize("name", SUBJECTS)


@views
def test_view_draws_in_every_look(lab: Lab, name: str) -> None:
    view = lab.show(SUBJECTS[name])
    assert view.locator(".wb-error").count() == 0, view.inner_text()
    box = view.bounding_box()
    assert box is not None and box["height"] > 200 and box["width"] > 600
    lab.pictures(name, view)
    lab.check()


@views
def test_nothing_of_a_narrow_view_is_cut_off(lab: Lab, name: str) -> None:
    view = lab.show(SUBJECTS[name])
    lab.width(480)
    lab.page.wait_for_timeout(200)
    box = view.bounding_box()
    assert box is not None and abs(box["width"] - 480) < 2
    assert lab.overflow(view) == []


@views
def test_view_draws_while_the_kernel_is_busy(lab: Lab, name: str) -> None:
    """Run All: the next cell keeps the kernel busy, and the view may not wait for it."""
    lab.kernel.run(f"shown = {SUBJECTS[name]}")
    lab.open("shown", lab.waiting)
    lab.run(0, wait=False)
    with lab.busy(1):
        view = lab.view(0)
        assert view.locator(".wb-error").count() == 0


@views
def test_keys_stay_in_the_view(lab: Lab, name: str) -> None:
    """JupyterLab's keys of the command mode: delete a cell, add one, restart the kernel, cut, toggle."""
    lab.kernel.run(f"shown = {SUBJECTS[name]}; alive = 'yes'")
    lab.open("shown", "1 + 1")
    lab.run(0)
    view = lab.view(0)
    before = lab.code_cells()
    tried = 0
    for stop in view.locator(STOPS).element_handles():
        # Only what has the focus now: a key may have closed what was there before.
        if tried == 4 or not stop.is_visible():
            continue
        stop.focus()
        tried += 1
        for key in ("d", "d", "a", "b", "x", "0", "0", "i", "i", "m", "y", "Shift+M"):
            if not stop.evaluate("(el) => el.contains(document.activeElement)"):
                break
            lab.page.keyboard.press(key)
    assert tried
    lab.frames(3)
    assert lab.code_cells() == before
    assert lab.page.locator(".jp-Dialog").count() == 0
    assert lab.kernel.value("alive") == "yes"


@views
def test_closing_a_view_leaves_nothing_behind(lab: Lab, name: str) -> None:
    lab.kernel.run(f"shown = {SUBJECTS[name]}")
    lab.open("shown")
    lab.run()
    lab.view()
    lab.page.evaluate(
        "() => jupyterapp.commands.execute('notebook:clear-cell-output')",
    )
    lab.frames(3)
    assert lab.page.locator(".wb-root").count() == 0
    assert lab.page.locator("body > [class^=wb-]").count() == 0, "something of the view stays on the page"
    lab.width(1000)
    lab.theme("dark")
    lab.frames(3)
    lab.check()
