"""A check for backends whose delegates keep nothing from one execution to the next."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from workbench.errors import PartitionError

__all__ = ["check_stateless"]


def check_stateless(backend_id: str, program: ExportedProgram) -> None:
    """Refuse a partition that writes a buffer or an input.

    Args:
        backend_id: The backend, for the error.
        program: The partition.

    Raises:
        PartitionError: It has an output that is no result of the model.
    """
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise PartitionError(
                f"the backend '{backend_id}' keeps no state",
                stage="lower",
                node=getattr(spec.arg, "name", None),
                found=f"a program that writes '{spec.target}'",
                hint="leave the buffer out of the partition",
            )
