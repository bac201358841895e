"""How a program is brought to the edge dialect."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

__all__ = ["EdgeCompileConfig"]


@dataclass
class EdgeCompileConfig:
    """Options of `to_edge` and `to_edge_transform_and_lower`; names as ExecuTorch's where they exist there.

    Attributes:
        _check_ir_validity: Verify the graph against the invariants of its stage.
        _skip_dim_order: Keep `memory_format` operators instead of turning them into dim-order operators.
        _core_aten_ops_exception_list: Operators outside core ATen that the verifier lets pass.
        preserve_ops: Operators that are kept from decomposition.
        fold_batch_norm: Fold inference batch norms into the convolution before them.
        fold_constants_limit: Bytes that a folded constant may add to the program, beyond the constants that
            it replaces; larger results are computed at run time.
    """

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: list[torch._ops.OpOverload] = field(default_factory=list)
    preserve_ops: list[torch._ops.OpOverload] = field(default_factory=list)
    fold_batch_norm: bool = True
    fold_constants_limit: int = 1 << 20
