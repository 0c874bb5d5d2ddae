"""Writes what a thread does for an elementwise op on several elements side by side; what map-to-threads emits.

A thread loads, computes and stores as many elements as fill 16 bytes, which is the widest access of a GPU.
"""

from __future__ import annotations

from math import prod

from pipeline.ir.constants import as_index, zero
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.matchers import base
from pipeline.ir.rewriting import copy_body
from pipeline.mlir import arith, defining_op, ir, memref, vector
from pipeline.passes.gpu.thread.launch_patterns import is_arithmetic
from pipeline.passes.gpu.thread.thread_results import indices, is_private, load, unravel

#: Types that fill whole bytes, and whose vectors every code generator takes.
BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def lanes(view: LinalgOp, width: int) -> int:
    """How many elements a thread takes if accesses have `width` bytes; 1 where elements are not side by side.

    An operand that is broadcast has a row of them side by side, or one for all of a row.
    """
    buffers = [operand for operand in view.operands if isinstance(operand.type, ir.MemRefType)]
    if not width or any(view.reductions) or not is_arithmetic(view.op) or not all(map(_is_row_major, buffers)):
        return 1
    identity = ir.AffineMap.get_identity(view.loops)
    elements = [str(ir.MemRefType(buffer.type).element_type) for buffer in buffers]
    if any(element not in BYTES for element in elements):
        return 1
    count = width // max(BYTES[element] for element in elements)
    length = prod(size or 1 for size in view.sizes)
    for number, (operand, indexing) in enumerate(zip(view.operands, view.maps, strict=True)):
        if not isinstance(operand.type, ir.MemRefType) or indexing == identity:
            continue
        if number in view.outputs or is_private(operand) or not _is_broadcast(operand, indexing, count):
            return 1
        length = view.sizes[-1] or 1
    return count if length % count == 0 else 1


def _is_broadcast(operand: ir.Value, indexing: ir.AffineMap, count: int) -> bool:
    """Whether an operand moves with some of the loops, each along a dim of its own, in whole accesses or not at all."""
    loops = [_loop(expression) for expression in indexing.results]
    moving = [loop for loop in loops if loop is not None]
    if len(set(moving)) < len(moving) or not all(map(_is_plain, indexing.results)):
        return False
    innermost = indexing.n_dims - 1
    return innermost not in moving or (loops[-1] == innermost and is_aligned(operand, count))


def _is_plain(expression: ir.AffineExpr) -> bool:
    """Whether it is a loop, or 0."""
    if isinstance(expression, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expression).value == 0
    return isinstance(expression, ir.AffineDimExpr)


def _loop(expression: ir.AffineExpr) -> int | None:
    return ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else None


def _is_row_major(buffer: ir.Value) -> bool:
    kind = ir.MemRefType(buffer.type)
    if not kind.has_static_shape:
        return False
    with buffer.location:
        return kind == ir.MemRefType.get(kind.shape, kind.element_type)


def emit(view: LinalgOp, count: int, number: ir.Value, known: dict[ir.Value, list[ir.Value]]) -> None:
    """Elements `number * count` to `(number + 1) * count` of an elementwise op.

    `known` has elements that are in registers, by buffer; those of the results are added. A buffer of the launch's own
    is not written.
    """
    first = arith.MulIOp(number, as_index(count)).result
    columns = [_lanes(view, position, first, count, known) for position in range(len(view.operands))]
    results = [copy_body(view, [column[lane] for column in columns]) for lane in range(count)]
    for position, output in enumerate(view.outputs):
        buffer = view.operands[output]
        known[buffer] = [lane[position] for lane in results]
        if is_private(buffer):
            continue
        kind = ir.VectorType.get([count], known[buffer][0].type)
        whole = vector.FromElementsOp(kind, known[buffer]).result
        vector.StoreOp(whole, _flat(buffer), [first], alignment=_alignment(kind))


def _lanes(
    view: LinalgOp, position: int, first: ir.Value, count: int, known: dict[ir.Value, list[ir.Value]]
) -> list[ir.Value]:
    """The elements of an operand; a number itself; of what nobody reads, anything of its type."""
    operand, indexing = view.operands[position], view.maps[position]
    if not isinstance(operand.type, ir.MemRefType):
        return [operand] * count
    if not list(view.body.arguments[position].uses):
        return [zero(ir.MemRefType(operand.type).element_type)] * count
    if operand in known:
        return known[operand]
    kind = ir.VectorType.get([count], ir.MemRefType(operand.type).element_type)
    buffer, places = _flat(operand), [first]
    if indexing != ir.AffineMap.get_identity(view.loops):
        at = dict(enumerate(unravel(first, [size or 1 for size in view.sizes])))
        if all(_loop(expression) != view.loops - 1 for expression in indexing.results):
            return [load(operand, indexing, at)] * count
        buffer, places = operand, indices(indexing, at)
    loaded = vector.LoadOp(kind, buffer, places, alignment=_alignment(kind)).result
    return [vector.ExtractOp(loaded, [], [lane]).result for lane in range(count)]


def _flat(operand: ir.Value) -> ir.Value:
    """A buffer as one row."""
    if not isinstance(operand.type, ir.MemRefType) or operand.type.rank == 1:
        return operand
    kind = ir.MemRefType(operand.type)
    size = prod(kind.shape)
    row = ir.MemRefType.get([size], kind.element_type)
    return memref.ReinterpretCastOp(row, operand, [], [], [], [0], [size], [1]).result


def _alignment(kind: ir.VectorType) -> int:
    return kind.shape[0] * BYTES[str(kind.element_type)]


def is_aligned(buffer: ir.Value, lanes: int) -> bool:
    """Whether the innermost rows of a buffer, or of a part of it, start at multiples of `lanes` elements.

    A row-major buffer does; what it is a part of must be whole along the innermost dim.
    """
    whole = ir.MemRefType(base(buffer).type)
    with buffer.location:
        if whole.rank == 0 or whole.layout != ir.MemRefType.get(whole.shape, whole.element_type).layout:
            return False
    size = whole.shape[-1]
    if size == ir.ShapedType.get_dynamic_size() or size % lanes:
        return False
    op = defining_op(buffer)
    while op is not None and op.name == "memref.subview":
        offsets, strides = (ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]) for name in ("offsets", "strides"))
        if offsets[len(offsets) - 1] != 0 or strides[len(strides) - 1] != 1:
            return False
        buffer = op.operands[0]
        op = defining_op(buffer)
    return op is None
