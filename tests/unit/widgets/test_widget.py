"""The widget: traits, messages, the selection, and what is left when it is closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import traitlets

import workbench as wb
from unit.widgets.golden_documents import golden
from workbench.errors import WorkbenchError
from workbench_widgets import widget as module
from workbench_widgets.context import Context
from workbench_widgets.pack import unpack
from workbench_widgets.view import View, all_views, document, find
from workbench_widgets.widget import ViewWidget, failure

DELEGATING = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")
Show = Callable[..., Any]


def test_every_view_is_found_by_its_folder() -> None:
    assert {"compare", "graph", "panel", "report"} <= set(all_views())
    for name, view in all_views().items():
        assert view.name == name
    assert find("compare").name == "compare"
    with pytest.raises(WorkbenchError, match="no view shows this"):
        find("nowhere")


def test_each_stage_has_one_natural_view() -> None:
    shown = [stage for view in all_views().values() for stage in view.shows]
    assert len(shown) == len(set(shown))


def test_unknown_kind_of_document_is_an_error(lowering: wb.Lowering) -> None:
    with pytest.raises(WorkbenchError, match="no such document") as raised:
        document(Context(lowering), "grahp", "edge/forward")
    assert "graph" in str(raised.value)


# ---- traits ------------------------------------------------------------------------------------------------


def test_widget_tells_the_page_what_it_is_about(lowering: wb.Lowering, show: Show) -> None:
    shown = show(lowering.edge, "graph").widget
    assert shown.about["stage"] == "edge"
    assert shown.about["view"] == "graph"
    assert shown.selection == {"method": "forward", "handles": [], "node": None}
    assert set(shown.keys) >= {"about", "documents", "selection", "height", "_esm", "_css"}
    assert shown._esm == "export default 'graph';"


def test_first_documents_travel_with_the_widget(lowering: wb.Lowering, show: Show) -> None:
    shown = show(lowering.edge, "graph").widget
    assert unpack(shown.documents["graph:edge/forward"])["stage"] == "edge"


def test_document_that_fails_at_first_is_left_for_the_view_to_ask_for(
    lowering: wb.Lowering, show: Show, caplog: pytest.LogCaptureFixture
) -> None:
    broken = View(
        name="graph", title="Graph", initial=lambda _: [("graph", "edge/forward"), ("graph", "x/y")]
    )
    page = show(lowering, broken)
    assert list(page.widget.documents) == ["graph:edge/forward"]
    reply, _ = page.ask(document="graph", key="x/y")
    assert reply["error"]["message"]


def test_unknown_keyword_raises(lowering: wb.Lowering, bundles: None) -> None:
    with pytest.raises(TypeError, match="colour"):
        ViewWidget(all_views()["graph"], Context(lowering), colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize("height", [100, 5000, "tall", 520.5])
def test_wrong_height_raises(lowering: wb.Lowering, bundles: None, height: Any) -> None:
    with pytest.raises(traitlets.TraitError):
        ViewWidget(all_views()["graph"], Context(lowering), height=height)


@pytest.mark.parametrize("name", ["about", "documents"])
def test_what_python_makes_can_not_be_assigned(lowering: wb.Lowering, show: Show, name: str) -> None:
    with pytest.raises(traitlets.TraitError):
        setattr(show(lowering, "graph").widget, name, {})


@pytest.mark.parametrize(
    "selection",
    [
        None,
        {},
        {"method": "forward", "handles": "all", "node": None},
        {"method": "forward", "handles": [1.5], "node": None},
        {"method": "forward", "handles": [0], "node": None},
        {"method": "forward", "handles": [1]},
        {"method": 3, "handles": [], "node": None},
        {"method": "forward", "handles": [], "node": None, "colour": "red"},
    ],
)
def test_wrong_selection_is_refused_and_changes_nothing(
    lowering: wb.Lowering, show: Show, selection: Any
) -> None:
    shown = show(lowering, "graph").widget
    before = shown.selection
    with pytest.raises(traitlets.TraitError):
        shown.selection = selection
    assert shown.selection == before
    assert not lowering.selection


def test_missing_bundle_says_what_to_do(
    lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(module, "STATIC", tmp_path / "a" / "b")
    module.bundle.cache_clear()
    try:
        with pytest.raises(WorkbenchError, match="bundle of the view 'graph' is missing") as raised:
            module.bundle("graph", "js")
        assert "make widgets" in str(raised.value)
        assert module.bundle("graph", "css") == ""
    finally:
        module.bundle.cache_clear()


# ---- the selection -----------------------------------------------------------------------------------------


def test_selection_goes_both_ways(lowering: wb.Lowering, show: Show) -> None:
    shown = show(lowering, "graph").widget
    lowering.selection = [4, 2]
    assert shown.selection == {"method": "forward", "handles": [2, 4], "node": None}
    shown.selection = {"method": "forward", "handles": [3], "node": "relu"}
    assert lowering.selection.handles == {3}
    assert lowering.selection.node == "relu"


def test_widgets_of_a_family_share_the_selection(lowering: wb.Lowering, show: Show) -> None:
    one = show(lowering.edge, "graph").widget
    again = lowering.relower(DELEGATING)
    other = show(again.lowered, "graph").widget
    assert one.about["family"] == other.about["family"]
    one.selection = {"method": "forward", "handles": [5], "node": None}
    assert other.selection["handles"] == [5]


# ---- messages ----------------------------------------------------------------------------------------------


def test_document_that_is_asked_for_comes_packed(lowering: wb.Lowering, show: Show) -> None:
    reply, buffers = show(lowering, "graph").ask(document="graph", key="lowered/forward")
    assert "error" not in reply
    assert unpack(buffers[0])["stage"] == "lowered"


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        ({"document": "nothing"}, "WorkbenchError", "no such document"),
        ({"document": "graph", "key": "edge/backward"}, "WorkbenchError", "no such method"),
        ({"call": "nothing"}, "WorkbenchError", "no such call"),
        ({"call": "panel.report", "arguments": {}}, "SerializationError", "incomplete"),
        ({"call": "panel.report", "arguments": {"stage": 1, "method": ""}}, "SerializationError", "stage"),
        ({"call": "panel.report", "arguments": None}, "SerializationError", "ReportOptions"),
        ({}, "WorkbenchError", "no such call"),
    ],
)
def test_what_can_not_be_answered_gets_an_error(
    lowering: wb.Lowering, show: Show, message: dict[str, Any], kind: str, words: str
) -> None:
    reply, buffers = show(lowering, "panel").ask(**message)
    assert reply["error"]["kind"] == kind
    assert words in str(reply["error"])
    assert buffers == []


@pytest.mark.parametrize("message", [None, 3, "text", [], {"call": "panel.report"}])
def test_message_without_a_number_is_no_question(lowering: wb.Lowering, show: Show, message: Any) -> None:
    page = show(lowering, "panel")
    page.widget._handle_custom_msg(message, [])
    assert page.sent == []


def test_failure_of_our_own_names_its_place(lowering: wb.Lowering, show: Show) -> None:
    def broken(context: Context, key: str) -> Any:
        raise KeyError("a bug")

    error: BaseException
    try:
        broken(Context(lowering), "")
    except KeyError as raised:
        error = raised
    made = failure(error)
    assert made.kind == "KeyError"
    assert made.details["where"].startswith("broken, line ")


def test_lowering_again_drops_what_is_stale_and_tells_the_page(lowering: wb.Lowering, show: Show) -> None:
    page = show(lowering, "panel")
    assert page.widget.documents
    lowering.update(DELEGATING)
    assert page.widget.documents == {}
    assert page.sent[-1][0] == {"changed": ["*"]}
    details = {stage["name"]: stage["detail"] for stage in page.widget.about["stages"]}
    assert details["partitioned"] == "1 partition"


def test_change_of_one_kind_keeps_the_others(lowering: wb.Lowering, show: Show) -> None:
    page = show(lowering.edge, "panel")
    kinds = {name.partition(":")[0] for name in page.widget.documents}
    assert {"graph", "recipe"} <= kinds
    page.widget.context.changed("graph")
    left = {name.partition(":")[0] for name in page.widget.documents}
    assert "graph" not in left
    assert "recipe" in left
    assert page.sent == [({"changed": ["graph"]}, [])]


@dataclass(frozen=True)
class Ticked:
    count: int


def test_events_are_held_to_the_contract(
    lowering: wb.Lowering, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_declared", lambda: ({}, {"test.ticked": Ticked}))
    page = show(lowering, "graph")
    page.widget.context.emit("test.ticked", Ticked(3))
    assert page.sent[0][0] == {"event": "test.ticked"}
    assert unpack(page.sent[0][1][0]) == {"count": 3}
    for name, data in (("test.ticked", golden()["plain"]), ("test.unknown", Ticked(3))):
        with pytest.raises(WorkbenchError, match="no such event"):
            page.widget.context.emit(name, data)


# ---- the end -----------------------------------------------------------------------------------------------


def test_closed_widget_leaves_no_listener(lowering: wb.Lowering, show: Show) -> None:
    before = (len(lowering.selection._listeners), len(lowering._listeners))
    page = show(lowering, "panel")
    assert len(lowering.selection._listeners) == before[0] + 1
    page.widget.close()
    page.widget.close()
    assert (len(lowering.selection._listeners), len(lowering._listeners)) == before
    sent = list(page.sent)
    lowering.selection = [1]
    lowering.update(DELEGATING)
    assert page.sent == sent


def test_widget_that_could_not_be_made_leaves_no_listener(lowering: wb.Lowering, bundles: None) -> None:
    before = (len(lowering.selection._listeners), len(lowering._listeners))
    context = Context(lowering)
    with pytest.raises(traitlets.TraitError):
        ViewWidget(all_views()["graph"], context, height=1)
    context.close()
    assert (len(lowering.selection._listeners), len(lowering._listeners)) == before


def test_request_that_comes_again_is_taken_once_and_answered_again(
    lowering: wb.Lowering, show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = show(lowering.edge, "graph")
    calls: list[Any] = []

    def answer(self: ViewWidget, message: Any) -> str:
        calls.append(message["id"])
        if len(calls) == 1:
            self._asked(self, message, [])  # it comes again while it is being worked on
        return f"answer {len(calls)}"

    monkeypatch.setattr(ViewWidget, "_answer", answer)
    page.widget._asked(page.widget, {"id": 7, "call": "x"}, [])
    page.widget._asked(page.widget, {"id": 7, "call": "x"}, [])
    assert calls == [7]
    taken = {"id": 7, "taken": True}
    assert [content for content, _ in page.sent] == [taken, taken, {"id": 7}, taken, {"id": 7}]
    assert page.sent[2][1] == page.sent[4][1]
    page.widget._asked(page.widget, {"id": 8, "call": "x"}, [])
    assert calls == [7, 8]
