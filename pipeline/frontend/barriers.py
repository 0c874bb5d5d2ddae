"""`pipeline.stop_fusion` on its way from torch to linalg, past torch-mlir's passes, which know no such op.

torch.operator "torch.pipeline.stop_fusion" → fusion.barrier on torch's tensors → fusion.barrier on builtin tensors
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from pipeline.dialects.fusion import BARRIER, STOP_FUSION
from pipeline.mlir import ir, run_pipeline, tensor, walk
from pipeline.passes.rewriting import before, replace

_IMPORTED = "torch.pipeline.stop_fusion"


def take_over_barriers(module: ir.Module) -> None:
    """Makes imported calls of `pipeline.stop_fusion` ops of the fusion dialect, which torch's passes leave alone."""
    for op in walk(module, "torch.operator"):
        if ir.StringAttr(op.attributes["name"]).value != _IMPORTED:
            continue
        with before(op):
            barrier = ir.Operation.create(BARRIER, results=[op.results[0].type], operands=[op.operands[0]])
        replace(op, list(barrier.results))


def put_barriers_on_tensors(module: ir.Module) -> None:
    """Lets the barriers take builtin tensors, between torch-mlir's own conversions, which fold away as it lowers."""
    barriers = walk(module, BARRIER)
    if barriers:
        load_conversions(module.context)
    for op in barriers:
        torch_type = op.results[0].type
        kind = builtin_tensor(torch_type)
        with before(op):
            inside = ir.Operation.create("torch_c.to_builtin_tensor", results=[kind], operands=[op.operands[0]])
            barrier = ir.Operation.create(BARRIER, results=[kind], operands=list(inside.results))
            outside = ir.Operation.create("torch_c.from_builtin_tensor", results=[torch_type], operands=barrier.results)
        replace(op, list(outside.results))


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


def load_conversions(context: ir.Context) -> None:
    """Loads torch-mlir's dialect of conversions, which only its passes bring in."""
    with context, ir.Location.unknown():
        run_pipeline(ir.Module.create().operation, "builtin.module(torch-func-backend-type-conversion)")


def builtin_tensor(kind: ir.Type) -> ir.Type:
    """!torch.vtensor<[2,?],si64> → tensor<2x?xi64>"""
    match = re.fullmatch(r"!torch\.vtensor<\[(.*)\],[su]?(.*)>", str(kind))
    assert match is not None, kind
    sizes = "".join(f"{size}x" for size in match[1].split(",") if size)
    return ir.Type.parse(f"tensor<{sizes}{match[2]}>", kind.context)
