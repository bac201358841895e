"""The project's own files agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb

ROOT = Path(__file__).resolve().parents[3]


def test_version_stands_in_one_place_more_only() -> None:
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == wb.__version__


@pytest.mark.parametrize("group", ["build", "core", "demo", "lab", "test", "bench", "dev"])
def test_requirements_of_each_group_are_printed(group: str) -> None:
    command = [sys.executable, str(ROOT / ".ci" / "requirements.py"), group]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert lines
    assert not [line for line in lines if line.startswith("lowering-workbench")]


def test_executorch_is_no_dependency_of_the_package() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "requirements.py"), "core"]
    assert "executorch" not in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_links_of_the_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "schema" / "README.md"]
    broken = []
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
            if not target.startswith("http") and not (document.parent / target).exists():
                broken.append(f"{document.name}: {target}")
    assert broken == []


def test_make_help_names_every_target_people_come_for() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "lab", "lint", "bench", "fuzz", "native", "docs"):
        assert f"make {target}" in shown
