"""An editing session: private copies of the partitions, to try edits on before the recipe takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends import registry
from workbench.backends.base import CompileSpec, Partitioner, PartitionResult
from workbench.backends.capability import CapabilityPartitioner, is_delegated
from workbench.backends.costs import Boundary, boundaries
from workbench.backends.editor import PartitionEditor
from workbench.backends.edits import PartitionEdit, capabilities_of
from workbench.backends.graphs import graphs_of, is_getitem, tag_of
from workbench.errors import PartitionError, WorkbenchError
from workbench.pipeline import partition_editors, partitioners_of
from workbench.recipe import Edit, Recipe
from workbench.stages import Partitioned
from workbench_widgets.context import Context
from workbench_widgets.graph.document import rows_of
from workbench_widgets.partition.contract import PartitionRequest
from workbench_widgets.partition.history import History

__all__ = ["MethodSession", "PartitionSession", "edits_of"]


def edits_of(recipe: Recipe, method: str) -> tuple[PartitionEdit, ...]:
    """The edits of a method's partition that a recipe holds."""
    return tuple(
        PartitionEdit.from_data(edit.data)
        for edit in recipe.edits
        if edit.step == PartitionEdit.step and edit.method == method
    )


class MethodSession:
    """What is edited of one method.

    Args:
        stage: The partitioned stage as it is lowered.
        method: Name of the method.

    Attributes:
        method: Name of the method.
        history: The edits; None as long as nobody edited, and the recipe holds no edits.
        sizes: Bytes of values that costs were counted with.
        operator_count: Operators of the method.
    """

    def __init__(self, stage: Partitioned, method: str) -> None:
        self.method = method
        self.history: History | None = None
        self.sizes: dict[Node, int | None] = {}
        rows = rows_of(stage, method)
        flat = {node: at for at, node in enumerate(_flat(stage._programs[method]))}
        self._places = [flat.get(node, -1) for node in rows.nodes]
        self._modules = [rows.tree.paths[module] for module in rows.modules]
        self._colors: dict[str, int] = {}
        operators = [n for n in rows.nodes if n in flat and n.op == "call_function" and not is_delegated(n)]
        self.operator_count = sum(not is_getitem(node) for node in operators)
        # Branches may repeat names of the graph around them, which comes first.
        self._by_name = {node.name: row for row, node in reversed([*enumerate(rows.nodes)]) if node in flat}
        for tag in stage.tags[method]:
            self.color(tag)
        self._take(stage)

    def _take(self, stage: Partitioned) -> None:
        program = stage._programs[self.method]
        self._lowered = PartitionResult(
            program, dict(stage.tags[self.method]), list(stage.reasons[self.method])
        )
        self._lowered_borders: dict[str, Boundary] | None = None
        self.lowered_tags = [tag_of(node) if node is not None else None for node in self._aligned(program)]
        self._nodes: list[Node | None] | None = None

    def _aligned(self, program: ExportedProgram) -> list[Node | None]:
        flat = _flat(program)
        return [flat[place] if place >= 0 else None for place in self._places]

    @property
    def result(self) -> PartitionResult:
        """The partition as it is edited now; only the session may change it."""
        return self._lowered if self.history is None else self.history.editor.result

    @property
    def nodes(self) -> Sequence[Node | None]:
        """The node of each row; None for what stands inside of delegates."""
        if self._nodes is None:
            self._nodes = self._aligned(self.result.tagged_exported_program)
        return self._nodes

    @property
    def edits(self) -> tuple[PartitionEdit, ...]:
        """The edits that are made."""
        return () if self.history is None else self.history.edits

    def begin(self, history: History | None) -> None:
        """Edit with this history from now on."""
        self.history = history
        self.sizes = {}
        self._nodes = None

    def lowered(self, stage: Partitioned, edits: Sequence[PartitionEdit]) -> None:
        """The stage was made with these edits."""
        nodes = self._nodes
        self._take(stage)
        if self.history is not None:
            self.history.lowered(edits)
            self._nodes = nodes

    def rows(self, names: Iterable[str]) -> list[int]:
        """Rows of the operators with these names, in their order."""
        return [self._by_name[name] for name in names if name in self._by_name]

    def color(self, tag: str) -> int:
        """The number of a tag's colour: by the order in which the tags were first seen."""
        return self._colors.setdefault(tag, len(self._colors))

    def proposed(self) -> list[str | None]:
        """For each row the tag before all edits by hand."""
        tags = [tag_of(node) if node is not None else None for node in self.nodes]
        if self.history is not None:
            before = self.history.before()
            tags = [
                before.get(node, tag) if node else tag for node, tag in zip(self.nodes, tags, strict=True)
            ]
        return tags

    def lowered_borders(self) -> dict[str, Boundary]:
        """The borders of the tags that are lowered."""
        if self._lowered_borders is None:
            self._lowered_borders = boundaries(self._lowered.tagged_exported_program)
        return self._lowered_borders

    def operators(self, module: str) -> list[Node]:
        """The operators of a module and the modules inside it."""
        inside = module + "."
        return [
            node
            for node, path in zip(self.nodes, self._modules, strict=True)
            if node is not None
            and node.op == "call_function"
            and (not module or path == module or path.startswith(inside))
        ]


class PartitionSession:
    """The editing session of one widget.

    Args:
        context: What the widget is about.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.note = ""
        self._stage: Partitioned | None = None
        self._edge: Any = None
        self._partitioner: Any = None
        self._methods: dict[str, MethodSession] = {}
        self._editors: dict[str, PartitionEditor] = {}

    # ---- following the lowering ----------------------------------------------------------------------------

    def method(self, name: str) -> MethodSession:
        """What is edited of a method; follows the lowering first.

        Raises:
            WorkbenchError: There is no such method.
        """
        self._follow()
        if name not in self._methods:
            stage = self._stage
            assert stage is not None
            if name not in stage.methods:
                raise WorkbenchError("there is no such method", expected=", ".join(stage.methods), found=name)
            self._methods[name] = MethodSession(stage, name)
            if self._recipe_edits(name):
                self._begin(name)
        return self._methods[name]

    def histories(self) -> dict[str, History]:
        """By method the edits of the methods that were edited."""
        return {name: known.history for name, known in self._methods.items() if known.history is not None}

    def editing(self, name: str) -> tuple[MethodSession, History]:
        """The same, ready to be edited.

        Raises:
            PartitionError: There is no lowering behind the stage.
        """
        known = self.method(name)
        if self.context.lowering is None:
            raise PartitionError(
                "this stage can't be edited: its lowering is gone",
                stage="partition",
                hint="show the lowering itself, or keep it in a variable",
            )
        if known.history is None:
            self._begin(name)
        assert known.history is not None
        return known, known.history

    def _begin(self, name: str) -> None:
        if not self._editors:
            lowering = self.context.lowering
            assert lowering is not None
            self._editors = partition_editors(lowering.edge, lowering.recipe)
        self._methods[name].begin(History(self._editors[name], self._recipe_edits(name)))

    def _recipe_edits(self, method: str) -> tuple[PartitionEdit, ...]:
        lowering = self.context.lowering
        return () if lowering is None else edits_of(lowering.recipe, method)

    def _follow(self) -> None:
        """Take note of what was lowered since the last call, by this session or by others."""
        stage = self.context.stage("partitioned")
        if stage is self._stage:
            return
        assert isinstance(stage, Partitioned)
        self._stage = stage
        lowering = self.context.lowering
        edge = None if lowering is None else lowering.edge
        partitioner = None if lowering is None else lowering.recipe.partitioner
        if self._methods and (edge is not self._edge or partitioner != self._partitioner):
            lost = sum(session.history.waiting for session in self._methods.values() if session.history)
            self.note = f"Lowered anew elsewhere: {lost} edits were not lowered and are gone." if lost else ""
            self._methods, self._editors = {}, {}
        self._edge, self._partitioner = edge, partitioner
        for name, session in self._methods.items():
            edits = self._recipe_edits(name)
            session.lowered(stage, edits)
            if session.history is None and edits:
                self._begin(name)
            elif session.history is not None and session.edits != edits:
                session.history.replace(edits, "take the edits of the recipe")
                self.note = "The recipe's edits were changed elsewhere. Undo brings yours back."

    # ---- edits ---------------------------------------------------------------------------------------------

    def edit(self, request: PartitionRequest) -> tuple[PartitionEdit, list[str]]:
        """The edit that a view asks for, and what it names that isn't there."""
        session, history = self.editing(request.method)
        editor = history.editor
        if request.action == "merge":
            return PartitionEdit("merge", tags=tuple(request.tags), tag=request.tag), []
        nodes, missing = _named(session, editor, request)
        handles, names = _handles(editor, nodes)
        tag = request.tag
        backend: str | None = None
        specs: tuple[CompileSpec, ...] = ()
        if request.action == "assign":
            tag, backend, specs = self._target(request, editor)
        elif request.action == "split" and tag is None and nodes:
            tag = editor.new_tag(tag_of(nodes[0]) or "tag")
        elif request.action == "erase":
            tag = None
        edit = PartitionEdit(
            request.action, handles, tag=tag, backend_id=backend, compile_specs=specs, nodes=names
        )
        return edit, missing

    def _target(
        self, request: PartitionRequest, editor: PartitionEditor
    ) -> tuple[str | None, str | None, tuple[CompileSpec, ...]]:
        """Tag, backend and settings of an assignment; a tag that is made gets its name now, once for all."""
        tag, backend = request.tag, request.backend
        if tag in editor.result.partition_tags or backend is None:
            return tag, backend, ()
        registry.get_backend(backend)
        return tag or editor.new_tag(backend), backend, self.settings(backend)

    def settings(self, backend: str) -> tuple[CompileSpec, ...]:
        """What a new tag of a backend is made with: as the recipe's partitioner for it does."""
        for partitioner in self.partitioners:
            if isinstance(partitioner, CapabilityPartitioner):
                spec = partitioner.delegation_spec
                if spec.backend_id == backend:
                    return tuple(spec.compile_specs)
        return ()

    @property
    def capabilities(self) -> frozenset[str]:
        """The backends for which a partitioner of the recipe answers."""
        return frozenset(capabilities_of(self.partitioners))

    @property
    def partitioners(self) -> Sequence[Partitioner]:
        """Those of the recipe."""
        lowering = self.context.lowering
        return () if lowering is None else partitioners_of(lowering.recipe)

    def recipe(self) -> Recipe:
        """The recipe with the edits as they are now.

        Raises:
            PartitionError: There is no lowering.
        """
        lowering = self.context.lowering
        if lowering is None:
            raise PartitionError("there is no lowering behind this stage", hint="show the lowering itself")
        edits: list[Edit] = []
        for edit in lowering.recipe.edits:
            session = self._methods.get(edit.method)
            if edit.step != PartitionEdit.step or session is None or session.history is None:
                edits.append(edit)
        for name, session in self._methods.items():
            if session.history is not None:
                edits += [Edit(PartitionEdit.step, edit.to_data(), name) for edit in session.edits]
        return lowering.recipe.replace(edits=edits)


def _flat(program: ExportedProgram) -> list[Node]:
    return [node for _, graph_module in graphs_of(program) for node in graph_module.graph.nodes]


def _named(
    session: MethodSession, editor: PartitionEditor, request: PartitionRequest
) -> tuple[list[Node], list[str]]:
    """The operators that a request names, and what it names that isn't there."""
    found: dict[Node, None] = {}
    missing: list[str] = []
    for row in request.rows:
        node = session.nodes[row] if 0 <= row < len(session.nodes) else None
        if node is None or node.op != "call_function":
            missing.append(f"row {row}" if node is None else node.name)
        else:
            found[node] = None
    for handle in request.handles:
        known = editor.tags.by_handle.get(handle)
        if known is None:
            missing.append(f"#{handle}")
        found.update(dict.fromkeys(known or ()))
    if request.module is not None:
        inside = session.operators(request.module)
        if not inside:
            missing.append(f"module {request.module}")
        found.update(dict.fromkeys(inside))
    return editor.tags.ordered(found), missing


def _handles(editor: PartitionEditor, nodes: Sequence[Node]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Handles that name exactly these operators; with the names where the handles alone name more."""
    chosen = set(nodes)
    handles = sorted({handle for node in nodes for handle in provenance.handles(node)})
    # An element of a result goes with its producer anyhow.
    others = {n for handle in handles for n in editor.tags.by_handle[handle] if not is_getitem(n)} - chosen
    if others or any(not provenance.handles(node) for node in nodes):
        return tuple(handles), tuple(node.name for node in nodes)
    return tuple(handles), ()
