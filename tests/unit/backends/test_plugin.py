"""The example of a backend in a package of its own, both halves, from model to result."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from workbench import to_edge
from workbench.backends import delegates_in, registry, why_not
from workbench.errors import ExecutionError
from workbench.inspector.trace import Kind, Trace
from workbench.runtime import Runtime, TraceSession

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "native_runtime" / "examples" / "plugins" / "backend"
COMPILER = shutil.which("c++") or shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="the native half needs a C++ compiler")


class Model(torch.nn.Module):
    def forward(self, x):
        a = torch.nn.functional.leaky_relu(torch.neg(x), 0.2)
        return torch.tanh(a) * 2.0, torch.abs(a), torch.relu(x)


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("unary_backend")
    finally:
        sys.path.remove(str(EXAMPLE))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compiled against the public headers alone, as they lie in an installed package."""
    folder = tmp_path_factory.mktemp("plugin")
    headers = folder / "include" / "workbench_native"
    shutil.copytree(ROOT / "native_runtime" / "core", headers / "core")
    target = folder / "libunary_backend.so"
    warnings = ["-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
    command = [COMPILER, "-std=c++20", "-O2", *warnings, "-shared", "-fPIC", "-I", str(folder / "include")]
    done = subprocess.run(
        [*command, str(EXAMPLE / "unary_backend.cc"), "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def lowered(example):
    rows = torch.export.Dim("rows", min=1, max=64)
    exported = torch.export.export(Model(), (torch.randn(4, 3),), dynamic_shapes=({0: rows},))
    return to_edge(exported).to_backend(example.UnaryPartitioner())


def test_what_is_left_says_why(lowered):
    program = lowered.exported_program()
    assert {d.lowered.backend_id for d in delegates_in(program.graph_module)} == {"UnaryBackend"}
    assert [(r.target, r.by) for r in why_not(program)] == [("aten.mul.Tensor", "UnaryBackend")]


def test_package_announces_itself_by_its_entry_point():
    text = (EXAMPLE / "pyproject.toml").read_text()
    assert (
        f'[project.entry-points."{registry.ENTRY_POINT_GROUP}"]\nUnaryBackend = "unary_backend:UnaryBackend"'
        in text
    )


def test_program_runs_once_its_library_is_loaded(lowered, library):
    runtime, buffer = Runtime.get(), lowered.to_executorch().buffer
    if "UnaryBackend" not in runtime.backend_registry.registered_backend_names:
        with pytest.raises(ExecutionError, match="UnaryBackend"):
            runtime.load_program(buffer).load_method("forward")
    runtime.load_plugin(library)
    runtime.load_plugin(library)  # again: nothing happens
    assert "UnaryBackend" in runtime.backend_registry.registered_backend_names
    method = runtime.load_program(buffer).load_method("forward")
    for rows in (4, 64, 1, 7):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(method.execute([x]), list(Model()(x)))


def test_fused_operators_share_one_event(lowered, library):
    runtime = Runtime.get()
    runtime.load_plugin(library)
    trace = Trace(TraceSession())
    method = runtime.load_program(lowered.to_executorch().buffer).load_method("forward")
    method.execute([torch.randn(4, 3)], trace=trace.session)
    trace.collect()
    batch = trace.batch()
    inside = [event for event in batch.events if event["kind"] == Kind.DELEGATE]
    delegates = list(delegates_in(lowered.exported_program().graph_module))
    assert [batch.name(int(event["name"])) for event in inside] == ["unary"] * len(delegates)
    assert max(len(d.lowered.meta["debug_handle_map"][0]) for d in delegates) > 1


def test_broken_blob_is_an_error_of_the_plugin(lowered, library):
    runtime = Runtime.get()
    runtime.load_plugin(library)
    buffer = bytearray(lowered.to_executorch().buffer)
    at = buffer.index(b"UNRY")
    buffer[at + 8] = 200  # the number of operators
    with pytest.raises(ExecutionError, match="200 operators"):
        runtime.load_program(bytes(buffer)).load_method("forward")
