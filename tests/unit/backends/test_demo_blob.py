"""Builds and runs the unit test of the demo backends' native half: among others 20,000 broken blobs."""

import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[3] / "native_runtime"
COMPILER = shutil.which("c++") or shutil.which("g++")


@pytest.mark.skipif(COMPILER is None, reason="the test is a C++ program, and there is no compiler")
def test_no_blob_does_harm_under_the_sanitizers(tmp_path):
    program = tmp_path / "demo_test"
    sources = sorted(str(path) for path in (NATIVE / "backends" / "demo").glob("*.cc"))
    flags = ["-std=c++20", "-O1", "-g", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [COMPILER, *flags, *sanitizers, "-I", str(NATIVE), *sources, "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program, "20000"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
