"""Writes what a thread does for an elementwise op on several elements side by side; what map-to-threads emits.

A thread loads, computes and stores as many elements as fill 16 bytes, which is the widest access of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from pipeline.analysis.access import Loops
from pipeline.mlir import arith, ir, memref, vector
from pipeline.passes.launches import is_arithmetic
from pipeline.passes.thread_results import zero

#: Types that fill whole bytes, and whose vectors every code generator takes.
BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def lanes(generic: ir.Operation, loops: Loops, width: int) -> int:
    """How many elements a thread takes if accesses have `width` bytes; 1 where elements are not side by side."""
    buffers = [operand for operand in generic.operands if isinstance(operand.type, ir.MemRefType)]
    if not width or any(loops.reductions) or not is_arithmetic(generic) or not all(map(_is_row_major, buffers)):
        return 1
    identity = ir.AffineMap.get_identity(len(loops.reductions))
    for operand, indexing in zip(generic.operands, loops.maps, strict=True):
        if isinstance(operand.type, ir.MemRefType) and indexing != identity:
            return 1
    elements = [str(ir.MemRefType(buffer.type).element_type) for buffer in buffers]
    if any(element not in BYTES for element in elements):
        return 1
    count = width // max(BYTES[element] for element in elements)
    return count if prod(ir.MemRefType(buffers[0].type).shape) % count == 0 else 1


def _is_row_major(buffer: ir.Value) -> bool:
    kind = ir.MemRefType(buffer.type)
    if not kind.has_static_shape or kind.rank == 0:
        return False
    with buffer.location:
        return kind == ir.MemRefType.get(kind.shape, kind.element_type)


def emit(
    generic: ir.Operation,
    loops: Loops,
    count: int,
    number: ir.Value,
    body: Callable[[list[ir.Value]], list[ir.Value]],
) -> None:
    """Elements `number * count` to `(number + 1) * count`; `body` computes the results of one from the operands'."""
    first = arith.MulIOp(number, arith.ConstantOp(ir.IndexType.get(), count).result).result
    used = [bool(list(argument.uses)) for argument in generic.regions[0].blocks[0].arguments]
    flat = [_flat(operand) for operand in generic.operands]
    loaded = [_load(operand, first, count) if is_used else None for operand, is_used in zip(flat, used, strict=True)]
    results: list[list[ir.Value]] = []
    for lane in range(count):
        one = [_lane(value, operand, lane) for value, operand in zip(loaded, flat, strict=True)]
        results.append(body(one))
    for position, output in enumerate(loops.outputs):
        values = [lane[position] for lane in results]
        kind = ir.VectorType.get([count], values[0].type)
        whole = vector.FromElementsOp(kind, values).result
        vector.StoreOp(whole, flat[output], [first], alignment=_alignment(kind))


def _flat(operand: ir.Value) -> ir.Value:
    """A buffer as one row."""
    if not isinstance(operand.type, ir.MemRefType) or operand.type.rank == 1:
        return operand
    kind = ir.MemRefType(operand.type)
    size = prod(kind.shape)
    row = ir.MemRefType.get([size], kind.element_type)
    return memref.ReinterpretCastOp(row, operand, [], [], [], [0], [size], [1]).result


def _load(buffer: ir.Value, first: ir.Value, count: int) -> ir.Value | None:
    if not isinstance(buffer.type, ir.MemRefType):
        return None
    kind = ir.VectorType.get([count], ir.MemRefType(buffer.type).element_type)
    return vector.LoadOp(kind, buffer, [first], alignment=_alignment(kind)).result


def _lane(loaded: ir.Value | None, operand: ir.Value, lane: int) -> ir.Value:
    """The lane of what was loaded; a number itself; of what nobody reads, anything of its type."""
    if loaded is not None:
        return vector.ExtractOp(loaded, [], [lane]).result
    if not isinstance(operand.type, ir.MemRefType):
        return operand
    return zero(ir.MemRefType(operand.type).element_type)


def _alignment(kind: ir.VectorType) -> int:
    return kind.shape[0] * BYTES[str(kind.element_type)]
