"""The profile view beyond its table: streams while the kernel is busy, the keyboard, the run before."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import SCREENSHOTS, Lab

SHOWN = (
    "one = fresh('onet_static', partitioner=DEMO)\n"
    "one.run(*network('onet_static').inputs, profile=True, repeat=3)"
)


@pytest.fixture
def view(lab: Lab) -> Locator:
    return lab.show(SHOWN)


def test_run_in_the_background_streams_while_the_kernel_is_busy(lab: Lab) -> None:
    lab.open(
        "one = fresh('onet_static')\n"
        "one.run(*network('onet_static').inputs, profile=True, repeat=10**7, background=True)",
        lab.waiting,
    )
    lab.run(0)
    view = lab.view(0)
    with lab.busy(1):
        executions = view.locator(".wb-profile-summary .wb-profile-fact").nth(1)
        before = executions.inner_text()
        lab.until(lambda: executions.inner_text() != before, "nothing streams")
    view.get_by_role("button", name="Stop after").click()
    expect(view.locator(".wb-profile-summary")).to_contain_text("stopped")


def test_next_run_stands_beside_the_one_before(lab: Lab, view: Locator) -> None:
    view.get_by_label("Executions at most").fill("40")
    view.get_by_label("Seconds at most").fill("")
    lab.page.keyboard.press("Enter")
    expect(view.locator(".wb-profile-summary")).to_contain_text("40 executions")
    expect(view.locator(".wb-profile-summary")).to_contain_text("before")
    assert view.locator(".wb-profile-before").count() > 0


def test_timeline_and_roofline_by_keyboard(lab: Lab, view: Locator) -> None:
    view.get_by_role("tab", name="Table").focus()
    lab.page.keyboard.press("ArrowRight")
    timeline = view.get_by_role("application", name="Timeline")
    expect(timeline).to_be_visible()
    expect(view.get_by_text(re.compile(r"execution \d, "))).to_be_visible()
    timeline.focus()
    for key in ("PageDown", "PageDown", ".", ".", "Enter"):
        lab.page.keyboard.press(key)
    lab.until(lambda: lab.kernel.value("len(one.selection.handles)"), "Enter selects nothing")
    lab.page.keyboard.press("w")
    view.screenshot(path=SCREENSHOTS / "profile-timeline.png")
    view.get_by_role("tab", name="Timeline").focus()
    lab.page.keyboard.press("ArrowRight")
    expect(view.get_by_text("One core:")).to_be_visible()
    view.get_by_role("application", name="Roofline").focus()
    lab.page.keyboard.press("ArrowRight")
    expect(lab.page.locator(".wb-tooltip:visible")).to_contain_text("of the limit")
    view.screenshot(path=SCREENSHOTS / "profile-roofline.png")
    lab.page.keyboard.press("Enter")
    lab.until(lambda: lab.kernel.value("one.selection.node"), "Enter selects no node")
