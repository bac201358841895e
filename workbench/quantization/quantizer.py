"""The quantizer for XNNPACK and the workbench's own engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node

from workbench import provenance
from workbench.edge.fake import fake_mode, fake_of
from workbench.errors import QuantizationError, RecipeError
from workbench.quantization import pt2e
from workbench.quantization.config import QuantizationConfig
from workbench.quantization.patterns import BINARY, FAMILIES, LAYERS, TAKES_ALONG, Context, Outcome
from workbench.quantization.patterns.base import float_tensor, is_float, is_operator
from workbench.quantization.plan import Decision
from workbench.quantization.targets import module_path_of, module_types_of, operators_of

__all__ = ["XNNPACKQuantizer"]

_UNSET: Any = object()


class XNNPACKQuantizer(pt2e.Quantizer):  # type: ignore[misc]
    """Annotates what integer kernels can compute; its setters can be chained.

    For a node, the most specific setting holds: its name, the name of its module (the longest that fits), its
    type, the config for all. A config of None keeps it in floats. `decisions` says after annotating what
    became of each node.

    Args:
        **options: What `recipe_options` gave, to make the same quantizer again.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.global_config: Any = None
        self.type_configs: dict[str, Any] = {}
        self.module_configs: dict[str, Any] = {}
        self.node_configs: dict[str, Any] = {}
        self.filters: list[Callable[[Node], bool]] = []
        self.decisions: dict[str, Decision] = {}
        unknown = set(options) - {"everywhere", "types", "modules", "nodes"}
        if unknown:
            raise RecipeError(
                f"a quantizer has no option `{sorted(unknown)[0]}`",
                expected="everywhere, types, modules, nodes",
            )
        if options.get("everywhere") is not None:
            self.set_global(_config(options["everywhere"]))
        self.type_configs.update(_configs(options.get("types")))
        self.module_configs.update(_configs(options.get("modules")))
        self.node_configs.update(_configs(options.get("nodes")))

    # ---- settings ------------------------------------------------------------------------------------------

    def set_global(self, quantization_config: Any) -> XNNPACKQuantizer:
        """Set the config of all nodes that no other setting is about."""
        self.global_config = _checked(quantization_config)
        return self

    def set_object_type(self, object_type: Any, quantization_config: Any) -> XNNPACKQuantizer:
        """Set the config of a type.

        Args:
            object_type: A module type (all operators in such modules), a function
                (`torch.nn.functional.linear`, `torch.add`), or an operator (`torch.ops.aten.linear.default`).
            quantization_config: The config, or None to keep it in floats.

        Raises:
            QuantizationError: The function is none that the quantizer knows.
        """
        for name in operators_of(object_type):
            self.type_configs[name] = _checked(quantization_config)
        return self

    set_operator_type = set_object_type
    set_module_type = set_object_type

    def set_module_name(self, module_name: str, quantization_config: Any) -> XNNPACKQuantizer:
        """Set the config of a module and of all in it, by its qualified name (`"encoder.layers.0"`)."""
        self.module_configs[module_name] = _checked(quantization_config)
        return self

    def set_node_name(self, node_name: str, quantization_config: Any) -> XNNPACKQuantizer:
        """Set the config of one node of the exported graph."""
        self.node_configs[node_name] = _checked(quantization_config)
        return self

    def set_filter(self, keep: Callable[[Node], bool]) -> XNNPACKQuantizer:
        """Quantize only nodes for which a function is true; several must all be."""
        self.filters.append(keep)
        return self

    set_filter_function = set_filter

    def recipe_options(self) -> dict[str, Any]:
        """The arguments that make this quantizer again, as JSON data.

        Raises:
            RecipeError: A filter or a foreign config is no data.
        """
        if self.filters:
            raise RecipeError(
                "a quantizer with a filter function can't be written as data",
                hint="say the same with set_module_name or set_object_type",
            )
        tables = {"types": self.type_configs, "modules": self.module_configs, "nodes": self.node_configs}
        options: dict[str, Any] = {
            name: {key: _data(value) for key, value in table.items()}
            for name, table in tables.items()
            if table
        }
        if self.global_config is not None:
            options["everywhere"] = _data(self.global_config)
        return options

    # ---- PT2E's interface ----------------------------------------------------------------------------------

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Make constants of the numbers that are added to or multiplied with values that may be quantized."""
        mode = None
        for node in list(model.graph.nodes):
            if node.op != "call_function" or node.target not in BINARY or not is_float(node):
                continue
            config = self._config_of(node)
            number = node.args[1] if len(node.args) > 1 else None
            if config is None or config.output_activation is None or not isinstance(number, int | float):
                continue
            mode = mode or fake_mode(model)
            name = f"_number_of_{node.name}"
            value = torch.tensor(float(number))
            model.register_buffer(name, value)
            with model.graph.inserting_before(node):
                constant = model.graph.create_node("get_attr", name)
            constant.meta["val"] = fake_of(value, mode)
            provenance.transfer((node,), constant)
            node.update_arg(1, constant)
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotate the nodes of a module, and say in `decisions` what became of each.

        Raises:
            QuantizationError: A setting is about a module or node that is not there.
        """
        nodes = [node for node in model.graph.nodes if is_operator(node)]
        self._check_names(nodes)
        context = Context(model, config_of=self._config_of, explicit=self._explicit)
        context.wanted = self._wanted(nodes)
        self.decisions = {}
        for node in nodes:
            if node.name not in self.decisions:
                self._decide(node, context)
        return model

    def validate(self, model: GraphModule) -> None:
        """Nothing is left to be checked: what a node refuses, `decisions` says."""

    def _decide(self, node: Node, context: Context) -> None:
        config, why = self._config_of(node), ""
        family = FAMILIES.get(node.target)
        if config is None:
            why = self._unasked(node)
        elif family is None:
            why = float_tensor(node) or f"there is no integer kernel for {node.target}"
        outcome = Outcome(why=why) if why or family is None else family(node, config, context)
        self.decisions[node.name] = Decision(
            node.name, node.name if outcome.how else "", bool(outcome.how), outcome.how, outcome.why
        )
        for other in outcome.nodes:
            self.decisions[other.name] = Decision(
                other.name, node.name, True, f"computed along with {node.name}"
            )

    def _unasked(self, node: Node) -> str:
        if self.filters and not all(keep(node) for keep in self.filters):
            return "the filter leaves it out"
        _, where = self._setting(node)
        return f"{where} keeps it in floats" if where else "no setting is about it"

    def _wanted(self, nodes: list[Node]) -> set[Node]:
        """Nodes whose results reach an operator that is to compute on integers."""
        wanted: set[Node] = set()
        for node in reversed(nodes):
            for reader in node.users:
                config = self._config_of(reader) if reader.op == "call_function" else None
                if config is None or config.output_activation is None:
                    continue
                if reader.target in LAYERS or (reader.target in TAKES_ALONG and reader in wanted):
                    wanted.add(node)
        return wanted

    def config_of(self, node: Node) -> Any:
        """The config that holds for a node; None where it stays in floats."""
        return self._config_of(node)

    def _config_of(self, node: Node) -> Any:
        if self.filters and not all(keep(node) for keep in self.filters):
            return None
        return self._setting(node)[0]

    def _explicit(self, node: Node) -> bool:
        return bool(self._setting(node)[1])

    def _setting(self, node: Node) -> tuple[Any, str]:
        """The config of a node, and the name of the setting it comes from; empty for the global one."""
        if node.name in self.node_configs:
            return self.node_configs[node.name], f"the setting of node {node.name}"
        path = module_path_of(node)
        while path:
            if path in self.module_configs:
                return self.module_configs[path], f"the setting of module {path}"
            path = path.rpartition(".")[0]
        operator = str(node.target)
        if operator in self.type_configs:
            return self.type_configs[operator], f"the setting of {operator}"
        for name in module_types_of(node):
            if name in self.type_configs:
                return self.type_configs[name], f"the setting of {name}"
        return self.global_config, ""

    def _check_names(self, nodes: list[Node]) -> None:
        paths = {module_path_of(node) for node in nodes}
        for name in self.module_configs:
            if not any(path == name or path.startswith(f"{name}.") for path in paths):
                raise QuantizationError(
                    f"a setting is about module '{name}', in which no operator was traced",
                    stage="prepare",
                    expected=", ".join(sorted(path for path in paths if path)) or "a module with operators",
                    hint="names are those of model.named_modules()",
                )
        names = {node.name for node in nodes}
        for name in self.node_configs:
            if name not in names:
                raise QuantizationError(
                    f"a setting is about node '{name}', which is not there",
                    stage="prepare",
                    hint="lowering.exported.table shows the names",
                )


def _checked(config: Any) -> Any:
    wanted = ("input_activation", "output_activation", "weight", "bias")
    if config is not None and not all(hasattr(config, name) for name in wanted):
        raise QuantizationError(
            "that is no config of quantization",
            expected="what get_symmetric_quantization_config() returns, or None",
            found=type(config).__name__,
        )
    return config


def _data(config: Any) -> Any:
    if config is None:
        return None
    if not isinstance(config, QuantizationConfig):
        raise RecipeError(
            "a quantizer with a foreign config can't be written as data",
            expected="configs of wb.get_symmetric_quantization_config()",
            found=type(config).__name__,
        )
    return config.to_data()


def _config(data: Any) -> Any:
    return QuantizationConfig.from_data(data) if isinstance(data, Mapping) else _checked(data)


def _configs(data: Any) -> dict[str, Any]:
    return {str(name): _config(value) if value is not None else None for name, value in (data or {}).items()}
