"""`pipeline.stop_fusion` on its way from torch to linalg, past torch-mlir's passes, which know no such op.

torch.operator "torch.pipeline.stop_fusion" → fusion.barrier on torch's tensors → fusion.barrier on builtin tensors
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pipeline.dialects.fusion import BARRIER
from pipeline.frontend.importer.own_ops import imported, lower_ops, take_over
from pipeline.ir.attributes import STOP_FUSION
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import ir, tensor, walk

_IMPORTED = "pipeline.stop_fusion"


def take_over_barriers(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.stop_fusion` ops of the fusion dialect, which torch's passes leave alone."""
    for call in imported(module, _IMPORTED):
        take_over(call, BARRIER, [call.operands[0]])


def put_barriers_on_tensors(module: ir.Module) -> None:
    """Lets the barriers take builtin tensors, between torch-mlir's own conversions, which fold away as it lowers."""
    lower_ops(walk(module, BARRIER), lambda _, x: ir.Operation.create(BARRIER, results=[x.type], operands=[x]).result)


@contextlib.contextmanager
def barriers_as_casts(module: ir.Module) -> Iterator[None]:
    """Has casts in the place of the barriers inside of the `with` block, for a check of what is left after lowering."""
    for op in walk(module, BARRIER):
        with before(op):
            cast = tensor.CastOp(op.results[0].type, op.operands[0])
            cast.operation.attributes[STOP_FUSION] = ir.UnitAttr.get()
        replace(op, [cast.result])
    yield
    for op in walk(module, "tensor.cast"):
        if STOP_FUSION in op.attributes:
            with before(op):
                barrier = ir.Operation.create(BARRIER, results=[op.results[0].type], operands=[op.operands[0]])
            replace(op, list(barrier.results))
