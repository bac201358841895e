from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.errors import ExecutionError
from workbench.runtime import Runtime, include_dir

SOURCES = Path(__file__).resolve().parents[3] / "native_runtime" / "examples" / "plugins"


@pytest.fixture(scope="module")
def compile_plugin(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("plugins")

    def build(source: Path | str, name: str) -> Path:
        if isinstance(source, str):
            (folder / f"{name}.cc").write_text(source)
            source = folder / f"{name}.cc"
        library = folder / f"{name}.so"
        flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{include_dir()}"]
        subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
        return library

    return build


@pytest.fixture(scope="module")
def scaled_square(compile_plugin: Any) -> Path:
    library: Path = compile_plugin(SOURCES / "operator" / "scaled_square.cc", "scaled_square")
    Runtime.get().load_plugin(library)
    return library


def test_operator_of_a_plugin_runs(builder: Any, scaled_square: Path) -> None:
    assert Runtime.get().operator_registry.sources["example::scaled_square.out"] == str(scaled_square)
    x, out = builder.tensor(4, 2, dynamism=1), builder.tensor(4, 2, dynamism=1)
    builder.call("example::scaled_square.out", x, builder.scalar(0.5), out, out)
    method = Runtime.get().load_program(builder.bytes([x], [out])).load_method()
    value = torch.randn(3, 2)
    torch.testing.assert_close(method.execute([value])[0], 0.5 * value * value)


def test_operator_of_a_plugin_refuses_what_it_does_not_take(builder: Any, scaled_square: Path) -> None:
    x, out = builder.tensor(2, dtype=4), builder.tensor(2)
    builder.call("example::scaled_square.out", x, builder.scalar(0.5), out, out)
    program = Runtime.get().load_program(builder.bytes([x], [out]))
    expected = r"argument 0: expected a float32 tensor.*example::scaled_square\.out, instruction 0"
    with pytest.raises(ExecutionError, match=expected) as raised:
        program.load_method()
    assert raised.value.code == "InvalidType"


def test_loading_a_plugin_again_does_nothing(scaled_square: Path) -> None:
    before = Runtime.get().operator_registry.operator_names
    Runtime.get().load_plugin(scaled_square)
    assert Runtime.get().operator_registry.operator_names == before


def plugin_of(kernel: str, abi: str = "wb::kPluginAbi") -> str:
    return f"""
#include <workbench_native/core/plugin.h>
static wb::Error nothing(wb::KernelContext&) {{ return wb::Error::Ok; }}
static constexpr wb::Kernel kernels[] = {{
    {{"free::name", nothing, nothing}},
    {{"{kernel}", nothing, nothing}},
}};
static constexpr wb::Plugin plugin = {{
    .abi = {abi},
    .name = "test",
    .kernels = kernels,
    .kernel_count = 2,
    .backends = nullptr,
    .backend_count = 0,
}};
WB_PLUGIN_EXPORT const wb::Plugin* workbench_plugin() {{ return &plugin; }}
"""


@pytest.mark.parametrize(
    ("kernel", "owner"),
    [("example::scaled_square.out", "scaled_square.so"), ("aten::add.out", "the runtime")],
)
def test_taken_name_is_refused_with_both_sources(
    compile_plugin: Any, scaled_square: Path, kernel: str, owner: str
) -> None:
    library = compile_plugin(plugin_of(kernel), f"taken_by_{owner.split('.')[0].replace(' ', '_')}")
    with pytest.raises(ExecutionError, match=f"{library.name} is registered already.*{owner}") as raised:
        Runtime.get().load_plugin(library)
    assert raised.value.code == "RegistrationAlreadyRegistered"
    assert "free::name" not in Runtime.get().operator_registry.operator_names  # all or none


def test_plugin_for_other_headers_is_refused(compile_plugin: Any) -> None:
    library = compile_plugin(plugin_of("other::name", abi="wb::kPluginAbi + 1"), "other_abi")
    with pytest.raises(ExecutionError, match="version") as raised:
        Runtime.get().load_plugin(library)
    assert raised.value.code == "NotSupported"


def test_library_that_is_no_plugin_is_refused(compile_plugin: Any, tmp_path: Path) -> None:
    library = compile_plugin("int nothing() { return 0; }", "no_plugin")
    with pytest.raises(ExecutionError, match="does not export") as raised:
        Runtime.get().load_plugin(library)
    assert raised.value.code == "InvalidArgument"
    with pytest.raises(ExecutionError, match="can't load") as raised:
        Runtime.get().load_plugin(tmp_path / "missing.so")
    assert raised.value.code == "AccessFailed"


def test_backends_tell_where_they_come_from() -> None:
    registry = Runtime.get().backend_registry
    assert "BackendWithCompilerDemo" in registry.registered_backend_names
    assert registry.is_available("BackendWithCompilerDemo")
    assert not registry.is_available("NobodysBackend")
    assert registry.sources["BackendWithCompilerDemo"] == "backend.cc"
