"""tensor-selects-to-branches: choosing between two tensors is a branch, as it was before canonicalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.rewriting import branch_on_selects
from pipeline.mlir import ir
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class TensorSelectsToBranches(Pass):
    """Make a branch of every arith.select of tensors that is left.

    select %p, %x, %y : tensor<?xf32>  ->  scf.if %p { yield %x } else { yield %y }

    Canonicalization makes selects of branches that compute nothing; bufferization refuses them where it would have to
    copy one side.
    """

    name: ClassVar[str] = "tensor-selects-to-branches"
    anchor: ClassVar[str] = "func.func"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites one function."""
        branch_on_selects(op)
