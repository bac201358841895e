"""A wheel holds all that it needs, and works far from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Kernels for one instruction set only: what is tested is the packaging, not the code.
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-q"]
    settings = ["-C", "cmake.define.WB_ISAS=baseline", "-C", f"build-dir={ROOT / 'build' / 'wheel'}"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = dict(os.environ, PATH=path, CMAKE_BUILD_PARALLEL_LEVEL=str(min(2, os.cpu_count() or 1)))
    done = subprocess.run(
        [*command, *settings, "-w", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.slow
def test_wheel_holds_module_headers_generated_code_and_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert sum("workbench/runtime/_native" in name and name.endswith(".so") for name in names) == 1
    assert "workbench/py.typed" in names
    assert any(name.startswith("workbench/include/") and name.endswith("backend.h") for name in names)
    assert any(name.startswith("workbench/serialize/_generated/program") for name in names)
    assert "workbench/ops/kernels.txt" in names
    assert any(name.endswith("entry_points.txt") for name in names)
    packages = ("workbench/", "workbench_widgets/", "lowering_workbench-")
    outside = [name for name in names if not name.startswith(packages)]
    assert outside == [], "only the packages belong into the wheel"
    assert not [name for name in names if "__pycache__" in name or name.endswith((".cc", ".fbs"))]


@pytest.mark.slow
def test_wheel_holds_the_bundles_of_the_views_and_the_layout_engine(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    folder = ROOT / "widgets" / "workbench_widgets"
    views = [path.parent.name for path in folder.glob("*/view.ts")]
    assert len(views) == 9
    assert {f"workbench_widgets/static/{view}.js" for view in views} <= set(names)
    assert sum("workbench_widgets/_layout" in name and name.endswith(".so") for name in names) == 1
    assert not [name for name in names if name.endswith(".ts")]


@pytest.mark.slow
def test_installed_wheel_lowers_and_runs_from_another_directory(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # -S, so that the development install is not seen.
    script = f"""
import sys
sys.path[:0] = [{str(site)!r}, {sysconfig.get_paths()["purelib"]!r}]
import torch
import workbench as wb
assert wb.__file__.startswith({str(site)!r}), wb.__file__
lowering = wb.lower(torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),))
lowering.save("linear.pte")
lowering.to_html("report.html")
print(wb.open("linear.pte").run(torch.ones(1, 3)).outputs[0].shape)
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "[1, 2]" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 100_000, "the report has no bundle in it"
