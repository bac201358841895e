"""How layers are quantized, as the switch of the view offers it, and as an edit of the recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import RecipeError
from workbench.recipe import Edit, Recipe
from workbench_widgets.quantization.contract import QuantizationChoice, QuantizationEdit

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["FLOAT", "choice_of", "configs", "describe", "edit_of", "edits_of"]

FLOAT = QuantizationChoice("float", "", "")
_MODES = {"": (False, False), "dynamic": (True, False), "weights": (False, True)}


def edits_of(recipe: Recipe, method: str) -> list[Edit]:
    """The edits of a method's quantization, in order."""
    return [edit for edit in recipe.edits_of("prepare") if edit.method == method]


def configs(recipe: Recipe, program: ExportedProgram, edits: Iterable[Edit]) -> dict[str, Any]:
    """By operator the config that the recipe's quantizer has for it with some edits; None for floats.

    Empty for quantizers that can't be asked.

    Raises:
        RecipeError: An edit is about nothing that is there.
    """
    from workbench.quantization.edits import LayerEdit, with_edits

    assert recipe.quantizer is not None
    quantizer = recipe.quantizer.make()
    if not hasattr(quantizer, "config_of"):
        return {}
    chosen = with_edits(quantizer, program.graph_module, [LayerEdit.from_data(edit.data) for edit in edits])
    nodes = (node for node in program.graph.nodes if node.op == "call_function")
    return {node.name: chosen.config_of(node) for node in nodes}


def choice_of(config: Any) -> QuantizationChoice:
    """A config as the switch shows it."""
    if config is None:
        return FLOAT
    bits = getattr(config, "weight_bits", 8)
    mode = "dynamic" if config.is_dynamic else "weights" if getattr(config, "weights_only", False) else ""
    size = getattr(config, "group_size", None)
    granularity = str(size) if size is not None else "channel" if config.is_per_channel else "tensor"
    observer = "" if mode else getattr(config, "observer", "")
    return QuantizationChoice(f"int{bits} {mode}".strip(), observer, granularity)


def edit_of(request: QuantizationEdit, base: Any) -> Edit | None:
    """The edit that a request asks for; None where it asks for what the quantizer does anyhow.

    Args:
        request: What was chosen.
        base: The config that the layer has without edits of its own; None where it stays in floats, and for
            modules, whose layers may differ: then all that was chosen is written.

    Raises:
        RecipeError: There is no such choice.
    """
    if not request.dtype:
        return None
    if request.dtype == "float":
        return _edit(None, request)
    wanted = _fields(request)
    before = base.to_data() if hasattr(base, "to_data") else {}
    if wanted.get("observer") not in (None, getattr(base, "observer", None)) and before.get(
        "observer_options"
    ):
        wanted["observer_options"] = {}  # they are another observer's
    if base is not None:
        wanted = {name: value for name, value in wanted.items() if getattr(base, name, None) != value}
        if not wanted:
            return None
    return _edit(wanted, request)


def _edit(config: Mapping[str, Any] | None, request: QuantizationEdit) -> Edit:
    from workbench.quantization.edits import LayerEdit

    module = "" if request.node else request.module
    made = LayerEdit(config=config, node=request.node, module=module)
    return Edit(LayerEdit.step, made.to_data(), request.method)


def _fields(request: QuantizationEdit) -> dict[str, Any]:
    bits, _, mode = request.dtype.partition(" ")
    if bits not in ("int8", "int4") or mode not in _MODES:
        known = [f"{bits} {mode}".strip() for bits in ("int8", "int4") for mode in _MODES]
        raise RecipeError("there is no such type", expected=", ".join(["float", *known]), found=request.dtype)
    dynamic, weights = _MODES[mode]
    fields: dict[str, Any] = {"weight_bits": int(bits[3:]), "is_dynamic": dynamic, "weights_only": weights}
    if request.observer and not mode:
        fields["observer"] = request.observer
    if request.granularity:
        size = int(request.granularity) if request.granularity.isdigit() else None
        if size is None and request.granularity not in ("tensor", "channel"):
            raise RecipeError(
                "there are no such scales",
                expected="tensor, channel, or the size of a group",
                found=request.granularity,
            )
        fields.update(is_per_channel=request.granularity != "tensor", group_size=size)
    return fields


def describe(edit: Edit) -> str:
    """An edit in words: `conv2d_3: float`, `module head: observer percentile`."""
    data = edit.data
    handles = ", ".join(f"#{handle}" for handle in data.get("handles", ()))
    target = data.get("node") or (f"module {data['module']}" if data.get("module") else handles)
    config = data.get("config")
    if config is None:
        return f"{target}: float"
    words = [_word(name, value) for name, value in config.items()]
    return f"{target}: {', '.join(words) or 'as the quantizer has it'}"


def _word(name: str, value: Any) -> str:
    flags = {
        "is_dynamic": ("scales chosen at run time", "fixed scales"),
        "weights_only": ("weights only", "activations too"),
        "is_per_channel": ("per channel", "per tensor"),
    }
    if name in flags:
        return flags[name][0 if value else 1]
    if name == "weight_bits":
        return f"{value}-bit weights"
    if name == "group_size":
        return f"groups of {value}" if value else "no groups"
    return f"{name.replace('_', ' ')} {value}"
