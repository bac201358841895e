from __future__ import annotations

import json
import zipfile
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from workbench.backends.debug import ensure_debug_handles
from workbench.errors import SerializationError
from workbench.serialize.etrecord import ETRecord, generate_etrecord, parse_etrecord


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen.add_(1)
        y = torch.relu(self.conv(x)).mean((2, 3))
        values, _ = torch.max(y, 1)
        branched = torch.cond(values.sum() > 0, lambda t: t + 1.5, lambda t: t * 2.0, (y,))
        return branched + self.seen, values


@pytest.fixture
def made(tmp_path):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8)
    shapes = ({0: torch.export.Dim("batch", min=1, max=8)},)
    exported = torch.export.export(Net().eval(), (x,), dynamic_shapes=shapes)
    edge = exported.run_decompositions()
    ensure_debug_handles(edge)
    emitted = SimpleNamespace(
        debug_handle_map={"forward": {0: (3,), 2: (4, 5)}},
        delegate_map={"forward": {2: {"name": "Demo", "delegate_map": {0: [4], 1: [5]}}}},
        instruction_id_to_num_outs_map={"forward": {2: 1}},
    )
    path = tmp_path / "net.etrecord"
    generate_etrecord(
        path, edge, emitted, exported, representative_inputs=[[x]], reference_outputs={"forward": [[x]]}
    )
    return SimpleNamespace(path=path, x=x, edge=edge, exported=exported)


def test_maps_and_inputs_read_back(made):
    record = parse_etrecord(made.path)
    assert record.debug_handle_map == {"forward": {0: (3,), 2: (4, 5)}}
    assert record.num_outs == {"forward": {2: 1}}
    assert record.delegate_map["forward"][2]["name"] == "Demo"
    assert torch.equal(record.representative_inputs[0][0], made.x)
    assert record.export_graph_id == id(made.exported.graph)
    assert set(record.reference_outputs) == {"forward"}


@pytest.mark.parametrize("stage", ["edge", "exported"])
def test_programs_run_as_before(made, stage):
    record = parse_etrecord(made.path)
    program = (record.edge["forward"] if stage == "edge" else record.exported).load()
    for batch in (2, 5):
        x = torch.randn(batch, 3, 8, 8)
        for found, expected in zip(program.module()(x), made.exported.module()(x), strict=True):
            torch.testing.assert_close(found, expected)


def test_each_call_keeps_its_debug_handle(made):
    wanted = {
        node.name: node.meta["debug_handle"]
        for node in made.edge.graph.nodes
        if node.op == "call_function" and "getitem" not in node.name
    }
    record = parse_etrecord(made.path)
    stored = {info.name: info.debug_handle for info in record.edge["forward"].nodes()}
    assert wanted.items() <= stored.items()
    loaded = {node.name: node.meta.get("debug_handle") for node in record.edge["forward"].load().graph.nodes}
    assert wanted.items() <= loaded.items()


def test_nodes_tell_operator_module_and_line_without_being_loaded(made):
    infos = {info.op: info for info in parse_etrecord(made.path).edge["forward"].nodes()}
    convolution = infos["aten.convolution.default"]
    assert list(convolution.module_stack.values())[-1] == ("conv", "torch.nn.modules.conv.Conv2d")
    assert "self.conv(x)" in convolution.stack_trace
    assert infos["higher_order.cond"].debug_handle is not None


def test_graphs_are_in_the_revision_that_other_tools_read(made):
    with zipfile.ZipFile(made.path) as archive:
        assert all(item.compress_type == zipfile.ZIP_STORED for item in archive.infolist())
        assert archive.read("ETRECORD_V0") == b""
        text = archive.read("edge_dialect_exported_program/forward").decode()
        names = set(archive.namelist())
    document = json.loads(text)
    assert document["schema_version"] == {"major": 5, "minor": 4}
    assert document["verifiers"] == ["EDGE"]
    assert "executorch.exir.dialects.edge.ops.aten.convolution.default" in text
    assert "Symbol(" not in text
    for added in ("torch_version", "guards_code", '"kind"', "is_hop_single", "sym_float_values"):
        assert added not in text
    parts = {f"exported_program{part}" for part in ("", "_state_dict", "_constants", "_example_inputs")}
    assert parts <= names


def test_record_is_made_in_memory_and_completed_later(made, tmp_path):
    record = parse_etrecord(made.path)
    record.update_representative_inputs([[made.x + 1]])
    record.update_reference_outputs([[made.x]])
    record.save(tmp_path / "again")
    again = parse_etrecord(tmp_path / "again")
    assert torch.equal(again.representative_inputs[0][0], made.x + 1)
    assert list(again.reference_outputs) == ["forward"]
    assert again.edge["forward"].graph == record.edge["forward"].graph


def test_record_without_maps_is_not_written(tmp_path):
    with pytest.raises(SerializationError, match="needs an edge program"):
        ETRecord().save(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"no zip")
    with pytest.raises(SerializationError, match="not an ETRecord"):
        parse_etrecord(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("exported_program", "{}")
    with pytest.raises(SerializationError, match="not an ETRecord"):
        parse_etrecord(path)


def test_damaged_program_is_refused(made, tmp_path):
    record = parse_etrecord(made.path)
    record.edge["forward"].state_dict = b"damaged"
    with pytest.raises(SerializationError, match="can't be rebuilt"):
        record.edge["forward"].load()


def test_edge_names_of_foreign_namespaces_are_mapped(made):
    program = parse_etrecord(made.path).edge["forward"]
    first = program.graph["graph_module"]["graph"]["nodes"][0]
    first["target"] = "executorch.exir.dialects.edge.ops.no_such.operator.default"
    assert program.nodes()[0].op == "no_such.operator.default"
    with pytest.raises(SerializationError, match="can't be rebuilt"):
        program.load()
