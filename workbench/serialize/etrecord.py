"""ETRecord files: what lowering knew, for whoever reads a profile later.

A stored zip: the exported program, the edge programs by method, and the maps from instructions to debug
handles. Programs are in the JSON of torch.export's serialization; `graph_json` holds the differences between
the revision that ExecuTorch's tools read and the one of the installed torch.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

import torch
from torch.export import ExportedProgram

from workbench.errors import SerializationError, WorkbenchError
from workbench.serialize import graph_json

__all__ = ["ETRecord", "StoredProgram", "generate_etrecord", "parse_etrecord"]

_IDENTIFIER = "ETRECORD_V0"
_EXPORTED = "exported_program"
_EDGE = "edge_dialect_exported_program"
_PARTS = ("_state_dict", "_constants", "_example_inputs")

HandleMap: TypeAlias = dict[str, dict[int, tuple[int, ...]]]


@dataclass(slots=True)
class StoredProgram:
    """A program of a record: its graph as JSON, and the rest as torch wrote it.

    The graph can be looked at without the operators that it names; `load` needs them.
    """

    graph: dict[str, Any]
    state_dict: bytes
    constants: bytes
    example_inputs: bytes

    def nodes(self) -> list[graph_json.NodeInfo]:
        """The call nodes, branches of control flow included, in order."""
        return graph_json.nodes_of(self.graph)

    def load(self) -> ExportedProgram:
        """The program as an object, with operators of the edge dialect mapped to plain ones.

        Raises:
            SerializationError: torch can't rebuild it, for example since an operator is not registered.
        """
        return graph_json.from_wire(self.graph, self.state_dict, self.constants, self.example_inputs)


@dataclass
class ETRecord:
    """What a record holds.

    Attributes:
        exported: The program as exported, or None.
        edge: The edge programs by method, before delegation.
        debug_handle_map: By method, from instruction to the debug handles of the nodes that it stands for.
        delegate_map: By method, from instruction to
            `{"name": backend, "delegate_map": {identifier: handles}}`.
        num_outs: By method, from instruction to how many results it has.
        export_graph_id: Identifies the exported graph in the nodes' history.
        representative_inputs: Inputs to compare with, one list per example; or None.
        reference_outputs: By method, the outputs that belong to them; or None.
        extra: Further programs, by `name/method`.
    """

    exported: StoredProgram | None = None
    edge: dict[str, StoredProgram] = field(default_factory=dict)
    debug_handle_map: HandleMap = field(default_factory=dict)
    delegate_map: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    num_outs: dict[str, dict[int, int]] = field(default_factory=dict)
    export_graph_id: int = 0
    representative_inputs: Any = None
    reference_outputs: Any = None
    extra: dict[str, StoredProgram] = field(default_factory=dict)

    def update_representative_inputs(self, inputs: Any) -> None:
        """Set the inputs to compare with: a list of inputs per example."""
        self.representative_inputs = inputs

    def update_reference_outputs(self, outputs: Any) -> None:
        """Set the outputs that belong to them: by method, or a list for `forward`."""
        self.reference_outputs = outputs if isinstance(outputs, dict) else {"forward": outputs}

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the record.

        Raises:
            SerializationError: It has no edge program or no debug handles, without which no tool can use it.
        """
        if not self.edge or not self.debug_handle_map:
            raise SerializationError(
                "an ETRecord needs an edge program and the map of debug handles",
                hint="make it with generate_etrecord(path, edge_manager, executorch_manager)",
            )
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_IDENTIFIER, "")
            if self.exported is not None:
                _write_program(archive, _EXPORTED, self.exported)
            for method, program in self.edge.items():
                _write_program(archive, f"{_EDGE}/{method}", program)
            for name, program in self.extra.items():
                _write_program(archive, name, program)
            archive.writestr("debug_handle_map", json.dumps(self.debug_handle_map))
            archive.writestr("delegate_map", json.dumps(self.delegate_map))
            archive.writestr("instruction_id_to_num_outs_map", json.dumps(self.num_outs))
            archive.writestr("export_graph_id", json.dumps(self.export_graph_id))
            for name in ("representative_inputs", "reference_outputs"):
                if getattr(self, name) is not None:
                    buffer = io.BytesIO()
                    torch.save(getattr(self, name), buffer)
                    archive.writestr(name, buffer.getvalue())


def generate_etrecord(
    et_record: str | os.PathLike[str] | IO[bytes] | None,
    edge_dialect_program: Any,
    executorch_program: Any,
    exported_program: ExportedProgram | None = None,
    *,
    representative_inputs: Any = None,
    reference_outputs: Any = None,
) -> ETRecord:
    """Make a record of a lowering, and write it.

    Args:
        et_record: The path of the file, or an open one; None: the record is only returned.
        edge_dialect_program: An `EdgeProgramManager`, an edge program, or several by method; as they were
            before delegation, with debug handles.
        executorch_program: The `ExecutorchProgramManager`.
        exported_program: What `torch.export` made.
        representative_inputs: A list of inputs of `forward`, for the comparison of intermediate outputs.
        reference_outputs: The outputs that belong to them, by method.

    Raises:
        SerializationError: A program can't be written.
    """
    record = ETRecord(
        exported=None if exported_program is None else _store(exported_program),
        edge={method: _store(p, edge=True) for method, p in _edge_programs(edge_dialect_program).items()},
        debug_handle_map=_by_int(executorch_program.debug_handle_map, _handles),
        delegate_map=_by_int(executorch_program.delegate_map or {}, dict),
        num_outs=_by_int(executorch_program.instruction_id_to_num_outs_map or {}, int),
        export_graph_id=0 if exported_program is None else id(exported_program.graph),
        representative_inputs=representative_inputs,
        reference_outputs=reference_outputs,
    )
    if et_record is not None:
        record.save(et_record)
    return record


def parse_etrecord(etrecord_path: str | os.PathLike[str]) -> ETRecord:
    """Read a record.

    Raises:
        SerializationError: The file is not an ETRecord, or is damaged.
    """
    try:
        with zipfile.ZipFile(etrecord_path) as archive:
            return _parse(archive)
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, RuntimeError, AttributeError) as error:
        raise SerializationError(
            f"{os.fspath(etrecord_path)} is not an ETRecord", found=f"{type(error).__name__}: {error}"
        ) from error


def _parse(archive: zipfile.ZipFile) -> ETRecord:
    names = archive.namelist()
    if _IDENTIFIER not in names:
        raise ValueError(f"no entry {_IDENTIFIER}")
    record = ETRecord()
    known = {_IDENTIFIER, "representative_inputs", "reference_outputs"}
    for entry, attribute, convert in (
        ("debug_handle_map", "debug_handle_map", _handles),
        ("delegate_map", "delegate_map", dict),
        ("instruction_id_to_num_outs_map", "num_outs", int),
    ):
        known.add(entry)
        if entry in names:
            setattr(record, attribute, _by_int(json.loads(archive.read(entry)) or {}, convert))
    if "export_graph_id" in names:
        record.export_graph_id = int(json.loads(archive.read("export_graph_id")))
    known.add("export_graph_id")
    for entry in ("representative_inputs", "reference_outputs"):
        if entry in names:
            setattr(record, entry, torch.load(io.BytesIO(archive.read(entry)), weights_only=True))
    for entry in names:
        if entry in known or entry.endswith(_PARTS):
            continue
        program = _read_program(archive, entry)
        if entry == _EXPORTED:
            record.exported = program
        elif entry == _EDGE:  # of older writers, which knew one method
            record.edge["forward"] = program
        elif entry.startswith(f"{_EDGE}/"):
            record.edge[entry[len(_EDGE) + 1 :]] = program
        else:
            record.extra[entry] = program
    return record


def _edge_programs(source: Any) -> dict[str, ExportedProgram]:
    if isinstance(source, ExportedProgram):
        return {"forward": source}
    if isinstance(source, Mapping):
        return dict(source)
    return {method: source.exported_program(method) for method in sorted(source.methods)}


def _store(program: ExportedProgram, *, edge: bool = False) -> StoredProgram:
    try:
        return StoredProgram(*graph_json.to_wire(program, edge=edge))
    except WorkbenchError:
        raise
    except Exception as error:  # torch's serializer raises whatever its parts raise
        raise SerializationError(
            "a program can't be written into the ETRecord",
            stage="edge" if edge else "exported",
            found=str(error),
        ) from error


def _write_program(archive: zipfile.ZipFile, name: str, program: StoredProgram) -> None:
    archive.writestr(name, json.dumps(program.graph))
    for part in _PARTS:
        archive.writestr(f"{name}{part}", getattr(program, part[1:]))


def _read_program(archive: zipfile.ZipFile, name: str) -> StoredProgram:
    graph = json.loads(archive.read(name))
    return StoredProgram(graph, *(archive.read(f"{name}{part}") for part in _PARTS))


def _by_int(by_method: Mapping[str, Any], convert: Callable[[Any], Any]) -> dict[str, dict[int, Any]]:
    """JSON has only text for keys: instructions become numbers again, and values get one type."""
    return {
        method: {int(key): convert(value) for key, value in entries.items()}
        for method, entries in by_method.items()
    }


def _handles(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)
