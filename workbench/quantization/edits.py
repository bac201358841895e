"""Decisions by hand about single layers, as data: the per-layer switch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.component import check_fields
from workbench.errors import QuantizationError, RecipeError
from workbench.quantization import pt2e
from workbench.quantization.config import QuantizationConfig

__all__ = ["LayerEdit", "with_edits"]


@dataclass(frozen=True)
class LayerEdit:
    """One layer is quantized otherwise, or kept in floats.

    Attributes:
        config: Fields of `QuantizationConfig` that differ from what the quantizer has for the layer; None
            keeps it in floats.
        node: The layer's node in the exported graph; empty where a module is meant.
        module: Qualified name of a module: all layers in it.
        handles: Source handles of the nodes, as a view knows them.
    """

    step: ClassVar[str] = "prepare"

    config: Mapping[str, Any] | None
    node: str = ""
    module: str = ""
    handles: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "handles", tuple(self.handles))
        if sum(map(bool, (self.node, self.module, self.handles))) != 1:
            raise RecipeError(
                "an edit of quantization is about one thing",
                expected="one of node=, module=, handles=",
                found=f"node={self.node!r}, module={self.module!r}, handles={self.handles}",
            )
        if self.config is not None:
            check_fields(QuantizationConfig, self.config)

    def to_data(self) -> dict[str, Any]:
        """The edit as JSON data."""
        data: dict[str, Any] = {"config": None if self.config is None else dict(self.config)}
        if self.node:
            data["node"] = self.node
        if self.module:
            data["module"] = self.module
        if self.handles:
            data["handles"] = list(self.handles)
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> LayerEdit:
        """The edit that `to_data` gave; raises `RecipeError` where it is malformed."""
        check_fields(cls, data)
        if "config" not in data:
            raise RecipeError("an edit of quantization says no config", expected="config: fields, or null")
        return cls(**data)

    def nodes(self, module: GraphModule) -> list[Node]:
        """The operators that the edit is about.

        Raises:
            RecipeError: There are none.
        """
        wanted = set(self.handles)
        found = []
        for node in module.graph.nodes:
            if node.op != "call_function":
                continue
            path = provenance.module_path(node)[0]
            if (
                node.name == self.node
                or (self.module and (path == self.module or path.startswith(f"{self.module}.")))
                or (wanted and provenance.handles(node) & wanted)
            ):
                found.append(node)
        if not found:
            raise RecipeError(
                "an edit of quantization is about an operator that is not there",
                stage="prepare",
                found=str(self.to_data()),
                hint="lowering.exported.table shows names, modules and handles",
            )
        return found


def with_edits(quantizer: Any, module: GraphModule, edits: Iterable[LayerEdit]) -> Any:
    """A quantizer that decides like another one, except about the layers of the edits.

    Raises:
        RecipeError: An edit is about nothing, or asks of a foreign quantizer what only ours can.
    """
    given = list(edits)
    if not given:
        return quantizer
    if hasattr(quantizer, "node_configs"):
        return _ours(quantizer, module, given)
    for edit in given:
        if edit.config is not None:
            raise RecipeError(
                f"{type(quantizer).__name__} can't be told how to quantize one node",
                found=str(edit.to_data()),
                hint="with quantizers other than XNNPACKQuantizer, edits can only keep layers in floats",
            )
    return _KeptInFloats(quantizer, {node.name for edit in given for node in edit.nodes(module)})


def _ours(quantizer: Any, module: GraphModule, edits: list[LayerEdit]) -> Any:
    made = type(quantizer)()
    made.__dict__.update({key: _copied(value) for key, value in quantizer.__dict__.items()})
    for edit in edits:
        for node in edit.nodes(module):
            if edit.config is None:
                made.node_configs[node.name] = None
                continue
            base = made._setting(node)[0]
            data = base.to_data() if isinstance(base, QuantizationConfig) else {}
            try:
                config = QuantizationConfig.from_data({**data, **edit.config})
            except QuantizationError as error:
                raise RecipeError(
                    f"an edit of quantization is malformed: {error.message}", found=error.found
                ) from error
            made.node_configs[node.name] = config
    return made


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value


class _KeptInFloats(pt2e.Quantizer):  # type: ignore[misc]
    """Another quantizer, whose annotations of some nodes are taken back."""

    def __init__(self, quantizer: Any, names: set[str]) -> None:
        super().__init__()
        self._quantizer, self._names = quantizer, names

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        found: GraphModule = self._quantizer.transform_for_annotation(model)
        return found

    def annotate(self, model: GraphModule) -> GraphModule:
        self._quantizer.annotate(model)
        for node in model.graph.nodes:
            if node.name in self._names:
                node.meta.pop(pt2e.ANNOTATION_KEY, None)
        return model

    def validate(self, model: GraphModule) -> None:
        self._quantizer.validate(model)
