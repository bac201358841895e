"""The example code of the delegation guide: only its import roots change, and its files run natively.

The texts in tests/seeds/ are the guide's code as it stands there.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from workbench.backends import delegates_in, to_backend
from workbench.backends.demo import AddMulPartitionerDemo
from workbench.runtime import Runtime

SEEDS = Path(__file__).parents[2] / "seeds"
ROOTS = {
    "executorch.exir.backend.test.backend_with_compiler_demo": "workbench.backends.demo",
    "executorch.exir.backend.test.op_partitioner_demo": "workbench.backends.demo",
    "executorch.exir.backend.backend_api": "workbench.backends",
    "executorch.exir.program": "workbench.managers",
    "executorch.exir": "workbench",
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def execute(*flows: int) -> dict[str, Any]:
    """Run the code of these flows in one namespace, as in one notebook."""
    names: dict[str, Any] = {"__name__": "seed"}
    for flow in flows:
        path = SEEDS / f"delegation_flow_{flow}.txt"
        code = path.read_text()
        for root, ours in ROOTS.items():
            code = code.replace(root, ours)
        exec(compile(code, str(path), "exec"), names)
    return names


def run(*inputs):
    return Runtime.get().load_program("delegate.pte").load_method("forward").execute(inputs)


def test_flow_1_lowers_a_whole_module():
    lowered = execute(1)["lowered_module"]
    assert lowered.backend_id == "BackendWithCompilerDemo"
    for value in (0.7, -2.0):
        x = torch.tensor([value])
        torch.testing.assert_close(run(x), [torch.sin(x)])


def test_flow_2_composes_the_lowered_module_into_another():
    lowered = execute(1, 2)["lowered_module"]
    x = torch.tensor([0.4])
    a = torch.sin(x)
    b = torch.sin(a)
    torch.testing.assert_close(run(x), [a, b, a + b + 0.3])
    # The module is called twice; its blob stands once in the file.
    assert Path("delegate.pte").read_bytes().count(lowered.processed_bytes) == 1


def test_flow_3_lowers_what_the_partitioner_tags():
    names = execute(3)
    program = names["edge"].exported_program()
    assert [d.lowered.backend_id for d in delegates_in(program.graph_module)] == ["AddMulBackendDemo"] * 2
    left = [str(n.target) for n in program.graph.nodes if str(n.target).startswith("aten")]
    assert left == ["aten.sub.Tensor", "aten.div.Tensor"]
    for _ in range(3):
        inputs = (torch.randn(1, 3), torch.randn(1, 3))
        torch.testing.assert_close(run(*inputs), [names["model"](*inputs)])


def test_flow_3_through_to_backend_gives_the_same_program():
    names = execute(3)
    from workbench import to_edge

    edge_program = to_edge(names["core_aten_ep"]).exported_program()
    lowered = to_backend(edge_program, AddMulPartitionerDemo())
    assert str(lowered.graph) == str(names["edge"].exported_program().graph)
