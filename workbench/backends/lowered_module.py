"""`LoweredBackendModule`: a module that a backend runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from workbench.errors import PartitionError

if TYPE_CHECKING:
    from workbench.backends.base import CompileSpec
    from workbench.backends.named_data import NamedDataStoreOutput
    from workbench.emit.ir import Program

__all__ = ["LoweredBackendModule"]


class LoweredBackendModule(torch.nn.Module):
    """A program (or part of one) that was lowered to a backend. `to_backend` makes it.

    Called, it computes what the original module computes, so that a parent module that holds it can be run
    eagerly and captured by `torch.export`; in the captured graph one delegate call stands for it. The object
    never changes after it is made, so copies of graphs share it.

    Args:
        edge_program: The program that was lowered, in flat form.
        backend_id: The backend's identifier.
        processed_bytes: The blob.
        compile_specs: The settings that the blob was made with.
        named_data_store_output: Data that the delegate stores by name.
        call_spec: Structure of the inputs and of the outputs of `forward`, if not flat.
    """

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: list[CompileSpec],
        named_data_store_output: NamedDataStoreOutput | None = None,
        *,
        call_spec: tuple[pytree.TreeSpec, pytree.TreeSpec] | None = None,
    ) -> None:
        super().__init__()
        self._original_exported_program = edge_program
        self._backend_id = backend_id
        self._processed_bytes = processed_bytes
        self._compile_specs = compile_specs
        self._named_data_store_output = named_data_store_output
        self._call_spec = call_spec
        self.meta: dict[str, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        return self

    @property
    def backend_id(self) -> str:
        """The backend's identifier."""
        return self._backend_id

    @property
    def module_name(self) -> str:
        """What torch's `.pt2` writer notes for a delegate."""
        return f"lowered_{self._backend_id}"

    @property
    def processed_bytes(self) -> bytes:
        """The blob that the backend's native half reads."""
        return self._processed_bytes

    @property
    def compile_specs(self) -> list[CompileSpec]:
        """The settings that stand in the program for the backend."""
        return self._compile_specs

    @property
    def original_module(self) -> ExportedProgram:
        """The program that was lowered: flat inputs, a tuple of outputs."""
        return self._original_exported_program

    @property
    def named_data_store_output(self) -> NamedDataStoreOutput | None:
        """Data that the delegate stores by name, or None."""
        return self._named_data_store_output

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the original module returns for these inputs."""
        if self._call_spec is None:
            if kwargs:
                raise PartitionError(
                    "a lowered partition takes positional inputs only", found=", ".join(kwargs)
                )
            return executorch_call_delegate(self, *args)
        in_spec, out_spec = self._call_spec
        flat, found = pytree.tree_flatten((args, kwargs))
        if found != in_spec:
            raise PartitionError(
                "the inputs differ in structure from those of the lowered module",
                expected=str(in_spec),
                found=str(found),
            )
        return pytree.tree_unflatten(list(executorch_call_delegate(self, *flat)), out_spec)

    def program(self) -> Program:
        """The program in memory that consists of one call of this delegate.

        Raises:
            EmitError: Its signature can't be written.
        """
        # Emission stands above the backends; only these two methods reach up to it.
        from workbench.backends.standalone import emit_standalone

        return emit_standalone(self)

    def buffer(self) -> bytes:
        """A `.pte` file that consists of one call of this delegate."""
        from workbench.serialize import write_program

        return bytes(write_program(self.program()).buffer)
