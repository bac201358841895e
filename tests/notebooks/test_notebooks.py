"""Every notebook runs from top to bottom, shows its views, and is committed without outputs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"

# Expressions at the end of a cell that show a view of their own.
VIEWS = {
    "01_lower_and_run": [
        "wb.workbench(lowering)",
        "lowering.exported",
        "lowering.plan",
        "lowering.program",
        "run",
        'wb.compare(lowering, delegated, names=["plain", "delegated"])',
    ],
    "02_why_not_delegated": ["lowering.partitioned", "comparison"],
    "03_where_does_the_memory_go": ["lowering.plan", "split.plan", "lowering.program"],
    "04_where_does_the_time_go": ["run", "live", "comparison"],
    "05_how_small_can_it_get": ['wb.compare(floats, integers, names=["float", "int8"])'],
    "06_which_layer_breaks_it": ["lowering.quantized", "comparison"],
}


def test_there_are_the_notebooks_that_the_tests_know() -> None:
    assert [path.stem for path in NOTEBOOKS] == list(VIEWS)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_shows_its_views(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    start = time.monotonic()
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    took = time.monotonic() - start
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    # Importing ExecuTorch's package has a lot to say, most of it from C++.
    own = [output for cell in cells if "executorch" not in cell.source for output in cell.outputs]
    assert "".join(_text(own, "stderr")) == "", "a newcomer would take it for a failure"
    for last in VIEWS[path.stem]:
        shown = [_data(cell) for cell in cells if cell.source.splitlines()[-1] == last]
        assert shown, f"no cell of {path.name} ends with `{last}`"
        for data in shown:
            assert WIDGET in data, f"`{last}` shows no view"
            picture = "<svg" in data["text/html"] or "<table" in data["text/html"]
            # A run in the background may have measured nothing by the time that its cell ends.
            waits = last == "live" and "still running" in data["text/html"]
            assert picture or waits, f"`{last}` has no picture"
    assert took < 60, f"{path.name} took {took:.0f} s"


def _data(cell: Any) -> dict[str, Any]:
    return {kind: data for output in cell.outputs for kind, data in output.get("data", {}).items()}


def _text(outputs: list[Any], name: str) -> list[str]:
    return [output.text for output in outputs if output.output_type == "stream" and output.name == name]


def test_notebooks_hold_no_outputs() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "notebooks.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_written_for_a_reader(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].cell_type == "markdown" and notebook.cells[0].source.startswith("# ")
    for before, cell in zip(notebook.cells, notebook.cells[1:], strict=False):
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= 25, "a cell should be read at a glance"
            assert before.cell_type == "markdown" or len(before.source.splitlines()) <= 12
