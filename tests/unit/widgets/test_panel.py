"""What the panel tells the page: the recipe, the documents that travel with it, the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench_widgets.context import STAGES, Context
from workbench_widgets.pack import unpack
from workbench_widgets.panel import document as module
from workbench_widgets.panel.document import first_documents, recipe_document, report_documents

DELEGATING = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")
Show = Callable[..., Any]


class Unwritable:
    """A partitioner of which no recipe can say how it was made."""

    def __init__(self, secret: object) -> None:
        self.secret = secret


def test_recipe_comes_as_python_and_json(lowering: wb.Lowering) -> None:
    lowering.update(DELEGATING)
    document = recipe_document(Context(lowering), "")
    assert eval(document.python, {"wb": wb}) == DELEGATING
    assert wb.Recipe.from_json(document.json) == DELEGATING
    assert document.problem == ""
    assert {"torch", "python"} <= set(document.versions)


def test_recipe_that_can_not_be_written_says_why(
    lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowering.recipe = wb.Recipe(partitioner=Unwritable(object()))
    document = recipe_document(Context(lowering), "")
    assert (document.python, document.json) == ("", "")
    assert "Unwritable" in document.problem


def test_program_from_a_file_has_no_recipe(lowering: wb.Lowering) -> None:
    with pytest.raises(WorkbenchError, match="no recipe"):
        recipe_document(Context(wb.open(lowering.program.buffer)), "")


def test_panel_needs_no_kernel_for_its_stages(lowering: wb.Lowering, show: Show) -> None:
    shown = show(lowering, "panel").widget
    for stage in ("exported", "edge", "lowered", "planned"):
        assert unpack(shown.documents[f"graph:{stage}/forward"])["stage"] == stage
    assert json.loads(unpack(shown.documents["recipe:"])["json"]) == {"version": 1}


def test_each_stage_brings_the_documents_of_its_view(lowering: wb.Lowering) -> None:
    context = Context(lowering)
    kinds = {kind for kind, _ in first_documents(context)}
    assert {"recipe", "graph"} <= kinds
    # More than graphs: those of the views beside.
    assert len(kinds) > 3
    assert len(set(first_documents(context))) == len(first_documents(context))


def test_of_a_large_model_only_the_shown_stage_travels(
    lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = first_documents(Context(lowering))
    monkeypatch.setattr(module, "_MANY_NODES", 10)
    few = first_documents(Context(lowering.lowered))
    assert ("graph", "lowered/forward") in few
    assert ("graph", "edge/forward") not in few
    assert len(few) < len(every)


def test_report_documents_include_every_stage(lowering: wb.Lowering) -> None:
    found = report_documents(Context(lowering))
    stages = set(STAGES) - {"program", "pruned", "quantized"}
    assert {("graph", f"{stage}/forward") for stage in stages} <= set(found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("what", ["lowering", "opened"])
def test_report_button_answers_with_a_file(
    lowering: wb.Lowering, show: Show, what: str, tmp_path: Path
) -> None:
    subject: Any = lowering if what == "lowering" else wb.open(lowering.program.buffer)
    page = show(subject, "panel")
    stage = "planned" if what == "lowering" else "program"
    reply, buffers = page.ask(call="panel.report", arguments={"stage": stage, "method": "forward"})
    assert "error" not in reply
    file = unpack(buffers[0])
    assert file["name"] == "report_forward.html"
    assert file["html"].startswith("<!doctype html>")
    assert f'"stage":"{stage}"' in file["html"]


def test_report_of_a_stage_that_there_is_not_is_refused(lowering: wb.Lowering, show: Show) -> None:
    reply, _ = show(lowering, "panel").ask(
        call="panel.report", arguments={"stage": "quantized", "method": "forward"}
    )
    assert "no such stage" in reply["error"]["message"]
