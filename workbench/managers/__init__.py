"""Several methods on their way from exported programs to one file: the names that ExecuTorch users know.

`to_edge` and `to_edge_transform_and_lower` make an `EdgeProgramManager`; its `to_backend` and `transform`
make new managers, `to_executorch` an `ExecutorchProgramManager`, which writes the file. A manager never
changes: each step works on a copy of the graphs and shares the weights.
"""

from workbench.managers.edge import EdgeProgramManager
from workbench.managers.executorch import ExecutorchProgramManager
from workbench.managers.lower import to_edge, to_edge_transform_and_lower

__all__ = [
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "to_edge",
    "to_edge_transform_and_lower",
]
