"""Delegation: partitioners and backends, the check of partitions, and the lowering of what they tag."""

from workbench.backends.api import (
    MethodProgramsPartitionerSpec,
    lower_partitions,
    to_backend,
)
from workbench.backends.base import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    Supported,
    WhyNot,
)
from workbench.backends.call_delegate import delegates_in, executorch_call_delegate, is_call_delegate
from workbench.backends.capability import CapabilityPartitioner, group_nodes
from workbench.backends.constants import tag_constant_data, tag_mutated_buffer
from workbench.backends.debug import DelegateMappingBuilder
from workbench.backends.legality import Violation, check_partition, verify_partition
from workbench.backends.lowered_module import LoweredBackendModule
from workbench.backends.named_data import NamedDataStore, NamedDataStoreOutput
from workbench.backends.partitioning import partition, unfused, why_not
from workbench.backends.registry import backend_ids, get_backend, register_backend

__all__ = [
    "BackendDetails",
    "CapabilityPartitioner",
    "CompileSpec",
    "DelegateMappingBuilder",
    "DelegationSpec",
    "LoweredBackendModule",
    "MethodProgramsPartitionerSpec",
    "NamedDataStore",
    "NamedDataStoreOutput",
    "PartitionResult",
    "Partitioner",
    "PreprocessResult",
    "Supported",
    "Violation",
    "WhyNot",
    "backend_ids",
    "check_partition",
    "delegates_in",
    "executorch_call_delegate",
    "get_backend",
    "group_nodes",
    "is_call_delegate",
    "lower_partitions",
    "partition",
    "register_backend",
    "tag_constant_data",
    "tag_mutated_buffer",
    "to_backend",
    "unfused",
    "verify_partition",
    "why_not",
]
