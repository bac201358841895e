"""The frozen stages that a model passes through on its way to a program.

    Exported [-> Pruned] [-> Prepared -> Calibrated -> Quantized] -> Edge -> Partitioned -> Lowered
        -> Planned -> Program

Those in brackets are there where the recipe has pruners, and where it has a quantizer.

A stage owns a private copy of its graphs; weights are shared between stages and never written. Nothing of a
stage can be assigned, `exported_program()` hands out copies, and `fingerprint` with `intact()` proves it.

This module imports nothing of the workbench. How a stage looks in a notebook is decided by a hook
(`set_views`).
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch.export import ExportedProgram

__all__ = [
    "Calibrated",
    "Edge",
    "Exported",
    "Lowered",
    "Partitioned",
    "Planned",
    "Prepared",
    "Program",
    "Pruned",
    "Quantized",
    "Stage",
    "Views",
    "set_views",
]


class Views(Protocol):
    """What displays stages, lowerings, runs, comparisons and opened programs.

    `workbench.display` has one without scripts; a package of widgets takes its place.
    """

    def mimebundle(self, shown: Any) -> dict[str, Any]:
        """The representations of an object, by MIME type."""

    def table(self, stage: Stage) -> pd.DataFrame:
        """The rows of a stage: its nodes, tensors or instructions."""

    def workbench(self, subject: Any, **options: Any) -> Any:
        """All views of a lowering, a run, a comparison or an opened program in one panel."""

    def report(self, subject: Any, **options: Any) -> str:
        """All views of a subject as one HTML file, which needs neither a kernel nor a network."""


_views: Views | None = None


def set_views(views: Views) -> None:
    """Make this object answer for how stages look."""
    global _views
    _views = views


class Stage:
    """One stage of one model.

    Attributes:
        name: The stage's name, for tables and errors.
        methods: Names of the program's methods.
    """

    name: ClassVar[str]
    __slots__ = ("__weakref__", "_copy", "_fingerprint", "_owner", "_programs")

    _programs: Mapping[str, ExportedProgram]
    _copy: Callable[[ExportedProgram], ExportedProgram]
    _fingerprint: str | None
    _owner: weakref.ref[Any] | None

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        *,
        copy: Callable[[ExportedProgram], ExportedProgram],
    ) -> None:
        self._freeze(_programs=MappingProxyType(dict(programs)), _copy=copy, _fingerprint=None, _owner=None)

    def _freeze(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"a stage is frozen: change the recipe and lower again ({self.name}.{key})")

    def __delattr__(self, key: str) -> None:
        raise AttributeError(f"a stage is frozen: change the recipe and lower again ({self.name}.{key})")

    @property
    def owner(self) -> Any:
        """The lowering that this stage was last taken from.

        None where it was taken from none, where nothing else holds the lowering, and where the lowering was
        updated since and has another stage in its place. Says nothing about the stage's content.
        """
        lowering = None if self._owner is None else self._owner()
        return lowering if lowering is not None and lowering.has(self) else None

    def _taken_from(self, lowering: Any) -> None:
        self._freeze(_owner=weakref.ref(lowering))

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(self._programs)

    def exported_program(self, method: str = "forward") -> ExportedProgram:
        """A copy of a method's graph with the same weights; changing the copy does not change the stage.

        Raises:
            KeyError: There is no such method.
        """
        return self._copy(self._programs[method])

    @property
    def fingerprint(self) -> str:
        """A digest of the stage's content: graphs, metadata, and the bytes of the weights. Computed once."""
        if self._fingerprint is None:
            self._freeze(_fingerprint=self._measure())
        assert self._fingerprint is not None
        return self._fingerprint

    def intact(self) -> bool:
        """Whether the content, measured again, still has the fingerprint."""
        return self.fingerprint == self._measure({})

    def _measure(self, known: _Digests | None = None) -> str:
        """The digest; the bytes of a tensor in `known` count as read already."""
        digest = hashlib.blake2b(self.name.encode(), digest_size=16)
        for method, program in self._programs.items():
            digest.update(method.encode())
            _digest_program(digest, program, _tensor_digests() if known is None else known)
        for part in self._parts():
            digest.update(part)
        return digest.hexdigest()

    def _parts(self) -> Iterator[bytes]:
        """What else belongs to the content of this stage."""
        yield from ()

    @property
    def table(self) -> pd.DataFrame:
        """The stage as a table: its nodes, with what the stage adds to them."""
        if _views is None:
            raise RuntimeError("import workbench.display first: it draws the stages")
        return _views.table(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude  # the notebook filters what it is given
        return _views.mimebundle(self) if _views is not None else {"text/plain": repr(self)}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{method}: {len(p.graph.nodes)} nodes" for method, p in self._programs.items())
        return f"<{self.name} {sizes}>"


class Exported(Stage):
    """What `torch.export` captured."""

    name = "Exported"
    __slots__ = ()


class Pruned(Stage):
    """The exported program, smaller or sparser.

    Attributes:
        reports: By method, what each pruner of the recipe did, in order (`workbench.pruning.PruningReport`).
    """

    name = "Pruned"
    __slots__ = ("reports",)

    reports: Mapping[str, tuple[Any, ...]]

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        *,
        copy: Callable[[ExportedProgram], ExportedProgram],
        reports: Mapping[str, tuple[Any, ...]],
    ) -> None:
        super().__init__(programs, copy=copy)
        self._freeze(reports=MappingProxyType(dict(reports)))


class _OnTheWayToIntegers(Stage):
    """What the stages of quantization share.

    Attributes:
        parts: By method, the state of its quantization (`workbench.quantization.programs`).
    """

    __slots__ = ("parts",)

    parts: Mapping[str, Any]

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        *,
        copy: Callable[[ExportedProgram], ExportedProgram],
        parts: Mapping[str, Any],
    ) -> None:
        super().__init__(programs, copy=copy)
        self._freeze(parts=MappingProxyType(dict(parts)))

    @property
    def report(self) -> pd.DataFrame:
        """A row for each operator of all methods: quantized (how), or float (why)."""
        return self._joined("report")

    def _joined(self, name: str) -> pd.DataFrame:
        import pandas as pd

        tables = []
        for method, part in self.parts.items():
            table = getattr(part, name).copy()
            table.insert(0, "method", method)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def _parts(self) -> Iterator[bytes]:
        for method, part in self.parts.items():
            yield method.encode()
            yield from part.digest()


class Prepared(_OnTheWayToIntegers):
    """The program in floats, ready to be quantized, with a plan of what shall be, and how."""

    name = "Prepared"
    __slots__ = ()


class Calibrated(_OnTheWayToIntegers):
    """The prepared program with what observers saw of its values."""

    name = "Calibrated"
    __slots__ = ()

    @property
    def observers(self) -> pd.DataFrame:
        """A row for each observer: range, scale, zero point, clipped share, histogram."""
        return self._joined("observer_report")


class Quantized(Calibrated):
    """The program with quantize and dequantize operators."""

    name = "Quantized"
    __slots__ = ()


class Edge(Stage):
    """The program in the edge dialect: core ATen operators, functional, with explicit dimension orders.

    Attributes:
        kept: Operators that were kept from decomposition, since a partitioner asked for them.
    """

    name = "Edge"
    __slots__ = ("kept",)

    kept: frozenset[Any]

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        *,
        copy: Callable[[ExportedProgram], ExportedProgram],
        kept: frozenset[Any] = frozenset(),
    ) -> None:
        super().__init__(programs, copy=copy)
        self._freeze(kept=kept)


class Partitioned(Stage):
    """The edge program with a tag on each node that a backend shall run.

    Attributes:
        tags: By method, from each tag to its backend and settings.
        reasons: By method, for each node that is left behind, why.
        kept: As of `Edge`.
    """

    name = "Partitioned"
    __slots__ = ("kept", "reasons", "tags")

    kept: frozenset[Any]

    tags: Mapping[str, Mapping[str, Any]]
    reasons: Mapping[str, tuple[Any, ...]]

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        *,
        copy: Callable[[ExportedProgram], ExportedProgram],
        tags: Mapping[str, Mapping[str, Any]],
        reasons: Mapping[str, tuple[Any, ...]],
        kept: frozenset[Any] = frozenset(),
    ) -> None:
        super().__init__(programs, copy=copy)
        self._freeze(kept=kept)
        frozen = {method: MappingProxyType(dict(known)) for method, known in tags.items()}
        self._freeze(tags=MappingProxyType(frozen), reasons=MappingProxyType(dict(reasons)))

    def _parts(self) -> Iterator[bytes]:
        for method, known in self.tags.items():
            yield repr((method, sorted((tag, str(spec)) for tag, spec in known.items()))).encode()
        for method, reasons in self.reasons.items():
            yield repr((method, [str(reason) for reason in reasons])).encode()


class Lowered(Stage):
    """The program in which each partition has become the call of a delegate."""

    name = "Lowered"
    __slots__ = ()


class Planned(Stage):
    """The program in the form that is emitted: out variants, views without copies, a place for each tensor.

    Attributes:
        report: The memory plan's report.
        emitted: What the emitter made: the program's model, debug handles, delegates.
    """

    name = "Planned"
    __slots__ = ("emitted", "report")

    report: Any
    emitted: Any

    def __init__(
        self,
        programs: Mapping[str, ExportedProgram],
        *,
        copy: Callable[[ExportedProgram], ExportedProgram],
        report: Any,
        emitted: Any,
    ) -> None:
        super().__init__(programs, copy=copy)
        self._freeze(report=report, emitted=emitted)

    def _parts(self) -> Iterator[bytes]:
        # Offsets and instructions; the constants' bytes are those of the graphs.
        for method in self.emitted.program.methods:
            yield repr(method).encode()


class Program(Stage):
    """The program as a file.

    Attributes:
        emitted: What it was written from.
        serialized: The file's segments; `buffer` joins them.
    """

    name = "Program"
    __slots__ = ("emitted", "serialized")

    emitted: Any
    serialized: Any

    def __init__(self, *, emitted: Any, serialized: Any) -> None:
        super().__init__({}, copy=_no_graph)
        self._freeze(emitted=emitted, serialized=serialized)

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods."""
        return tuple(method.name for method in self.emitted.program.methods)

    @property
    def buffer(self) -> bytes:
        """The bytes of the `.pte` file."""
        return bytes(self.serialized.buffer)

    def save(self, path: Any) -> None:
        """Write the `.pte` file; the weights go from memory to the file without a copy."""
        with open(path, "wb") as file:
            self.serialized.write_to_file(file)

    def _parts(self) -> Iterator[bytes]:
        yield self.serialized.buffer

    def __repr__(self) -> str:
        return f"<Program {', '.join(self.methods)}: {len(self.serialized.buffer):,} bytes>"


def _no_graph(program: ExportedProgram) -> ExportedProgram:
    return program


_Digests: TypeAlias = "MutableMapping[torch.Tensor, tuple[int, bytes]]"


@cache
def _tensor_digests() -> _Digests:
    """Digests of tensors with their versions: weights are shared by all stages, and read once."""
    from torch.utils.weak import WeakIdKeyDictionary

    return WeakIdKeyDictionary()


def _digest_program(digest: Any, program: ExportedProgram, known: _Digests) -> None:
    _digest_graph(digest, program.graph_module, known)
    digest.update(
        repr((program.graph_signature, sorted(map(str, program.range_constraints.items())))).encode()
    )
    tables: tuple[Mapping[str, Any], ...] = (program.state_dict, program.constants)
    for table in tables:
        for key, tensor in table.items():
            digest.update(key.encode())
            _digest_value(digest, tensor, known)


def _digest_graph(digest: Any, graph_module: torch.fx.GraphModule, known: _Digests) -> None:
    import torch

    for node in graph_module.graph.nodes:
        meta = node.meta
        shown = tuple(str(meta.get(key)) for key in ("delegation_tag", "debug_handle", "source_handles"))
        line = (
            node.op,
            node.name,
            str(node.target),
            str(node.args),
            str(node.kwargs),
            _shape(meta.get("val")),
        )
        digest.update(repr((line, shown)).encode())
        if node.op == "get_attr":
            inner = getattr(graph_module, str(node.target).rpartition(".")[2], None)
            if isinstance(inner, torch.fx.GraphModule):
                _digest_graph(digest, inner, known)
            elif inner is not None:
                _digest_value(digest, inner, known)


def _digest_value(digest: Any, value: Any, known: _Digests) -> None:
    import torch

    blob = getattr(value, "processed_bytes", None)
    if isinstance(blob, bytes):
        digest.update(blob)
    elif isinstance(value, torch.Tensor):
        digest.update(_tensor_digest(value, known))


def _tensor_digest(tensor: torch.Tensor, known: _Digests) -> bytes:
    import torch

    version = -1 if tensor.is_inference() else tensor._version
    before = known.get(tensor)
    if before is not None and before[0] == version != -1:
        return before[1]
    digest = hashlib.blake2b(repr((tensor.dtype, tuple(tensor.shape), tensor.stride())).encode())
    flat = tensor.detach()
    if flat.numel() and flat.layout is torch.strided:
        dense = flat if flat.is_contiguous() else flat.contiguous()
        digest.update(dense.reshape(-1).view(torch.uint8).numpy().data)
    made = digest.digest()
    known[tensor] = (version, made)
    return made


def _shape(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "(" + ", ".join(_shape(item) for item in value) + ")"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}{tuple(map(str, value.shape))}{tuple(map(str, value.stride()))}"
    return str(value)
