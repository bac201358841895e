"""Emission: annotated graphs -> memory plan -> values and instructions."""

from workbench.emit.config import ExecutorchBackendConfig, MemoryPlanning
from workbench.emit.program import EmitResult, emit

__all__ = ["EmitResult", "ExecutorchBackendConfig", "MemoryPlanning", "emit"]
