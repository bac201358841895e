"""The report: one sound file with all documents in it, safe against what names may hold."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.errors import WorkbenchError
from workbench_widgets.context import Context
from workbench_widgets.pack import unpack
from workbench_widgets.panel.document import report_documents
from workbench_widgets.report import write
from workbench_widgets.report import writing as module

DELEGATING = wb.Recipe(partitioner="workbench.backends.demo:AddMulPartitionerDemo")

pytestmark = pytest.mark.usefixtures("bundles")


class Page(html.parser.HTMLParser):
    """The elements of a page that matter here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.meta: list[dict[str, str | None]] = []
        self.title = ""
        self.sources: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.sources += [value for name, value in attrs if name in ("src", "href") and value]
        if tag == "meta":
            self.meta.append(known)
        elif tag in ("script", "style", "title", "main", "body", "noscript"):
            self._open.append(tag)
        if tag == "script":
            self.scripts.append((known, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title", "main", "body", "noscript"):
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._open[-1:] == ["title"]:
            self.title = self.title or data  # pictures have titles, too

    @property
    def about(self) -> Any:
        return next(json.loads(text) for known, text in self.scripts if known.get("id") == "wb-about")

    @property
    def documents(self) -> dict[str, Any]:
        """The documents, or the errors that stand for them."""
        found: dict[str, Any] = {}
        for known, text in self.scripts:
            if (name := known.get("data-document")) is not None:
                binary = known["type"] == "application/octet-stream"
                found[name] = unpack(base64.b64decode(text)) if binary else json.loads(text)
        return found


def test_report_holds_every_document_that_the_views_name(lowering: wb.Lowering) -> None:
    page = Page(write(lowering))
    wanted = {f"{kind}:{key}" for kind, key in report_documents(Context(lowering))}
    assert wanted <= set(page.documents)
    assert page.documents["graph:edge/forward"]["stage"] == "edge"
    assert page.documents["recipe:"]["python"] == "wb.Recipe()"
    assert page.about["view"] == "panel"
    assert [stage["name"] for stage in page.about["stages"]][-1] == "run"
    assert page.title == page.about["title"]


def test_no_document_of_a_report_failed(lowering: wb.Lowering) -> None:
    run = lowering.run(*lowering.example_inputs(), profile=True)
    page = Page(write(lowering, run=run))
    assert {name: data for name, data in page.documents.items() if "message" in data and "kind" in data} == {}


def test_run_is_in_the_report(lowering: wb.Lowering) -> None:
    run = lowering.run(*lowering.example_inputs(), profile=True, repeat=3)
    page = Page(write(lowering, run=run))
    assert page.about["stages"][-1]["detail"]
    profile = next(data for name, data in page.documents.items() if name.startswith("profile:"))
    assert profile["executions"] == 3
    assert Page(write(run)).about["stage"] == "run"


def test_comparison_has_its_own_view(lowering: wb.Lowering) -> None:
    page = Page(write(wb.compare(lowering, lowering.relower(DELEGATING))))
    assert page.about["view"] == "compare"
    assert {"compare:0", "compare:1", "compare.graph:1/lowered/forward"} <= set(page.documents)


def test_program_from_a_file_is_reported(lowering: wb.Lowering) -> None:
    text = write(wb.open(lowering.program.buffer))
    page = Page(text)
    assert [stage["name"] for stage in page.about["stages"]] == ["program", "run"]
    assert page.documents
    assert "<summary>Recipe</summary>" not in text


def test_stage_that_stands_alone_is_reported(lowering: wb.Lowering) -> None:
    before = lowering.partitioned
    lowering.update(DELEGATING)
    page = Page(write(before))
    assert [stage["name"] for stage in page.about["stages"]] == ["partitioned"]


def test_page_lets_only_its_own_script_run_and_connects_to_nothing(lowering: wb.Lowering) -> None:
    page = Page(write(lowering))
    policy = next(m["content"] or "" for m in page.meta if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy  # the default holds
    running = [text for known, text in page.scripts if known.get("type") == "module"]
    assert len(running) == 1
    digest = base64.b64encode(hashlib.sha256(running[0].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    assert page.sources == []


def test_names_can_not_break_out_of_the_page(lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "</script><script>alert(1)</script><!--\"'&"
    comparison = wb.compare(lowering, lowering.relower(DELEGATING), names=["a", evil])
    text = write(comparison)
    page = Page(text)
    assert "<script>alert" not in text
    assert evil in page.about["title"]
    assert page.documents["compare:0"]["sides"][1]["name"] == evil


def test_document_that_fails_is_told_and_the_others_are_there(
    lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.document

    def document(context: Context, kind: str, key: str) -> Any:
        if key == "lowered/forward":
            raise WorkbenchError("this </script> one is broken", hint="mend it")
        return real(context, kind, key)

    monkeypatch.setattr(module, "document", document)
    page = Page(write(lowering))
    broken = page.documents["graph:lowered/forward"]
    assert broken["message"] == "this </script> one is broken"
    assert broken["details"] == {"hint": "mend it"}
    assert page.documents["graph:edge/forward"]["stage"] == "edge"


def test_picture_that_fails_leaves_the_others(lowering: wb.Lowering, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no <picture>")

    monkeypatch.setattr(type(lowering.plan), "table", property(broken))
    monkeypatch.setattr(module.StaticViews, "mimebundle", broken)
    text = write(lowering)
    assert "no &lt;picture&gt;" in text
    Page(text)


def test_pictures_stand_in_where_no_script_runs(lowering: wb.Lowering) -> None:
    text = write(lowering, run=lowering.run(*lowering.example_inputs(), profile=True))
    noscript = text[text.index("<noscript>") : text.index("</noscript>")]
    assert noscript.count("<section") == 7  # six stages and the run
    assert noscript.count("<svg") >= 6
    assert "<summary>Recipe</summary>" in text
    assert "wb.Recipe()" in text


def test_weights_are_not_in_a_report() -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU()).eval()
    lowering = wb.lower(model, (torch.ones(1, 512),), progress=False)
    assert len(lowering.program.buffer) > 1_000_000
    assert len(write(lowering)) < 120_000


def test_file_is_written(lowering: wb.Lowering, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    lowering.to_html(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    Page(text)
    opened = wb.open(lowering.program.buffer)
    opened.to_html(path)
    Page(path.read_text(encoding="utf-8"))


def test_report_leaves_no_listener(lowering: wb.Lowering) -> None:
    write(lowering)
    assert lowering._listeners == {}


def test_other_objects_and_options_are_refused(lowering: wb.Lowering) -> None:
    with pytest.raises(WorkbenchError, match="no view of this object"):
        write("text")
    with pytest.raises(TypeError):
        write(lowering, colour="red")  # type: ignore[call-arg]
