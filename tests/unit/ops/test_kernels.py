"""`workbench/ops/kernels.txt` lists what the native runtime has."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench.ops
from workbench.ops.registry import entries, runtime_kernels

_HEAD = """\
# Names of all kernels of the native runtime, one a line. Written from it by
# `pytest tests/unit/ops/test_kernels.py --update-golden`; the same test fails when they differ.
"""


def test_list_is_that_of_the_native_module(request: pytest.FixtureRequest) -> None:
    from workbench.runtime._load import native

    # Kernels that plug-ins of other tests brought along name another source.
    names = sorted({name for name, source in native.kernels() if source == "the runtime"})
    assert names
    text = _HEAD + "\n".join(names) + "\n"
    path = Path(workbench.ops.__file__).parent / "kernels.txt"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "run this test with --update-golden"


def test_names_are_as_they_stand_in_programs() -> None:
    for name in runtime_kernels():
        namespace, _, rest = name.partition("::")
        assert namespace
        assert rest
        assert len(name) < 100


def test_operators_of_the_registry_have_kernels() -> None:
    missing = {entry.kernel for entry in entries().values()} - runtime_kernels()
    assert not missing, "described in workbench/ops, but the runtime has no kernel"
