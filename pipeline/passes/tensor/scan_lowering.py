"""Scans as loops on tensors: along lines element by element, across rows with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import build_generic, copy_block, iterator_types
from pipeline.mlir import arith, defining_op, ir, tensor
from pipeline.passes.tensor.tensor_loop_nest import loops, sizes_of

#: A shorter row is gone through element by element.
SHORTEST_ROW = 8

#: How much of a row is taken at once, at most: what is running stays in the nearest cache.
_LONGEST_PART = 1024

#: Parts of a row are a whole number of vectors.
_STEP = 16

#: What folds floats, and rounds each time.
_ROUNDING = {"arith.addf": arith.AddFOp, "arith.mulf": arith.MulFOp}


def scan_lines(op: ir.Operation) -> list[ir.Value]:
    """out[.., i, ..] = running = combine(in[.., i, ..], running), for i along the dimension; see `_combine`."""
    source, out, accumulator = op.operands
    filled = defining_op(out)
    if filled is not None and filled.name == "linalg.fill":
        out = filled.operands[1]  # every element is written
    width = _part_of_rows(source, _dim(op))
    if width is None:
        return _along_lines(op, source, out, accumulator)
    return _across_rows(op, source, out, accumulator, width)


def _along_lines(op: ir.Operation, source: ir.Value, out: ir.Value, accumulator: ir.Value) -> list[ir.Value]:
    """for lines { for elements { out[i] = running = combine(in[i], running) } }"""
    dim, sizes = _dim(op), sizes_of(source)
    element = ir.RankedTensorType(source.type).element_type

    def one_line(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        out, accumulator = carried

        def one_element(step: list[ir.Value], inner: list[ir.Value]) -> list[ir.Value]:
            place = [*at[:dim], *step, *at[dim:]]
            out, running = inner
            following = _combine(op, tensor.ExtractOp(source, place).result, running)
            written = _as(following if _is_inclusive(op) else running, element)
            return [tensor.InsertOp(written, out, place).result, following]

        first = tensor.ExtractOp(accumulator, at).result
        out, running = loops([sizes[dim]], [out, _as(first, _running_type(op))], one_element)
        return [out, tensor.InsertOp(_as(running, element), accumulator, at).result]

    outer = [size for number, size in enumerate(sizes) if number != dim]
    return loops(outer, [out, accumulator], one_line)


def _across_rows(
    op: ir.Operation, source: ir.Value, out: ir.Value, accumulator: ir.Value, width: int
) -> list[ir.Value]:
    """for parts of rows { for i { out[i, part] = running[part] = combine(in[i, part], running[part]) } }"""
    dim, kind = _dim(op), ir.RankedTensorType(source.type)
    row = ir.RankedTensorType.get([width], kind.element_type)

    def slice_of(value: ir.Value, place: list[ir.Value]) -> ir.Value:
        return tensor.ExtractSliceOp(row, value, place, [], [], *_row_at(place, width)).result

    def with_slice(value: ir.Value, part: ir.Value, place: list[ir.Value]) -> ir.Value:
        return tensor.InsertSliceOp(part, value, place, [], [], *_row_at(place, width)).result

    def one_part(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        out, accumulator = carried
        around, begin = at[:-1], arith.MulIOp(at[-1], as_index(width)).result

        def one_row(step: list[ir.Value], inner: list[ir.Value]) -> list[ir.Value]:
            out, running = inner
            place = [*around[:dim], *step, *around[dim:], begin]
            read, there = slice_of(source, place), slice_of(out, place)
            before = None if _is_inclusive(op) else _converted(running, there)
            following = _along([read], running, lambda elements: _combine(op, *elements))
            written = _converted(following, there) if before is None else before
            return [with_slice(out, written, place), following]

        first = slice_of(accumulator, [*around, begin])
        running = _converted(first, tensor.EmptyOp([width], _running_type(op)).result)
        out, running = loops([sizes[dim]], [out, running], one_row)
        return [out, with_slice(accumulator, _converted(running, first), [*around, begin])]

    sizes = sizes_of(source)
    outer = [size for number, size in enumerate(sizes[:-1]) if number != dim]
    return loops([*outer, as_index(kind.shape[-1] // width)], [out, accumulator], one_part)


def _part_of_rows(source: ir.Value, dim: int) -> int | None:
    """How much of a row is taken at once; None where a line lies along rows, or these are short or of unknown size."""
    kind = ir.RankedTensorType(source.type)
    last = kind.rank - 1
    if dim >= last or kind.is_dynamic_dim(last) or kind.get_dim_size(last) < SHORTEST_ROW:
        return None
    width = kind.get_dim_size(last)
    parts = range(_LONGEST_PART, _STEP - 1, -_STEP) if width > _LONGEST_PART else ()
    return next((part for part in parts if width % part == 0), width)


def _row_at(place: Sequence[ir.Value], width: int) -> tuple[list[int], list[int], list[int]]:
    """The static offsets, sizes and strides of a part of a row."""
    ones = [1] * len(place)
    return [ir.ShapedType.get_dynamic_size()] * len(place), [*ones[1:], width], ones


def _along(
    reads: Sequence[ir.Value], into: ir.Value, element: Callable[[Sequence[ir.BlockArgument]], ir.Value]
) -> ir.Value:
    """An elementwise op on rows, the last of which it writes to."""
    maps = [ir.AffineMap.get_identity(1)] * (len(reads) + 1)
    return build_generic(reads, [into], maps, iterator_types([False]), lambda one: [element(one)]).results[0]


def _converted(row: ir.Value, into: ir.Value) -> ir.Value:
    """A row in the place and the type of another one."""
    kind = ir.RankedTensorType(into.type).element_type
    return _along([row], into, lambda elements: _as(elements[0], kind))


def _dim(op: ir.Operation) -> int:
    return int(ir.IntegerAttr(op.attributes["dimension"]).value)


def _is_inclusive(op: ir.Operation) -> bool:
    return bool(ir.BoolAttr(op.attributes["inclusive"]).value)


def _is_float32_fold(op: ir.Operation) -> bool:
    """Whether a scan adds up or multiplies float32."""
    block = op.regions[0].blocks[0]
    inner = [each.operation for each in block.operations]
    is_fold = len(inner) == 2 and inner[0].name in _ROUNDING and set(inner[0].operands) == set(block.arguments)
    return is_fold and isinstance(inner[0].results[0].type, ir.F32Type)


def _running_type(op: ir.Operation) -> ir.Type:
    """The type that a scan is computed in."""
    return ir.F64Type.get() if _is_float32_fold(op) else ir.RankedTensorType(op.operands[0].type).element_type


def _combine(op: ir.Operation, element: ir.Value, running: ir.Value) -> ir.Value:
    """What a scan makes of an element and of those before it; sums and products of float32 in float64, as torch has it.

    A running sum in float32 is off by as many roundings as there are elements: 1e-4 of 100,000.
    """
    block = op.regions[0].blocks[0]
    if not _is_float32_fold(op):
        return copy_block(block, [element, running])[0]
    fold = _ROUNDING[block.operations[0].operation.name]
    return fold(arith.ExtFOp(running.type, element).result, running).result


def _as(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A float in another type."""
    if value.type == kind:
        return value
    is_wider = ir.FloatType(kind).width > ir.FloatType(value.type).width
    return arith.ExtFOp(kind, value).result if is_wider else arith.TruncFOp(kind, value).result
