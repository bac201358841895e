"""How objects show themselves: a widget and a still picture in a kernel, the picture alone elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances

import workbench as wb
from workbench import display
from workbench.errors import WorkbenchError
from workbench_widgets import hook, show
from workbench_widgets.hook import WidgetViews
from workbench_widgets.view import all_views
from workbench_widgets.widget import ViewWidget

VIEW = "application/vnd.jupyter.widget-view+json"
DELEGATING = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")


@pytest.fixture(autouse=True)
def views() -> Iterator[WidgetViews]:
    """Views of their own, without the widgets of other tests."""
    made = WidgetViews()
    display.register(made)
    yield made
    display.register(None)
    for widget in list(made._widgets.values()):
        widget.close()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, bundles: None) -> None:
    """As in a Jupyter kernel."""
    monkeypatch.setattr(hook, "in_kernel", lambda: True)


@pytest.fixture
def subjects(lowering: wb.Lowering, tmp_path: Path) -> dict[str, Any]:
    lowering.save(tmp_path / "net.pte")
    return {
        **{name: getattr(lowering, name) for name in ("exported", "edge", "partitioned", "lowered")},
        "plan": lowering.plan,
        "program": lowering.program,
        "lowering": lowering,
        "run": lowering.run(*lowering.example_inputs(), profile=True),
        "run without a trace": lowering.run(*lowering.example_inputs()),
        "opened": wb.open(tmp_path / "net.pte"),
        "comparison": wb.compare(lowering, lowering.relower(DELEGATING)),
    }


NAMES = [
    *("exported", "edge", "partitioned", "lowered", "plan", "program"),
    *("lowering", "run", "run without a trace", "opened", "comparison"),
]


@pytest.mark.parametrize("name", NAMES)
def test_object_shows_a_widget_with_a_picture_beside_it_in_a_kernel(
    subjects: dict[str, Any], kernel: None, name: str
) -> None:
    bundle = subjects[name]._repr_mimebundle_()
    assert set(bundle) == {VIEW, "text/html", "text/plain"}
    assert bundle[VIEW]["model_id"] in _instances
    assert "<" in bundle["text/html"]
    assert "AnyWidget" not in bundle["text/plain"]
    assert "can't be shown" not in bundle["text/html"]


@pytest.mark.parametrize("name", NAMES)
def test_object_shows_a_picture_alone_elsewhere(subjects: dict[str, Any], name: str) -> None:
    before = len(_instances)
    bundle = subjects[name]._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert len(_instances) == before


@pytest.mark.parametrize("name", NAMES)
def test_widget_that_fails_leaves_the_picture_and_says_why(
    subjects: dict[str, Any], kernel: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    good = subjects[name]._repr_mimebundle_()

    def broken(*_: Any, **__: Any) -> Any:
        raise WorkbenchError("the bundle is <missing>", hint="build it with `make widgets`")

    monkeypatch.setattr(hook, "ViewWidget", broken)
    display.register(WidgetViews())
    bundle = subjects[name]._repr_mimebundle_()
    assert VIEW not in bundle
    assert "the bundle is &lt;missing&gt;" in bundle["text/html"]
    assert "make widgets" in bundle["text/html"]
    assert "make widgets" in bundle["text/plain"]
    assert bundle["text/html"].endswith(good["text/html"])


def test_picture_that_fails_gives_way_to_the_plain_one(
    lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no picture")

    for view in all_views().values():
        monkeypatch.setitem(view.__dict__, "picture", broken)
    bundle = lowering.edge._repr_mimebundle_()
    assert "<svg" in bundle["text/html"]


def test_a_hundred_displays_of_an_object_make_one_widget(lowering: wb.Lowering, kernel: None) -> None:
    before = set(_instances)
    listening = len(lowering.selection._listeners)
    shown = [lowering.edge._repr_mimebundle_()[VIEW]["model_id"] for _ in range(100)]
    assert len(set(shown)) == 1
    made = [_instances[key] for key in set(_instances) - before]
    assert sum(isinstance(widget, ViewWidget) for widget in made) == 1
    assert len(lowering.selection._listeners) == listening + 1
    assert len(lowering._listeners) == 1


def test_pictures_elsewhere_leave_no_listener(lowering: wb.Lowering) -> None:
    for _ in range(3):
        lowering.edge._repr_mimebundle_()
    assert len(lowering._listeners) == 0


def test_widget_that_was_closed_is_made_again(
    lowering: wb.Lowering, kernel: None, views: WidgetViews
) -> None:
    first = lowering.edge._repr_mimebundle_()[VIEW]["model_id"]
    views._widgets[id(lowering.edge)].close()
    assert lowering.edge._repr_mimebundle_()[VIEW]["model_id"] != first


def test_other_objects_are_refused(views: WidgetViews) -> None:
    with pytest.raises(WorkbenchError, match="no view of this object"):
        views.mimebundle(object())


def test_kernel_is_known_by_its_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, expected in [
        (None, False),
        (SimpleNamespace(), False),
        (SimpleNamespace(kernel=object()), True),
    ]:
        module = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert hook.in_kernel() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert not hook.in_kernel()


# ---- by name -----------------------------------------------------------------------------------------------


def test_workbench_is_the_panel(subjects: dict[str, Any], bundles: None) -> None:
    run = subjects["run"]
    widget = wb.workbench(subjects["lowering"], run=run, height=700)
    assert widget.view.name == "panel"
    assert widget.height == 700
    assert widget.context.run is run
    widget.close()
    compared = wb.workbench(subjects["comparison"])
    assert compared.view.name == "compare"
    compared.close()


@pytest.mark.parametrize("name", ["lowering", "edge", "run", "opened", "comparison"])
def test_widget_shows_itself_with_a_picture_beside_it(
    subjects: dict[str, Any], bundles: None, name: str
) -> None:
    widget = wb.workbench(subjects[name])
    bundle = widget._repr_mimebundle_()
    assert set(bundle) == {VIEW, "text/html", "text/plain"}
    assert bundle[VIEW]["model_id"] == widget.model_id
    assert "<" in bundle["text/html"]
    assert "ViewWidget" not in bundle["text/plain"]
    widget.close()


def test_workbench_refuses_what_it_does_not_know(lowering: wb.Lowering, bundles: None) -> None:
    with pytest.raises(TypeError, match="colour"):
        wb.workbench(lowering, colour="red")
    with pytest.raises(WorkbenchError, match="no view of this object"):
        wb.workbench("a string")
    assert len(lowering._listeners) == 0


def test_show_gives_a_view_by_name(lowering: wb.Lowering, bundles: None) -> None:
    widget = show(lowering.edge, view="graph", height=300)
    assert (widget.view.name, widget.height, widget.about["stage"]) == ("graph", 300, "edge")
    widget.close()
    with pytest.raises(WorkbenchError, match="no such view") as raised:
        show(lowering, view="grahp")
    assert "graph" in str(raised.value)
    with pytest.raises(TypeError):
        show(lowering, colour="red")  # type: ignore[call-arg]
