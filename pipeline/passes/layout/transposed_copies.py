"""Kernels that do nothing but transpose."""

from __future__ import annotations

from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import structured
from pipeline.mlir import ir


def transposed_by(kernel: ir.Operation) -> list[int] | None:
    """The order in which the dims of a kernel's result lie in its argument, if all it does is to transpose that."""
    if not len(kernel.regions[0].blocks):
        return None
    block = kernel.regions[0].blocks[0]
    *ops, end = (op.operation for op in block.operations)
    view = structured(ops[0]) if len(ops) == 1 else None
    if view is None or view.inputs != 1 or view.body_ops or list(end.operands) != list(view.op.results):
        return None
    moves = view.is_elementwise and view.reads_once(0) and view.yielded == [view.body.arguments[0]]
    moves = moves and is_identity(view.maps[1]) and view.operands[0] == block.arguments[0]
    return view.loops_read(0) if moves else None
