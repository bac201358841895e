"""The engine of this runtime as a backend: the partitioner, and what writes its blobs."""

from workbench.backends.cpu.backend import CpuBackend
from workbench.backends.cpu.partitioner import CpuPartitioner

__all__ = ["CpuBackend", "CpuPartitioner"]
