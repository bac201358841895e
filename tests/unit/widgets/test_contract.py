"""The contract: written out in full, and what may stand in it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from workbench_widgets import contract
from workbench_widgets.columns import F32, Strings
from workbench_widgets.view import all_views


@dataclass(frozen=True)
class Part:
    """A part.

    Attributes:
        name: Its name.
    """

    name: str


@dataclass(frozen=True)
class Everything:
    """All that a document can hold."""

    number: float | None
    kinds: list[Literal["a", "b"]]
    parts: list[Part]
    table: dict[str, Part]
    column: F32
    names: Strings
    anything: Any


@dataclass(frozen=True)
class Wrong:
    """A set has no order."""

    items: set[int]


def _with(monkeypatch: pytest.MonkeyPatch, **modules: dict[str, Any]) -> None:
    made = []
    for name, tables in modules.items():
        module = ModuleType(name)
        module.__dict__.update(tables)
        made.append((name, module))
    monkeypatch.setattr(contract, "contracts", lambda: iter(made))


def test_typescript_is_up_to_date() -> None:
    path = Path(contract.__file__).with_suffix(".ts")
    assert path.read_text(encoding="utf-8") == contract.generate()


def test_check_tells_whether_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "HERE", tmp_path)
    monkeypatch.setattr(contract, "generate", lambda: "export {};\n")
    assert contract.main([]) == 0
    assert contract.main(["--check"]) == 0
    (tmp_path / "contract.ts").write_text("other")
    assert contract.main(["--check"]) == 1


def test_module_runs_as_a_script() -> None:
    root = Path(contract.__file__).parents[1]
    command = [sys.executable, "-m", "workbench_widgets.contract", "--check"]
    subprocess.run(command, cwd=root, check=True, timeout=120)


def test_each_declaration_becomes_an_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    _with(
        monkeypatch,
        one={"DOCUMENTS": {"all": Everything}, "CALLS": {"one.go": (Part, Part)}},
        two={"EVENTS": {"two.came": Part}},
    )
    text = contract.generate()
    assert "  readonly number: number | null;" in text
    assert '  readonly kinds: readonly ("a" | "b")[];' in text
    assert "  readonly parts: readonly Part[];" in text
    assert "  readonly table: Readonly<Record<string, Part>>;" in text
    assert "  readonly column: Float32Array;" in text
    assert "  readonly names: StringColumn;" in text
    assert "  readonly anything: unknown;" in text
    assert '  readonly "all": Everything;' in text
    assert '  readonly "one.go": { arguments: Part; result: Part };' in text
    assert '  readonly "two.came": Part;' in text
    assert "/** A part. */\nexport interface Part {" in text
    assert 'import type { StringColumn } from "./common/unpack.ts";' in text


def test_name_that_is_declared_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, one={"EVENTS": {"same": Part}}, two={"EVENTS": {"same": Part}})
    with pytest.raises(ValueError, match="'same' a second time"):
        contract.generate()


def test_two_dataclasses_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.make_dataclass("Part", [("size", int)])
    _with(monkeypatch, one={"EVENTS": {"a": Part}}, two={"EVENTS": {"b": other}})
    with pytest.raises(ValueError, match="are called Part"):
        contract.generate()


def test_type_that_can_not_travel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, one={"DOCUMENTS": {"wrong": Wrong}})
    with pytest.raises(TypeError, match="can't hold"):
        contract.generate()


def test_views_answer_what_the_contract_declares_and_nothing_else() -> None:
    declared: dict[str, set[str]] = {"DOCUMENTS": set(), "CALLS": set()}
    for _, module in contract.contracts():
        for table, names in declared.items():
            names.update(getattr(module, table, {}))
    views = all_views().values()
    assert {kind for view in views for kind in view.documents} == declared["DOCUMENTS"]
    assert {name for view in views for name in view.calls} == declared["CALLS"]


def test_calls_and_events_carry_the_name_of_their_view() -> None:
    for view, module in contract.contracts():
        for table in ("CALLS", "EVENTS"):
            for name in getattr(module, table, {}):
                assert name.startswith(f"{view}."), name
