"""Scans as loops on tensors, line by line and element by element; `vectorize-scans` sees to vectors."""

from __future__ import annotations

from pipeline.ir.attributes import SCAN
from pipeline.ir.rewriting import copy_block, is_unused
from pipeline.mlir import arith, defining_op, ir, tensor
from pipeline.passes.tensor.tensor_loop_nest import loops, sizes_of

#: What folds floats, and rounds each time.
_ROUNDING = {"arith.addf": arith.AddFOp, "arith.mulf": arith.MulFOp}


def scan_lines(op: ir.Operation) -> list[ir.Value]:
    """for lines { for elements { out[i] = running = combine(in[i], running) } }; see `_combine`.

    What is left of a line goes to the second result, if that is read.
    """
    source, out, accumulator = op.operands
    dim, sizes = _dim(op), sizes_of(source)
    element = ir.RankedTensorType(source.type).element_type
    start, keeps_last = _filled_with(accumulator), not is_unused(op.results[1])

    def one_line(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        out, *last = carried

        def one_element(step: list[ir.Value], inner: list[ir.Value]) -> list[ir.Value]:
            place = [*at[:dim], *step, *at[dim:]]
            out, running = inner
            following = _combine(op, tensor.ExtractOp(source, place).result, running)
            written = _as(following if _is_inclusive(op) else running, element)
            return [tensor.InsertOp(written, out, place).result, following]

        first = tensor.ExtractOp(accumulator, at).result if start is None else start
        out, running = loops([sizes[dim]], [out, _as(first, _running_type(op))], one_element)
        out.owner.attributes[SCAN] = ir.UnitAttr.get(op.context)
        return [out, *(tensor.InsertOp(_as(running, element), each, at).result for each in last)]

    outer = [size for number, size in enumerate(sizes) if number != dim]
    empty = out if _filled_with(out) is None else out.owner.operands[1]  # every element is written
    out, *last = loops(outer, [empty, *([accumulator] if keeps_last else [])], one_line)
    return [out, *(last or [accumulator])]


def _filled_with(value: ir.Value) -> ir.Value | None:
    """The number that a tensor is filled with; None if it is made otherwise."""
    filled = defining_op(value)
    return filled.operands[0] if filled is not None and filled.name == "linalg.fill" else None


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
