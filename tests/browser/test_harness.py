"""The harness sees what it is there to see."""

from __future__ import annotations

import pytest

from browser.lab import Lab
from browser.server import chromium


def test_cell_runs_and_python_answers(lab: Lab) -> None:
    lab.open("answer = 6 * 7\nprint('said', answer)")
    lab.run()
    assert lab.cell().locator(".jp-OutputArea-output").inner_text().strip() == "said 42"
    assert lab.kernel.value("answer") == 42


def test_error_in_the_console_is_seen(lab: Lab) -> None:
    lab.page.evaluate("console.error('on purpose')")
    with pytest.raises(AssertionError, match="on purpose"):
        lab.check()


def test_error_of_the_page_is_seen(lab: Lab) -> None:
    lab.page.evaluate("() => { setTimeout(() => { throw new Error('thrown on purpose') }, 0) }")
    lab.page.wait_for_timeout(50)
    with pytest.raises(AssertionError, match="thrown on purpose"):
        lab.check()


def test_request_to_another_host_is_seen(lab: Lab) -> None:
    lab.page.evaluate("fetch('http://example.invalid/x').catch(() => null)")
    lab.page.wait_for_timeout(50)
    with pytest.raises(AssertionError, match=r"example\.invalid"):
        lab.check()


def test_theme_and_width_change(lab: Lab) -> None:
    lab.theme("dark")
    assert lab.page.evaluate("document.body.dataset.jpThemeLight") == "false"
    lab.width(480)
    assert lab.page.evaluate("innerWidth") == 480 + 130


def test_missing_browser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(RuntimeError, match="apt-get install chromium"):
        chromium()
