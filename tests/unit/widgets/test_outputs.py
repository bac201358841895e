"""Widgets that no output shows any longer: they let go of their subjects, and come back when shown again."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ipywidgets.widgets.widget import _instances
from torch import nn

import workbench as wb
from workbench import display
from workbench_widgets import hook, widget
from workbench_widgets.hook import WidgetViews
from workbench_widgets.outputs import Outputs
from workbench_widgets.widget import ViewWidget

VIEW = "application/vnd.jupyter.widget-view+json"


class Shell:
    """As much of a kernel's shell as tells which cell runs."""

    def __init__(self) -> None:
        self.callbacks: dict[str, list[Any]] = {"pre_run_cell": [], "post_run_cell": []}
        self.events = SimpleNamespace(register=lambda name, call: self.callbacks[name].append(call))
        self.cell: str | None = None
        self.kernel = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": self.cell}})

    def run(self, cell: str | None, *shown: Any) -> list[str]:
        """Run a cell that shows these objects; the widgets' names on the page."""
        self.cell = cell
        for call in self.callbacks["pre_run_cell"]:
            call(SimpleNamespace(cell_id=cell))
        names = [item._repr_mimebundle_()[VIEW]["model_id"] for item in shown]
        for call in self.callbacks["post_run_cell"]:
            call(None)
        return names


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, bundles: None) -> Iterator[Shell]:
    made = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: made))
    monkeypatch.setattr(hook, "in_kernel", lambda: True)
    monkeypatch.setattr(widget, "outputs", Outputs())
    before = set(_instances)
    display.register(WidgetViews())
    yield made
    display.register(None)
    for name in set(_instances) - before:
        if name in _instances:  # a widget closes its layout with it
            _instances[name].close()


def lowered() -> wb.Lowering:
    return wb.lower(nn.ReLU().eval(), (torch.ones(2),), progress=False)


def _views() -> int:
    return sum(isinstance(item, ViewWidget) for item in _instances.values())


@pytest.mark.parametrize("panel", [False, True])
def test_cell_that_lowers_and_shows_twenty_times_keeps_one(shell: Shell, panel: bool) -> None:
    before, first = _views(), lowered()
    made = []
    for _ in range(20):
        lowering = first.relower(first.recipe)
        made.append(weakref.ref(lowering))
        shell.run("a", wb.workbench(lowering) if panel else lowering)
        del lowering
        assert _views() == before + 1
        assert len(_instances) <= 2 * _views(), "layouts stay"
    gc.collect()
    assert [one() is not None for one in made] == [False] * 19 + [True], "the last one is still shown"


def test_object_that_is_shown_again_keeps_its_widget(shell: Shell) -> None:
    lowering = lowered()
    names = {name for _ in range(5) for name in shell.run("a", lowering)}
    assert len(names) == 1
    assert names <= set(_instances)


def test_widget_that_another_cell_shows_stays(shell: Shell) -> None:
    lowering = lowered()
    (name,) = shell.run("a", lowering)
    assert shell.run("b", lowering) == [name]
    shell.run("a")
    assert name in _instances
    shell.run("b")
    assert name not in _instances


def test_widget_that_is_shown_from_no_known_cell_stays(shell: Shell) -> None:
    (name,) = shell.run(None, lowered())
    shell.run(None)
    shell.run("a")
    assert name in _instances


def test_widget_that_rests_comes_back_with_what_changed_meanwhile(shell: Shell) -> None:
    lowering = lowered()
    panel = wb.workbench(lowering)
    shell.run("a", panel)
    shell.run("a")
    assert panel.comm is None
    assert len(lowering._listeners) == len(lowering.selection._listeners) == 0
    lowering.selection = [1]
    lowering.update(wb.Recipe(memory=wb.MemoryOptions(alignment=64)), progress=False)
    (name,) = shell.run("b", panel)
    assert name in _instances
    assert panel.selection["handles"] == [1]
    assert len(lowering._listeners) == len(lowering.selection._listeners) == 1
    lowering.selection = []
    assert panel.selection["handles"] == []


def test_widget_that_was_closed_does_not_come_back(shell: Shell) -> None:
    panel = wb.workbench(lowered())
    shell.run("a", panel)
    panel.close()
    shell.run("a")
    assert panel.closed
    panel.rest()
    assert panel.closed


def test_widget_that_fails_to_rest_spares_the_others(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = wb.workbench(lowered()), wb.workbench(lowered())
    shell.run("a", first, second)
    rest = ViewWidget.rest

    def fail(self: ViewWidget) -> None:
        if self is first:
            raise OSError("the page is gone")
        rest(self)

    monkeypatch.setattr(ViewWidget, "rest", fail)
    shell.run("a")
    assert second.comm is None
    assert "can't be put away" in caplog.text
