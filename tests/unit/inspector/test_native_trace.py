"""The C++ unit test of the trace, as it is and under the sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[3] / "native_runtime"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(
    "flags", [["-O2"], ["-O1", "-fsanitize=thread"], ["-O1", "-fsanitize=address,undefined"]]
)
def test_ring_clock_and_outputs(flags, tmp_path):
    binary = tmp_path / "trace_test"
    sources = [NATIVE / "trace" / name for name in ("clock.cc", "trace_buffer.cc", "test.cc")]
    command = [
        COMPILER,
        "-std=c++20",
        *flags,
        f"-I{NATIVE}",
        *map(str, sources),
        "-pthread",
        "-o",
        str(binary),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip(f"the compiler has no library for {flags[-1]}")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(binary)], capture_output=True, text=True, check=False, timeout=120)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run under this kernel's address layout")
    assert done.returncode == 0, done.stderr
    assert "all tests passed" in done.stdout
