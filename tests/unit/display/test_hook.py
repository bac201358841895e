"""What draws: found at the first display, replaced by static pictures where it fails."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench import display
from workbench.errors import DisplayError


class Point:
    """An entry point that is not installed."""

    value = "some.package:views"

    def __init__(self, made: Any) -> None:
        self.made = made
        self.loads = 0

    def load(self) -> Any:
        self.loads += 1
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Widgets(display.StaticViews):
    """Draws with widgets, as far as this test is concerned."""

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        return {**super().mimebundle(shown), "application/vnd.test": type(shown).__name__}

    def workbench(self, subject: Any, *, run: Any = None, height: int = 500) -> Any:
        return ("panel", subject, run, height)

    def report(self, subject: Any, *, run: Any = None) -> str:
        return f"<html>{type(subject).__name__} µ {run is not None}</html>"


class Failing(display.StaticViews):
    """Can't draw anything."""

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        raise RuntimeError("no bundle")


@pytest.fixture(scope="module")
def lowering() -> wb.Lowering:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    return wb.lower(model, (torch.ones(1, 4),))


@pytest.fixture
def everything(lowering: wb.Lowering) -> list[Any]:
    inputs = lowering.example_inputs()
    run = lowering.run(*inputs, profile=True)
    comparison = wb.compare(run, lowering)
    return [lowering.edge, lowering, run, lowering.run(*inputs), comparison, wb.open(lowering.program.buffer)]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def install(*points: Point) -> None:
        monkeypatch.setattr(display, "entry_points", lambda group: points if group else ())
        display.register(None)

    yield install
    monkeypatch.undo()
    display.register(None)


def test_everything_shows_itself_through_the_entry_point(installed: Any, everything: list[Any]) -> None:
    point = Point(Widgets())
    installed(point)
    assert point.loads == 0
    for item in everything:
        bundle = item._repr_mimebundle_()
        assert bundle["application/vnd.test"] == type(item).__name__
        assert bundle["text/html"]
        assert bundle["text/plain"]
    assert point.loads == 1


def test_everything_shows_itself_statically(installed: Any, everything: list[Any]) -> None:
    installed()
    for item in everything:
        bundle = item._repr_mimebundle_()
        assert set(bundle) == {"text/html", "text/plain"}
        assert bundle["text/html"].startswith("<")
        assert "<script" not in bundle["text/html"]
    html = everything[1]._repr_mimebundle_()["text/html"]
    for title in ("Exported", "Edge", "Partitioned", "Lowered", "Planned", "Program"):
        assert title in html
    assert "addmm" in everything[2]._repr_mimebundle_()["text/html"]
    assert "(1, 2) float32" in everything[3]._repr_mimebundle_()["text/html"]


def test_broken_package_is_named_once(installed: Any, lowering: wb.Lowering) -> None:
    point = Point(ImportError("no module named anywidget"))
    installed(point)
    with pytest.warns(UserWarning, match="no module named anywidget"):
        assert "text/html" in lowering.edge._repr_mimebundle_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "text/html" in lowering._repr_mimebundle_()
        assert len(lowering.edge.table)
    assert point.loads == 1
    with pytest.raises(DisplayError, match="anywidget"):
        wb.workbench(lowering)


def test_view_that_fails_leaves_the_static_picture(installed: Any, lowering: wb.Lowering) -> None:
    installed(Point(Failing()))
    with pytest.warns(UserWarning, match="RuntimeError: no bundle"):
        bundle = lowering.edge._repr_mimebundle_()
    assert "<svg" in bundle["text/html"]


def test_panel_and_report_go_through_the_hook(
    installed: Any, lowering: wb.Lowering, everything: list[Any], tmp_path: Path
) -> None:
    installed(Point(Widgets()))
    run = everything[2]
    assert wb.workbench(lowering, run=run, height=700) == ("panel", lowering, run, 700)
    with pytest.raises(TypeError, match="unexpected keyword"):
        wb.workbench(lowering, heigth=700)
    path = tmp_path / "report.html"
    lowering.to_html(path, run=run)
    assert path.read_text(encoding="utf-8") == "<html>Lowering µ True</html>"
    everything[-1].to_html(path)
    assert "OpenedProgram" in path.read_text(encoding="utf-8")
    everything[-2].to_html(str(path))
    assert "Comparison" in path.read_text(encoding="utf-8")


def test_panel_and_report_say_what_to_install(installed: Any, lowering: wb.Lowering, tmp_path: Path) -> None:
    installed()
    with pytest.raises(DisplayError, match=r"pip install 'lowering-workbench\[widgets\]'"):
        wb.workbench(lowering)
    path = tmp_path / "report.html"
    with pytest.raises(DisplayError, match=r"pip install 'lowering-workbench\[widgets\]'"):
        lowering.to_html(path)
    assert not path.exists()


def test_static_views_refuse_what_is_not_of_the_workbench() -> None:
    with pytest.raises(DisplayError, match="no view"):
        display.StaticViews().mimebundle(3)


def test_run_in_the_background_does_not_block_its_display(lowering: wb.Lowering) -> None:
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=20_000, background=True)
    bundle = display.StaticViews().mimebundle(run)
    run.cancel()
    assert run.outputs is not None
    assert "Run of forward" in bundle["text/html"]


def test_import_loads_neither_widgets_nor_executorch() -> None:
    code = (
        "import sys, workbench, workbench.lowering, workbench.compare, workbench.opened, workbench.display\n"
        "late = {'anywidget', 'ipywidgets', 'workbench_widgets', 'executorch', 'IPython'}\n"
        "found = late & set(sys.modules)\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Slow(Point):
    """Takes until it is allowed to be there."""

    def __init__(self, made: Any) -> None:
        super().__init__(made)
        self.asked, self.allowed = threading.Event(), threading.Event()

    def load(self) -> Any:
        self.asked.set()
        assert self.allowed.wait(20)
        return super().load()


class Prepared(Widgets):
    """Counts how often it is prepared."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def prepare(self) -> None:
        self.threads.append(threading.current_thread().name)


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "workbench-views"]


def test_views_are_prepared_once_in_a_kernel_and_the_display_waits_for_them(
    installed: Any, lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = Prepared()
    point = Slow(views)
    installed(point)
    monkeypatch.setattr(display, "in_kernel", lambda: True)
    wb.lower(nn.ReLU(), (torch.ones(1),), progress=False)
    assert point.asked.wait(20)
    bundles: list[Any] = []
    shows = threading.Thread(target=lambda: bundles.append(lowering._repr_mimebundle_()))
    shows.start()
    shows.join(0.2)
    assert shows.is_alive() and not bundles, "shown before the views were there"
    point.allowed.set()
    shows.join(20)
    assert bundles[0]["application/vnd.test"] == "Lowering"
    wb.lower(nn.ReLU(), (torch.ones(1),), progress=False)
    for thread in _threads():
        thread.join(20)
    assert point.loads == 1
    assert views.threads == ["workbench-views"]


def test_views_are_not_prepared_outside_of_a_kernel(installed: Any) -> None:
    point = Point(Widgets())
    installed(point)
    wb.lower(nn.ReLU(), (torch.ones(1),), progress=False)
    assert not _threads()
    assert point.loads == 0


@pytest.mark.parametrize("made", [ImportError("no module named anywidget"), Widgets()])
def test_failure_of_the_preparation_is_left_to_the_display(
    installed: Any, lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch, made: Any
) -> None:
    def fail(self: Any) -> None:
        raise RuntimeError("not prepared")

    installed(Point(made))
    monkeypatch.setattr(display, "in_kernel", lambda: True)
    monkeypatch.setattr(Widgets, "prepare", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display.prepare()
        for thread in _threads():
            thread.join(20)
    if isinstance(made, Exception):
        with pytest.warns(UserWarning, match="no module named anywidget"):
            assert "text/html" in lowering._repr_mimebundle_()
    else:
        assert lowering._repr_mimebundle_()["application/vnd.test"] == "Lowering"
