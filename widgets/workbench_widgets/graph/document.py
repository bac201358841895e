"""The graph of a stage as a document."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from workbench import provenance
from workbench.errors import WorkbenchError
from workbench.stages import Stage
from workbench_widgets.columns import Strings
from workbench_widgets.context import Context
from workbench_widgets.graph.attributes import attributes_of
from workbench_widgets.graph.contract import GraphDocument
from workbench_widgets.graph.rows import HIDDEN, Rows, describe, operator_of
from workbench_widgets.graph.tree import Tree, finish

__all__ = ["assemble", "graph_document", "rows_of", "split_key"]

_documents: WeakKeyDictionary[Any, dict[str, GraphDocument]] = WeakKeyDictionary()
_rows: WeakKeyDictionary[Any, dict[str, Rows]] = WeakKeyDictionary()


def split_key(context: Context, key: str) -> tuple[str, str]:
    """Stage and method that a key `stage/method` names.

    Raises:
        WorkbenchError: There is no such stage or method.
    """
    stage, _, method = key.partition("/")
    if method not in context.methods:
        raise WorkbenchError("there is no such method", expected=", ".join(context.methods), found=method)
    return ("program" if stage == "run" else stage), method


def graph_document(context: Context, key: str) -> GraphDocument:
    """The graph of one method at one stage.

    Args:
        context: The subject.
        key: `stage/method`.

    Raises:
        WorkbenchError: There is no such stage or method.
    """
    name, method = split_key(context, key)
    if name == "program":
        from workbench_widgets.graph.program import program_document

        return program_document(context, method)
    stage = context.stage(name)
    known = _documents.setdefault(stage, {})
    if method not in known:
        known[method] = _document(rows_of(stage, method), name, method)
    return known[method]


def rows_of(stage: Stage, method: str) -> Rows:
    """The nodes of a stage's method as rows; collected once.

    Raises:
        WorkbenchError: The stage has no such method.
    """
    known = _rows.setdefault(stage, {})
    if method not in known:
        if method not in stage._programs:
            raise WorkbenchError(
                "this stage has no such method", expected=", ".join(stage._programs), found=method
            )
        known[method] = Rows(stage._programs[method])
    return known[method]


def _document(rows: Rows, stage: str, method: str) -> GraphDocument:
    shapes: list[str] = []
    dtypes: list[str] = []
    sizes: list[float] = []

    def visit(_: Any, shape: str, dtype: str, size: float) -> None:
        shapes.append(shape)
        dtypes.append(dtype)
        sizes.append(size)

    describe(rows.nodes, visit)
    lines: dict[str, str] = {}
    sources = []
    handles = []
    for node in rows.nodes:
        trace = node.meta.get("stack_trace") or ""
        line = lines.get(trace)
        if line is None:
            line = lines[trace] = provenance.source_line(node) or ""
        own = sorted(provenance.handles(node))
        if not line and own and node.op == "call_function":
            line = next((s.source for s in rows.origins(own) if s.source), "")
        sources.append(line)
        handles.append(own)
    return assemble(
        stage,
        method,
        names=[node.name for node in rows.nodes],
        ops=[operator_of(node) for node in rows.nodes],
        kinds=rows.kinds,
        shapes=shapes,
        dtypes=dtypes,
        attributes=[attributes_of(node) for node in rows.nodes],
        sizes=sizes,
        modules=rows.modules,
        sources=sources,
        tags=[str(node.meta.get("delegation_tag") or "") for node in rows.nodes],
        handles=handles,
        edges=(rows.sources, rows.targets),
        tree=rows.tree,
    )


def assemble(
    stage: str,
    method: str,
    *,
    names: list[str],
    ops: list[str],
    kinds: list[str],
    shapes: list[str],
    dtypes: list[str],
    attributes: list[str],
    sizes: list[float],
    modules: list[int],
    sources: list[str],
    tags: list[str],
    handles: list[list[int]],
    edges: tuple[list[int], list[int]],
    tree: Tree,
    instructions: list[int] | None = None,
    edge_bytes: list[float] | None = None,
) -> GraphDocument:
    """Columns from lists, one entry a node; edges by rows. The tree gets its groups and its structures."""
    src, dst = np.array(edges[0], np.int32), np.array(edges[1], np.int32)
    op, kind, shape, dtype = Strings(ops), Strings(kinds), Strings(shapes), Strings(dtypes)
    codes = [column.codes.astype(np.int64) for column in (op, shape, dtype)]
    signature = (codes[0] * (len(shape.values) + 1) + codes[1]) * (len(dtype.values) + 1) + codes[2]
    hidden = np.isin(kind.codes, [i for i, value in enumerate(kind.values) if value in HIDDEN])
    module, structure = finish(tree, np.array(modules, np.int32), hidden, signature, src, dst)
    nbytes = np.array(sizes, np.float64)
    starts = np.zeros(len(names) + 1, np.int32)
    np.cumsum([len(own) for own in handles], out=starts[1:])
    return GraphDocument(
        stage=stage,
        method=method,
        name=Strings(names),
        op=op,
        kind=kind,
        shape=shape,
        dtype=dtype,
        attributes=Strings(attributes),
        bytes=nbytes,
        module=module,
        source=Strings(sources),
        tag=Strings(tags),
        instruction=np.array(instructions if instructions is not None else [-1] * len(names), np.int32),
        handle_start=starts,
        handles=np.array([handle for own in handles for handle in own], np.int32),
        src=src,
        dst=dst,
        edge_bytes=nbytes[src] if edge_bytes is None else np.array(edge_bytes, np.float64),
        module_parent=np.array(tree.parents, np.int32),
        module_name=Strings(tree.names),
        module_path=Strings(tree.paths),
        module_type=Strings(tree.types),
        module_kind=Strings(tree.kinds),
        module_hash=structure,
    )
