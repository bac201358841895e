"""Two small backends that show, from partitioner to native code, what a backend consists of.

- `BackendWithCompilerDemo`: sin, add, mm and linear; lowers whole modules.
- `AddMulBackendDemo` with `AddMulPartitionerDemo`: chains of add, mul and mm, found in a graph by the
  partitioner.

Both write the same instruction list (`bytecode.py`), which the native half in
`native_runtime/backends/demo/` checks and runs.
"""

from workbench.backends.demo.add_mul import AddMulBackendDemo, AddMulPartitionerDemo
from workbench.backends.demo.compiler_demo import BackendWithCompilerDemo

__all__ = ["AddMulBackendDemo", "AddMulPartitionerDemo", "BackendWithCompilerDemo"]
