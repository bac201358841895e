"""The program view: bytes that add up, duplicates, instructions with their origins, delegates opened."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import workbench as wb
from networks import build
from workbench.emit import ir
from workbench.errors import WorkbenchError
from workbench.serialize import write_program
from workbench.serialize.program_reader import read_parts
from workbench_widgets.context import Context
from workbench_widgets.pack import pack, unpack
from workbench_widgets.program.blobs import open_blob
from workbench_widgets.program.contract import ProgramDocument
from workbench_widgets.program.delegate import delegate_document, hex_lines, texts_in
from workbench_widgets.program.document import program_document
from workbench_widgets.program.method import method_document
from workbench_widgets.program.picture import picture
from workbench_widgets.program.ranges import file_ranges, flatbuffer_ranges
from workbench_widgets.program.treemap import squarify

DEMO = "workbench.backends.demo:AddMulPartitionerDemo"


class Mixed(nn.Module):
    """Something to delegate, something that stays, the same weights twice, a state."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)
        self.two.load_state_dict(self.one.state_dict())
        self.register_buffer("seen", torch.arange(8.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(1.0)
        y = torch.tanh(self.one(x))
        return torch.softmax((y * y + self.seen) * 2.0, -1) + self.two(y)


@pytest.fixture(scope="module")
def plain() -> wb.Lowering:
    network = build("dscnn")
    return wb.lower(network.model, network.inputs, progress=False)


@pytest.fixture(scope="module")
def mixed() -> wb.Lowering:
    torch.manual_seed(0)
    return wb.lower(Mixed().eval(), (torch.randn(2, 8),), recipe=wb.Recipe(partitioner=DEMO), progress=False)


def leaves(document: ProgramDocument) -> list[int]:
    parents = set(document.part_parent.tolist())
    return [row for row in range(len(document.part_kind)) if row not in parents]


def handles_of(starts: Any, values: Any, row: int) -> set[int]:
    return set(values[starts[row] : starts[row + 1]].tolist())


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("name", ["plain", "mixed"])
def test_parts_add_up_to_the_file_exactly(name: str, opened: bool, request: pytest.FixtureRequest) -> None:
    lowering = request.getfixturevalue(name)
    size = len(lowering.program.buffer)
    subject = wb.open(lowering.program.buffer) if opened else lowering
    document = program_document(Context(subject), "")
    assert document.size == document.part_bytes[0] == size
    assert sum(document.part_bytes[row] for row in leaves(document)) == size
    for row in range(len(document.part_kind)):
        children = np.flatnonzero(document.part_parent == row)
        if len(children):
            assert document.part_bytes[children].sum() == document.part_bytes[row], document.part_name[row]
            assert (children > row).all()
    assert unpack(pack(document))["size"] == size


def test_ranges_cover_a_file_once_and_in_order(mixed: wb.Lowering, tmp_path: Path) -> None:
    path = tmp_path / "mixed.pte"
    mixed.save(path)
    parts = read_parts(path)
    ranges = file_ranges(parts)
    assert [item.start for item in ranges[1:]] == [item.end for item in ranges[:-1]]
    assert (ranges[0].start, ranges[-1].end) == (0, path.stat().st_size)
    data = path.read_bytes()
    pools: dict[str, Any] = {
        "constant": parts.program.constants,
        "state": parts.program.states,
        "delegate": parts.program.delegate_data,
    }
    seen = dict.fromkeys(pools, 0)
    for item in ranges:
        if item.kind in pools:
            assert data[item.start : item.end] == bytes(pools[item.kind][item.index])
            seen[item.kind] += 1
        elif item.kind == "padding":
            assert not any(data[item.start : item.end])
    assert all(seen.values()), seen
    names = dict(flatbuffer_ranges(parts.data[: parts.flatbuffer]))
    assert sum(names.values()) == parts.flatbuffer
    assert names["forward: instructions"] > 0
    assert names["forward: values"] > names["forward: delegates"]


def test_data_inside_the_flatbuffer_is_listed_on_its_own() -> None:
    method = ir.Method(
        "forward",
        values=[ir.Tensor(6, (2,), (0,))],
        delegates=[ir.Delegate("Somebody", 0)],
        chains=[ir.Chain([ir.DelegateCall(0, (0, 0))])],
        inputs=[0],
        outputs=[0],
    )
    blob = b"a text in a blob" * 8
    program = ir.Program(methods=[method], delegate_data=[memoryview(blob)], extract_delegates=False)
    data = bytes(write_program(program).buffer)
    document = program_document(Context(wb.open(data)), "")
    kinds = {document.part_kind[row]: document.part_bytes[row] for row in leaves(document)}
    assert kinds["delegate"] == len(blob)
    assert sum(kinds.values()) == len(data)
    assert document.delegate_format[0] == ""
    shown = delegate_document(Context(wb.open(data)), "forward/0")
    assert shown.format == ""
    assert "a text in a blob" in shown.texts[0]
    assert len(shown.hex) == len(blob) // 16


def test_constants_have_the_names_and_users_of_the_model(plain: wb.Lowering) -> None:
    context = Context(plain)
    document = program_document(context, "")
    code = method_document(context, "forward")
    names = {document.part_name[row]: row for row in leaves(document)}
    row = names["29.weight"]
    assert document.part_module[row] == "29"
    assert document.part_operator[row] == "addmm"
    assert document.part_uses[row] == 1
    (instruction,) = [at for at, name in enumerate(code.name) if name == "aten::addmm.out"]
    own = handles_of(code.handle_start, code.handles, instruction)
    assert own
    assert own <= handles_of(document.part_handle_start, document.part_handles, row)
    weight = names["0.weight"]
    assert "computed ahead from 0.weight" in document.part_detail[weight]
    assert document.part_detail[weight].startswith("float32 [64, 1, 10, 4]")
    # Each constant is used by exactly the instructions that name it.
    for row in leaves(document):
        if document.part_kind[row] != "constant":
            continue
        (value,) = np.flatnonzero(code.value_part == document.part_index[row]).tolist()
        assert document.part_uses[row] == code.use_start[value + 1] - code.use_start[value]


def test_equal_constants_are_found_and_what_they_cost() -> None:
    values = np.arange(64, dtype=np.float32)
    pieces = [values, values.copy(), values + 1, values[:32].copy(), np.concatenate([values[:32]])]
    tensors = [ir.Tensor(6, (len(piece),), (0,), buffer=at) for at, piece in enumerate(pieces, start=1)]
    method = ir.Method("forward", values=list(tensors), outputs=list(range(len(tensors))))
    constants = [memoryview(b""), *(memoryview(piece.tobytes()) for piece in pieces)]
    data = bytes(write_program(ir.Program(methods=[method], constants=constants)).buffer)
    document = program_document(Context(wb.open(data)), "")
    assert (document.saved, document.duplicates) == (256 + 128, 2)
    same = {
        int(document.part_index[row]): int(document.part_same[row])
        for row in leaves(document)
        if document.part_kind[row] == "constant"
    }
    assert same[1] == same[2] >= 0
    assert same[4] == same[5] >= 0
    assert same[1] != same[4]
    assert same[3] == -1


def test_instructions_read_like_calls_and_know_their_source(plain: wb.Lowering) -> None:
    context = Context(plain)
    code = method_document(context, "forward")
    method = plain.program.emitted.program.method("forward")
    assert len(code.name) == len(method.instructions)
    assert code.arguments[0].startswith("input=%20 float32[1, 1, 49, 10], weight=%1 float32[64, 1, 10, 4]")
    assert "stride=[2, 2]" in code.arguments[0]
    assert code.results[0] == "%30 float32[1, 64, 25, 5]"
    assert code.written_bytes[0] == 64 * 25 * 5 * 4
    assert code.constant_bytes[0] == (64 * 40 + 64) * 4
    assert code.module[0] == "0"
    assert ".py:" in code.source[0]
    assert all(kind == "kernel" for kind in code.kind)
    handle = min(handles_of(code.handle_start, code.handles, 0))
    assert plain.exported.table["handles"].map(lambda own: handle in own).any()
    opened = method_document(Context(wb.open(plain.program.buffer)), "forward")
    assert opened.handles.tolist() == list(range(1, len(code.name) + 1))
    assert list(opened.arguments) == list(code.arguments)
    with pytest.raises(WorkbenchError, match="no such method"):
        method_document(context, "backward")


def test_arguments_and_results_of_delegates_are_told_apart(mixed: wb.Lowering) -> None:
    own = method_document(Context(mixed), "forward")
    read = method_document(Context(wb.open(mixed.program.buffer)), "forward")
    rows = [row for row, kind in enumerate(own.kind) if kind == "delegate"]
    assert rows
    counts = mixed.plan.emitted.instruction_id_to_num_outs["forward"]
    for row in rows:
        assert own.results[row].count("%") == counts[row]
        assert own.arguments[row].count("%") > 0
        assert (own.arguments[row], own.results[row]) == (read.arguments[row], read.results[row])
        assert own.written_bytes[row] == read.written_bytes[row] > 0


def test_operators_count_calls_bytes_and_kernels(plain: wb.Lowering) -> None:
    document = program_document(Context(plain), "")
    names = list(document.operator_name)
    row = names.index("aten::convolution.out")
    assert document.operator_calls[row] == 9
    assert document.operator_kernel[row] == 1
    assert document.operator_calls.sum() == len(plain.program.emitted.program.method("forward").instructions)
    constants = [r for r in leaves(document) if document.part_kind[r] == "constant"]
    assert document.operator_constant_bytes.sum() == document.part_bytes[constants].sum()
    program = ir.Program(
        methods=[
            ir.Method(
                "forward",
                values=[ir.Int(1)],
                operators=[("nobody::knows", "out")],
                chains=[ir.Chain([ir.KernelCall(0, (0, 0))])],
            )
        ]
    )
    unknown = program_document(Context(wb.open(bytes(write_program(program).buffer))), "")
    assert (unknown.operator_name[0], unknown.operator_kernel[0]) == ("nobody::knows.out", 0)


def test_demo_delegates_open_and_their_steps_have_handles(mixed: wb.Lowering) -> None:
    context = Context(mixed)
    document = program_document(context, "")
    assert len(document.delegate_backend) >= 1
    assert set(document.delegate_format) == {"demo instruction list"}
    shown = delegate_document(context, f"forward/{int(document.delegate_index[0])}")
    assert shown.format == "demo instruction list"
    assert "mul" in set(shown.step_name)
    known = handles_of(document.delegate_handle_start, document.delegate_handles, 0)
    for row in range(len(shown.step_name)):
        own = handles_of(shown.step_handle_start, shown.step_handles, row)
        assert own
        assert own <= known
        assert shown.step_node[row]
    assert shown.section_bytes.sum() == document.delegate_bytes[0]
    # The same blob without provenance: its steps, but no nodes.
    opened = delegate_document(Context(wb.open(mixed.program.buffer)), "forward/0")
    assert list(opened.step_name) == list(shown.step_name)
    assert len(opened.step_handles) == 0
    for key in ("forward/99", "forward/x", "backward/0", ""):
        with pytest.raises(WorkbenchError, match="no such delegate"):
            delegate_document(context, key)


def test_damaged_blobs_are_shown_as_bytes_with_the_reason(mixed: wb.Lowering) -> None:
    blob = bytes(mixed.program.emitted.program.delegate_data[0])
    generator = np.random.default_rng(0)
    assert open_blob(memoryview(b"something else entirely")) is None
    for _ in range(300):
        broken = bytearray(blob)
        for place in generator.integers(4, len(blob), 3):
            broken[place] = int(generator.integers(256))
        for data in (bytes(broken), blob[: int(generator.integers(4, len(blob)))]):
            found = open_blob(memoryview(data))
            assert found is not None
            # Read as a whole, or refused with a reason: sizes that lie would have run over the end.
            assert bool(found.note) != bool(found.sections)
            if found.sections:
                assert sum(section.size for section in found.sections) == len(data)


def _xnnpack(graph: bytes, constants: bytes = b"") -> bytes:
    base = 32 + len(graph) + -len(graph) % 16
    head = struct.pack(
        "<4s4sHIIIQ", b"", b"XH00", 30, 32, len(graph), base if constants else 0, len(constants)
    )
    return (head.ljust(32, b"\0") + graph).ljust(base, b"\0") + constants


def test_xnnpack_blobs_of_another_make_say_what_is_wrong() -> None:
    blob = open_blob(memoryview(_xnnpack(b"\x08\0\0\0NOPE\0\0\0\0")))
    assert blob is not None
    assert "no XNNPACK graph" in blob.note
    outside = struct.pack("<4s4sHIIIQ", b"", b"XH00", 30, 32, 1 << 20, 0, 0)
    blob = open_blob(memoryview(outside.ljust(64, b"\0")))
    assert blob is not None
    assert "outside" in blob.note


def test_xnnpack_delegates_open_with_nodes_and_named_data(tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="executorch writes the file")
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 5)).eval()
    exported = torch.export.export(model, (torch.randn(1, 2, 8, 8),))
    program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
    path = tmp_path / "xnnpack.pte"
    path.write_bytes(program.buffer)
    context = Context(wb.open(path))
    document = program_document(context, "")
    assert document.part_bytes[leaves(document)].sum() == path.stat().st_size
    assert set(document.delegate_format) == {"XNNPACK subgraph"}
    steps: list[str] = []
    details: list[str] = []
    for index in range(len(document.delegate_backend)):
        shown = delegate_document(context, f"forward/{index}")
        assert shown.note == ""
        assert shown.facts["identifier"] == "XN01"
        assert "XH00" in shown.facts["header"]
        steps += shown.step_name
        details += shown.step_detail
    assert "convolution 2d" in steps
    assert "fully connected" in steps
    (convolution,) = [text for text in details if text.startswith("kernel 3x3")]
    assert "stride 2x2" in convolution
    named = {
        document.part_name[row]: document.part_bytes[row]
        for row in leaves(document)
        if document.part_kind[row] == "data"
    }
    (weight,) = [size for name, size in named.items() if name.endswith("fully connected filter")]
    assert weight == 36 * 5 * 4
    blob = bytes(wb.open(path).program.delegate_data[0])
    generator = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(blob)
        for place in generator.integers(8, len(blob), 4):
            broken[place] = int(generator.integers(256))
        assert open_blob(memoryview(broken)) is not None


@pytest.mark.parametrize("seed", range(20))
def test_squarified_boxes_fill_the_box_in_proportion(seed: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = sorted((generator.pareto(1.1, int(generator.integers(1, 80))) + 1e-3).tolist(), reverse=True)
    width, height = generator.uniform(20, 900, 2).tolist()
    boxes = squarify(sizes, (5.0, 7.0, width, height))
    assert len(boxes) == len(sizes)
    scale = width * height / sum(sizes)
    for size, (x, y, w, h) in zip(sizes, boxes, strict=True):
        assert w * h == pytest.approx(size * scale, rel=1e-6)
        assert x >= 5 - 1e-6
        assert y >= 7 - 1e-6
        assert x + w <= 5 + width + 1e-6
        assert y + h <= 7 + height + 1e-6
    for one in range(len(boxes)):
        for two in range(one):
            (x, y, w, h), (a, b, c, d) = boxes[one], boxes[two]
            assert min(x + w, a + c) - max(x, a) < 1e-6 or min(y + h, b + d) - max(y, b) < 1e-6


def test_picture_shows_the_bytes_and_tables(plain: wb.Lowering) -> None:
    shown = picture(Context(plain))
    assert f"{len(plain.program.buffer):,} bytes" in shown.text
    assert "29.weight" in shown.html
    assert "aten::convolution.out" in shown.text
    assert shown.html.count("<svg") == 1
    assert shown.html.count("<rect") > 20


def test_helpers_show_bytes_and_texts() -> None:
    assert hex_lines(memoryview(b"hello world, \x00\x01\xff")) == [
        "000000  68 65 6c 6c 6f 20 77 6f  72 6c 64 2c 20 00 01 ff  hello world, ..."
    ]
    assert texts_in(memoryview(b"\0\0conv1\0abc\0weights\0conv1\0")) == ["conv1", "weights"]


def test_widget_carries_all_that_a_view_first_needs(show: Any, mixed: wb.Lowering) -> None:
    page = show(mixed, "program")
    assert set(page.widget.documents) == {"program:", "program_method:forward"}
    reply, buffers = page.ask(document="program_delegate", key="forward/0")
    assert "error" not in reply
    assert unpack(buffers[0])["backend"]
    reply, _ = page.ask(document="program_delegate", key="forward/77")
    assert reply["error"]["kind"] == "WorkbenchError"
    report = list(page.widget.view.report(page.widget.context))
    assert ("program_delegate", "forward/0") in report
