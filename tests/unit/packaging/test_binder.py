"""What Binder builds: the same environment as `make lab`, from the files in binder/."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BINDER = ROOT / "binder"
FIRST = "notebooks/01_lower_and_run.ipynb"

# Lowers, runs, and shows a stage the way that a notebook would: with the widget's model beside the picture.
SHOW = """
import json, nbformat
from nbclient import NotebookClient
code = '''
import torch, workbench as wb
lowering = wb.lower(torch.nn.Linear(4, 3).eval(), (torch.randn(1, 4),))
assert lowering.run(torch.randn(1, 4), profile=True).outputs[0].shape == (1, 3)
lowering.edge
'''
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps([sorted(output.get("data", {})) for output in notebook.cells[0].outputs]))
"""


def test_requirements_pin_the_torch_of_the_project() -> None:
    wanted = re.search(r'"(torch==[^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert wanted is not None
    lines = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert wanted[1] in lines


def test_python_of_binder_is_one_that_the_project_supports() -> None:
    found = re.fullmatch(r"python-3\.(\d+)", (BINDER / "runtime.txt").read_text(encoding="utf-8").strip())
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    least = re.search(r'requires-python = ">=3\.(\d+)"', project)
    assert found is not None and least is not None
    assert int(found[1]) >= int(least[1])


def test_first_notebook_is_there_and_the_build_script_can_be_run() -> None:
    assert (ROOT / FIRST).exists()
    assert os.access(BINDER / "postBuild", os.X_OK)
    assert {"g++", "make"} <= set((BINDER / "apt.txt").read_text(encoding="utf-8").split())


def _checkout(folder: Path) -> Path:
    """The files that git knows, as a clone would have them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return folder


@pytest.mark.slow
def test_steps_of_binder_make_an_environment_that_shows_a_view(tmp_path: Path) -> None:
    """Runs what Binder runs after its system packages: requirements.txt, then postBuild.

    Kernels for one instruction set only, so that it takes three minutes and not ten: what is tested is the
    environment.
    """
    checkout = _checkout(tmp_path / "checkout")
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    binary = environment / "bin"
    foreign = "PYTHON", "VIRTUAL_ENV", "MAKE"
    variables = {
        **{key: value for key, value in os.environ.items() if not key.startswith(foreign)},
        "PATH": os.pathsep.join([str(binary), os.environ["PATH"]]),
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "CMAKE_ARGS": "-DWB_ISAS=baseline",
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(Path.home() / ".cache" / "ccache")),
        # Where the index of the CPU build can't be reached, the machine's own must have it.
        "PIP_RETRIES": "0",
    }
    (tmp_path / "home").mkdir()
    start = time.monotonic()
    for command in (["pip", "install", "-q", "-r", "binder/requirements.txt"], ["./binder/postBuild"]):
        done = subprocess.run(
            command, cwd=checkout, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        print(f"{command[0]}: {time.monotonic() - start:.0f} s", file=sys.stderr)

    shown = subprocess.run(
        [str(binary / "python"), "-c", SHOW],
        cwd=checkout / "notebooks",
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr[-3000:]
    kinds = json.loads(shown.stdout.splitlines()[-1])
    widget = "application/vnd.jupyter.widget-view+json"
    assert any(widget in one and "text/html" in one for one in kinds), kinds
    listed = subprocess.run(
        [str(binary / "jupyter"), "labextension", "list"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "anywidget" in listed.stdout + listed.stderr
