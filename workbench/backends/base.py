"""The interfaces that a vendor implements for a backend, and the values that they exchange.

A *partitioner* tags the nodes that a backend shall run (`node.meta["delegation_tag"]`), maps each tag to a
`DelegationSpec`, and says for every node that it leaves behind why. A *backend* turns the program of one tag
into bytes that its native half understands. The names and the shape of the calls are those that ExecuTorch
users know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from workbench import provenance
from workbench.backends.blob import Blob
from workbench.backends.named_data import NamedDataStoreOutput

__all__ = [
    "TAG_KEY",
    "WHY_NOT_KEY",
    "BackendDetails",
    "CompileSpec",
    "DelegationSpec",
    "PartitionResult",
    "Partitioner",
    "PreprocessResult",
    "ReasonIndex",
    "Supported",
    "WhyNot",
    "target_name",
]

# Key of a node's tag in `node.meta`; the name that ExecuTorch's partitioners write.
TAG_KEY = "delegation_tag"
# Key of the `WhyNot` of a node that was left behind.
WHY_NOT_KEY = "why_not"

DebugHandleMap = Mapping[int, tuple[int, ...]] | Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class CompileSpec:
    """One setting for a backend, written into the program and handed to both of its halves.

    Attributes:
        key: Name of the setting.
        value: Its value; the backend defines the encoding.
    """

    key: str
    value: bytes


class DelegationSpec(NamedTuple):
    """Which backend shall run a tag, and with which settings."""

    backend_id: str
    compile_specs: list[CompileSpec]


@dataclass
class PreprocessResult:
    """What a backend makes of one partition.

    Attributes:
        processed_bytes: The blob that the backend's native half reads.
        debug_handle_map: From the identifiers that the native half logs (all int or all str) to the debug
            handles of the nodes that they stand for. See `DelegateMappingBuilder`.
        data_store_output: Data to store by name in the program; delegates with equal data share it.
        delegate_info: Anything for the user to look at; not written into the program. With an attribute
            `unfused`, a sequence of `WhyNot`, it says which quantized operators the backend computes on
            floats all the same; see `unfused` of this package.
    """

    processed_bytes: bytes = b""
    debug_handle_map: DebugHandleMap | None = None
    data_store_output: NamedDataStoreOutput | None = None
    delegate_info: Any = None


class BackendDetails(ABC):
    """Base of the ahead-of-time half of a backend.

    Subclass it, implement `preprocess`, and register the class.

    A class is found by its identifier: the name given to `register_backend`, by default the class name.
    """

    @staticmethod
    @abstractmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """Compile one partition.

        Args:
            edge_program: The partition as a program of its own. Its graph is a private copy that may be
                edited; its weights are shared with the model and must not be written.
            compile_specs: The settings of the `DelegationSpec`.

        Returns:
            The blob and what belongs to it.

        Raises:
            PartitionError: The backend can't run the program.
        """

    @staticmethod
    def read_blob(data: memoryview) -> Blob | None:
        """What is in a blob, for people to look at; None for a blob of another format.

        Args:
            data: The blob, of whatever backend, from a file that nobody vouches for.

        Raises:
            SerializationError: It has this backend's format, and is damaged.
        """
        del data
        return None

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: Mapping[str, Sequence[ExportedProgram]],
        compile_specs: Mapping[str, Sequence[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Compile all partitions of all methods; override it to share data between them.

        Args:
            edge_programs: For each method its partitions.
            compile_specs: For each method the settings of its partitions, in the same order.

        Returns:
            For each method the results, in the same order.
        """
        return {
            method: [
                cls.preprocess(program, specs)
                for program, specs in zip(programs, compile_specs[method], strict=True)
            ]
            for method, programs in edge_programs.items()
        }


@dataclass(frozen=True)
class Supported:
    """A backend can run the node.

    Attributes:
        together: Nodes that must stand in the same partition as this one (the dequantize nodes before a
            quantized operator, for example). They count as supported with it.
    """

    together: tuple[Node, ...] = ()


@dataclass(frozen=True)
class WhyNot:
    """Why a node was left behind, and what would make it eligible.

    Attributes:
        node: The node's name. An `fx.Node` may be given: then name, target, source line and handles come
            from it.
        reason: Why no backend takes it, with the values that were found.
        eligible_if: The nearest form that would be taken, or None if there is none.
        target: The operator.
        source: `file:line` in the user's model.
        handles: The node's source handles.
        by: Who says so: a backend identifier or a partitioner's class name.
    """

    node: str
    reason: str
    eligible_if: str | None = None
    target: str = ""
    source: str | None = None
    handles: frozenset[int] = field(default_factory=frozenset)
    by: str = ""

    def __init__(
        self,
        node: Node | str,
        reason: str,
        eligible_if: str | None = None,
        *,
        target: str = "",
        source: str | None = None,
        handles: Iterable[int] = (),
        by: str = "",
    ) -> None:
        values: dict[str, Any] = {
            "node": str(node),
            "target": target,
            "source": source,
            "handles": frozenset(handles),
            "reason": reason,
            "eligible_if": eligible_if,
            "by": by,
        }
        if isinstance(node, Node):
            values["node"] = node.name
            values["target"] = target or target_name(node)
            values["source"] = source or provenance.source_line(node)
            values["handles"] = values["handles"] or provenance.handles(node)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        form = f"; eligible if {self.eligible_if}" if self.eligible_if else ""
        return f"{self.node} ({self.target}){where}: {self.reason}{form}"


class ReasonIndex:
    """Finds the reasons that are about a node.

    Names repeat between the branches of a program; where a reason has source handles, they decide.

    Args:
        reasons: The reasons.
    """

    def __init__(self, reasons: Iterable[WhyNot]) -> None:
        self._by_name: dict[str, list[WhyNot]] = {}
        for reason in reasons:
            self._by_name.setdefault(reason.node, []).append(reason)

    def about(self, node: Node) -> list[WhyNot]:
        """The reasons about a node, in their order."""
        named = self._by_name.get(node.name, ())
        if not named:
            return []
        own = provenance.handles(node)
        return [reason for reason in named if not reason.handles or not own or reason.handles == own]


def target_name(node: Node) -> str:
    """The operator of a node as text: `aten.add.Tensor`, `getitem`, `cond`."""
    if isinstance(node.target, str):
        return node.target
    return (
        str(node.target)
        if isinstance(node.target, OpOverload)
        else getattr(node.target, "__name__", str(node.target))
    )


@dataclass
class PartitionResult:
    """What a partitioner hands back.

    Attributes:
        tagged_exported_program: The program that it was given, with tags in the nodes' meta and nothing else
            changed.
        partition_tags: For each tag the backend that shall run it.
        reasons: One `WhyNot` for each node left behind. Nodes that the partitioner says nothing about are
            added by `to_backend`, which names the omission.
    """

    tagged_exported_program: ExportedProgram
    partition_tags: dict[str, DelegationSpec]
    reasons: list[WhyNot] = field(default_factory=list)


class Partitioner(ABC):
    """Decides which nodes of a program go to which backend.

    Args:
        spec: Settings of the partitioner, for the user to look at.
    """

    def __init__(self, spec: Mapping[str | int | float | bool, object] = MappingProxyType({})) -> None:
        self._spec = spec

    def __call__(self, exported_program: ExportedProgram) -> PartitionResult:
        """The same as `partition`."""
        return self.partition(exported_program)

    @property
    def spec(self) -> Mapping[str | int | float | bool, object]:
        """The settings given to the constructor."""
        return getattr(self, "_spec", MappingProxyType({}))

    @abstractmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that shall be delegated.

        Args:
            exported_program: A program in the edge dialect, private to the caller: tag it, change nothing
                else.

        Returns:
            The same program, its tags' backends, and the reasons for what stays behind.
        """

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Operators that the backend wants whole.

        Args:
            ep: The program before decomposition.

        Returns:
            The operators to keep in `to_edge_transform_and_lower`, and a filter that tells for a node
            whether to keep it (None keeps all).
        """
        del ep
        return [], None
