"""Lowering Workbench: look at, change, replay and run every stage between a PyTorch model and its program.

`import workbench as wb`. Names are loaded when they are first used, so that the import itself is quick.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench import errors as errors
    from workbench import pruning as pruning
    from workbench import quantization as quantization
    from workbench import runtime as runtime
    from workbench.backends import BackendDetails as BackendDetails
    from workbench.backends import CompileSpec as CompileSpec
    from workbench.backends import DelegationSpec as DelegationSpec
    from workbench.backends import LoweredBackendModule as LoweredBackendModule
    from workbench.backends import Partitioner as Partitioner
    from workbench.backends import PartitionResult as PartitionResult
    from workbench.backends import PreprocessResult as PreprocessResult
    from workbench.backends import to_backend as to_backend
    from workbench.backends.cpu import CpuPartitioner as CpuPartitioner
    from workbench.backends.xnnpack import XnnpackPartitioner as XnnpackPartitioner
    from workbench.compare import Comparison as Comparison
    from workbench.compare import compare as compare
    from workbench.component import Component as Component
    from workbench.display import workbench as workbench
    from workbench.edge.config import EdgeCompileConfig as EdgeCompileConfig
    from workbench.emit.config import ExecutorchBackendConfig as ExecutorchBackendConfig
    from workbench.errors import WorkbenchError as WorkbenchError
    from workbench.export import export as export
    from workbench.inspector import Inspector as Inspector
    from workbench.lowering import Lowering as Lowering
    from workbench.lowering import lower as lower
    from workbench.managers import EdgeProgramManager as EdgeProgramManager
    from workbench.managers import ExecutorchProgramManager as ExecutorchProgramManager
    from workbench.managers import to_edge as to_edge
    from workbench.managers import to_edge_transform_and_lower as to_edge_transform_and_lower
    from workbench.opened import OpenedProgram as OpenedProgram
    from workbench.opened import open as open
    from workbench.pruning import MagnitudePruner as MagnitudePruner
    from workbench.pruning import PruningReport as PruningReport
    from workbench.pruning import StructuredPruner as StructuredPruner
    from workbench.quantization import LayerEdit as LayerEdit
    from workbench.quantization import QuantizationConfig as QuantizationConfig
    from workbench.quantization import XNNPACKQuantizer as XNNPACKQuantizer
    from workbench.quantization import (
        get_symmetric_quantization_config as get_symmetric_quantization_config,
    )
    from workbench.recipe import EdgeOptions as EdgeOptions
    from workbench.recipe import Edit as Edit
    from workbench.recipe import MemoryOptions as MemoryOptions
    from workbench.recipe import QuantizationOptions as QuantizationOptions
    from workbench.recipe import Recipe as Recipe
    from workbench.run import Run as Run
    from workbench.search import Budget as Budget
    from workbench.search import SearchResult as SearchResult
    from workbench.search import search as search
    from workbench.selection import Selection as Selection

__version__ = "0.1.0"

# Public name -> the module that it comes from.
_HOME = {
    "BackendDetails": "backends",
    "Comparison": "compare",
    "Budget": "search",
    "CompileSpec": "backends",
    "CpuPartitioner": "backends.cpu",
    "Component": "component",
    "DelegationSpec": "backends",
    "EdgeCompileConfig": "edge.config",
    "EdgeOptions": "recipe",
    "EdgeProgramManager": "managers",
    "Edit": "recipe",
    "ExecutorchBackendConfig": "emit.config",
    "ExecutorchProgramManager": "managers",
    "Inspector": "inspector",
    "Lowering": "lowering",
    "LayerEdit": "quantization",
    "LoweredBackendModule": "backends",
    "MemoryOptions": "recipe",
    "OpenedProgram": "opened",
    "PartitionResult": "backends",
    "Partitioner": "backends",
    "PreprocessResult": "backends",
    "PruningReport": "pruning",
    "MagnitudePruner": "pruning",
    "StructuredPruner": "pruning",
    "QuantizationConfig": "quantization",
    "QuantizationOptions": "recipe",
    "Recipe": "recipe",
    "Run": "run",
    "SearchResult": "search",
    "Selection": "selection",
    "WorkbenchError": "errors",
    "XNNPACKQuantizer": "quantization",
    "XnnpackPartitioner": "backends.xnnpack",
    "compare": "compare",
    "export": "export",
    "get_symmetric_quantization_config": "quantization",
    "lower": "lowering",
    "open": "opened",
    "search": "search",
    "to_backend": "backends",
    "to_edge": "managers",
    "to_edge_transform_and_lower": "managers",
    "workbench": "display",
}
_MODULES = ("errors", "pruning", "quantization", "runtime")

__all__ = [*sorted(_HOME), *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"workbench.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"workbench.{name}")
    else:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import of a submodule puts it here as an attribute. Where a public function has its name
        # (`wb.export`, `wb.compare`), the function is what `wb.name` means; `from workbench.name import ...`
        # still works.
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
