"""Several methods on the way from exported programs to a file."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn
from torch.export import Dim

from workbench.backends.demo import AddMulPartitionerDemo
from workbench.edge.config import EdgeCompileConfig
from workbench.emit import ExecutorchBackendConfig
from workbench.errors import LoweringError, MissingKernelError, PartitionError, VerificationError
from workbench.export import export
from workbench.managers import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from workbench.passes.base import InPlacePass
from workbench.serialize import read_program

aten = torch.ops.aten


class AddMul(nn.Module):
    def forward(self, x, y):
        x = x + y
        x = x * y
        x = x - y
        return x * y + x


def _pair():
    return torch.randn(1, 3), torch.randn(1, 3)


def _targets(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def test_single_program_is_called_forward():
    manager = to_edge(export(AddMul(), _pair()))
    assert manager.methods == {"forward"}
    assert manager.config_methods == set()
    assert "aten.sub.Tensor" in _targets(manager.exported_program())


def test_methods_keep_their_names_and_share_their_weights():
    model = nn.Linear(4, 3)
    programs = {f"rows_{n}": export(model, (torch.randn(n, 4),)) for n in (1, 7)}
    manager = to_edge(programs)
    assert manager.methods == {"rows_1", "rows_7"}
    pointers = {manager.exported_program(name).state_dict["weight"].data_ptr() for name in manager.methods}
    assert pointers == {model.weight.data_ptr()}
    program = manager.to_executorch().executorch_program
    assert len([data for data in program.constants if len(data) == 4 * 3 * 4]) == 1


def test_unknown_method_is_refused_with_the_known_ones():
    manager = to_edge({"a": export(AddMul(), _pair())})
    with pytest.raises(LoweringError, match="no method `forward`") as caught:
        manager.exported_program()
    assert caught.value.expected == "a"


def test_what_is_no_exported_program_is_refused():
    with pytest.raises(LoweringError, match="not an exported program") as caught:
        to_edge(AddMul())
    assert "workbench.export" in caught.value.hint


def test_constant_methods_are_methods_of_the_program():
    manager = to_edge(export(AddMul(), _pair()), constant_methods={"version": 3, "name": "m", "scale": 0.5})
    assert manager.config_methods == {"version", "name", "scale"}
    program = manager.to_executorch()
    assert program.config_methods == {"version", "name", "scale"}
    assert {method.name for method in program.executorch_program.methods} == {
        "forward",
        "version",
        "name",
        "scale",
    }


def test_constant_method_with_the_name_of_a_method_is_refused():
    with pytest.raises(LoweringError, match="both a method and a constant method"):
        to_edge(export(AddMul(), _pair()), constant_methods={"forward": 1})


def test_transform_makes_a_new_manager_and_leaves_the_old_one():
    class ToTanh(InPlacePass):
        name = "to_tanh"

        def run(self, program):
            for node in program.graph.nodes:
                if node.target is aten.relu.default:
                    node.target = aten.tanh.default
            return {"operators": 1}

    manager = to_edge({name: export(nn.ReLU(), (torch.randn(3),)) for name in ("a", "b")})
    changed = manager.transform({"a": [ToTanh()]})
    assert _targets(manager.exported_program("a")) == ["aten.relu.default"]
    assert _targets(changed.exported_program("a")) == ["aten.tanh.default"]
    assert _targets(changed.exported_program("b")) == ["aten.relu.default"]
    assert changed.pass_results["a"][-1].counts == {"operators": 1}


def test_transform_that_breaks_a_rule_is_refused():
    def to_in_place(graph_module):
        for node in graph_module.graph.nodes:
            if node.target is aten.relu.default:
                node.target = aten.relu_.default

    manager = to_edge(export(nn.ReLU(), (torch.randn(3),)))
    with pytest.raises(VerificationError, match="mutation"):
        manager.transform([to_in_place])
    unchecked = EdgeCompileConfig(_check_ir_validity=False)
    assert isinstance(manager.transform([to_in_place], unchecked), EdgeProgramManager)


def test_partitioner_takes_its_operators_and_leaves_the_rest():
    manager = to_edge(export(AddMul(), _pair()))
    lowered = manager.to_backend(AddMulPartitionerDemo())
    found = _targets(lowered.exported_program())
    assert "executorch_call_delegate" in found
    assert "aten.sub.Tensor" in found
    assert "aten.mul.Tensor" not in found
    assert "aten.mul.Tensor" in _targets(manager.exported_program())
    x, y = _pair()
    torch.testing.assert_close(lowered.exported_program().module()(x, y), AddMul()(x, y))


def test_partitioner_of_one_method_leaves_the_others():
    manager = to_edge({name: export(AddMul(), _pair()) for name in ("a", "b")})
    lowered = manager.to_backend({"b": AddMulPartitionerDemo()})
    assert "executorch_call_delegate" not in _targets(lowered.exported_program("a"))
    assert "executorch_call_delegate" in _targets(lowered.exported_program("b"))


def test_partitioner_of_an_unknown_method_is_refused():
    with pytest.raises(PartitionError, match="no such method"):
        to_edge_transform_and_lower(
            export(AddMul(), _pair()), partitioner={"other": [AddMulPartitionerDemo()]}
        )


def test_both_ways_to_lower_give_the_same_graph():
    program = export(AddMul(), _pair())
    first = to_edge(program).to_backend(AddMulPartitionerDemo())
    second = to_edge_transform_and_lower(program, partitioner=[AddMulPartitionerDemo()])
    assert _targets(first.exported_program()) == _targets(second.exported_program())


class WantsWhole(AddMulPartitionerDemo):
    """Asks for linear and leaves it behind."""

    def __init__(self, wanted=None):
        super().__init__()
        self._wanted = wanted

    def ops_to_not_decompose(self, program):
        return [aten.linear.default], self._wanted


def test_operator_kept_whole_and_left_behind_is_an_error():
    program = export(nn.Linear(4, 3), (torch.randn(1, 4),))
    with pytest.raises(LoweringError, match="kept whole for a partitioner") as caught:
        to_edge_transform_and_lower(program, partitioner=[WantsWhole()])
    assert caught.value.node == "linear"


def test_filter_of_a_partitioner_decides_by_node():
    program = export(nn.Linear(4, 3), (torch.randn(1, 4),))
    lowered = to_edge_transform_and_lower(program, partitioner=[WantsWhole(lambda node: False)])
    assert "aten.linear.default" not in _targets(lowered.exported_program())


def test_view_that_a_partitioner_wants_whole_is_decomposed_with_a_warning():
    class WantsViews(AddMulPartitionerDemo):
        def ops_to_not_decompose(self, program):
            return [aten.view.default], None

    with pytest.warns(UserWarning, match="returns an alias"):
        to_edge_transform_and_lower(export(AddMul(), _pair()), partitioner=[WantsViews()])


def test_file_and_buffer_hold_the_same_program(tmp_path):
    manager = to_edge(export(nn.Linear(4, 3), (torch.randn(1, 4),))).to_executorch()
    path = tmp_path / "linear.pte"
    manager.save(path)
    assert path.read_bytes() == manager.buffer
    stream = io.BytesIO()
    manager.write_to_file(stream)
    assert stream.getvalue() == manager.buffer
    assert [method.name for method in read_program(manager.buffer).methods] == ["forward"]
    with pytest.raises(ValueError, match=r"does not end with \.pte"):
        manager.save(tmp_path / "linear.bin")


def test_lowering_twice_gives_the_same_bytes():
    manager = to_edge(export(nn.Linear(4, 3), (torch.randn(1, 4),)))
    assert manager.to_executorch().buffer == manager.to_executorch().buffer


def test_edge_programs_are_the_same_after_emission():
    manager = to_edge(export(nn.Linear(4, 3), (torch.randn(1, 4),)))
    before = str(manager.exported_program().graph)
    manager.to_executorch()
    assert str(manager.exported_program().graph) == before


def test_operator_without_kernel_is_refused_by_name():
    class Hypot(nn.Module):
        def forward(self, x):
            return torch.hypot(x, x)

    config = EdgeCompileConfig(_core_aten_ops_exception_list=[aten.hypot.default])
    manager = to_edge(export(Hypot(), (torch.randn(3),)), compile_config=config)
    with pytest.raises(MissingKernelError) as caught:
        manager.to_executorch()
    assert caught.value.node == "hypot"
    assert caught.value.source is not None
    assert "test_managers.py:" in caught.value.source
    manager.to_executorch(ExecutorchBackendConfig(check_kernels=False))


def test_upper_bounds_of_dynamic_sizes_come_from_the_export():
    rows = Dim("rows", min=1, max=100)
    program = export(nn.ReLU(), (torch.randn(4, 8),), dynamic_shapes=({0: rows},))
    (arena,) = to_edge(program).to_executorch().executorch_program.methods[0].arena_sizes[1:]
    assert arena >= 2 * 100 * 8 * 4


def test_reports_of_the_program_are_at_hand():
    manager = to_edge(export(nn.Linear(4, 3), (torch.randn(1, 4),))).to_executorch()
    assert manager.debug_handle_map["forward"]
    assert manager.delegate_map == {} or not manager.delegate_map["forward"]
    assert manager.memory_report.methods["forward"].size > 0
    text = io.StringIO()
    manager.dump_executorch_program(out=text)
    assert "addmm" in text.getvalue()


def test_record_of_a_lowering_is_at_hand_where_asked_for(tmp_path):
    from workbench.serialize.etrecord import parse_etrecord

    program = export(AddMul(), _pair())
    partitioner = [AddMulPartitionerDemo()]
    manager = to_edge_transform_and_lower(program, partitioner=partitioner, generate_etrecord=True)
    record = manager.to_executorch().get_etrecord()
    record.save(tmp_path / "lowering.etrecord")
    again = parse_etrecord(tmp_path / "lowering.etrecord")
    assert set(again.edge) == {"forward"}
    assert again.debug_handle_map["forward"]
    with pytest.raises(LoweringError, match="no record"):
        to_edge(program).to_executorch().get_etrecord()


def test_transform_takes_a_single_pass():
    from workbench.passes.dead_code import DeadCode

    manager = to_edge(export(AddMul(), _pair())).transform(DeadCode())
    assert manager.pass_results["forward"][-1].modified is False


def test_batch_norm_is_folded_where_asked_for():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    program = export(model, (torch.randn(1, 3, 8, 8),))
    kept = EdgeCompileConfig(fold_batch_norm=False)
    folded, whole = to_edge(program), to_edge(program, compile_config=kept)
    assert _targets(folded.exported_program()) == ["aten.convolution.default"]
    names = [method.operators for method in whole.to_executorch().executorch_program.methods]
    assert any("batch_norm" in str(name) for name in names[0])
