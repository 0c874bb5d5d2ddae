"""Kernels that do nothing but transpose."""

from __future__ import annotations

from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import structured
from pipeline.mlir import ir


def transposed_by(kernel: ir.Operation) -> list[int] | None:
    """The order in which the dims of a kernel's result lie in its argument, if all it does is to transpose that."""
    ops, end = _ops_of(kernel)
    return _transposed(ops[0], kernel.regions[0].blocks[0].arguments[0], end) if len(ops) == 1 else None


def part_transposed_by(kernel: ir.Operation) -> list[int] | None:
    """Likewise of a part of its first argument: what lies in one place, its second argument, of the first dim."""
    ops, end = _ops_of(kernel)
    if len(ops) != 2 or ops[0].name != "tensor.extract_slice":
        return None
    cut, arguments = ops[0], list(kernel.regions[0].blocks[0].arguments)
    if list(cut.operands) != arguments[:2]:
        return None
    part, whole = (ir.RankedTensorType(value.type) for value in (cut.results[0], arguments[0]))
    offsets, sizes = (list(ir.DenseI64ArrayAttr(cut.attributes[name])) for name in ("static_offsets", "static_sizes"))
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    is_place = offsets == [unknown] + [0] * (whole.rank - 1) and sizes == [1, *whole.shape[1:]]
    is_place = is_place and list(part.shape) == list(whole.shape[1:])
    return _transposed(ops[1], cut.results[0], end) if is_place else None


def _ops_of(kernel: ir.Operation) -> tuple[list[ir.Operation], ir.Operation | None]:
    """What a kernel consists of, and what ends it."""
    if not len(kernel.regions[0].blocks):
        return [], None
    *ops, end = (op.operation for op in kernel.regions[0].blocks[0].operations)
    return ops, end


def _transposed(op: ir.Operation, source: ir.Value, end: ir.Operation | None) -> list[int] | None:
    view = structured(op)
    if view is None or end is None or view.inputs != 1 or view.body_ops or list(end.operands) != list(view.op.results):
        return None
    moves = view.is_elementwise and view.reads_once(0) and view.yielded == [view.body.arguments[0]]
    moves = moves and is_identity(view.maps[1]) and view.operands[0] == source
    return view.loops_read(0) if moves else None
