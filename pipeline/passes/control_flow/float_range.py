"""The ranges of floats that comparisons, clamps and roundings bound: what is known of a float that becomes an index."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.reshapes import TENSOR_VIEWS
from pipeline.mlir import arith, defining_op, ir

#: How many ops a value is followed back through.
_DEPTH = 32

_ROUNDINGS: dict[str, Callable[[float], float]] = {
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
    "math.roundeven": round,
}

#: Comparisons that do not hold for what is not a number, by whether the left side is at most or at least the right one.
_AT_MOST = (arith.CmpFPredicate.OLT, arith.CmpFPredicate.OLE, arith.CmpFPredicate.OEQ)
_AT_LEAST = (arith.CmpFPredicate.OGT, arith.CmpFPredicate.OGE, arith.CmpFPredicate.OEQ)


@dataclass(frozen=True)
class FloatRange:
    """The numbers from `least` to `most`, both included; NaN is none of them."""

    least: float
    most: float

    def __or__(self, other: FloatRange) -> FloatRange:
        return FloatRange(min(self.least, other.least), max(self.most, other.most))

    def __and__(self, other: FloatRange) -> FloatRange:
        return FloatRange(max(self.least, other.least), min(self.most, other.most))


_NUMBERS = FloatRange(-math.inf, math.inf)


def float_range(value: ir.Value, depth: int = _DEPTH) -> FloatRange | None:
    """The range of a float in a body, or of a tensor's elements; None if it may be NaN."""
    value = _source(value)
    op = defining_op(value)
    if depth == 0 or op is None:
        return _of_elements(value, None, depth - 1) if depth > 0 else None
    if op.name == "arith.constant":
        return _of_constant(op)
    if op.name == "arith.select":
        condition, chosen, other = op.operands
        sides = _where(condition, chosen, depth - 1), float_range(other, depth - 1)
        return None if sides[0] is None or sides[1] is None else sides[0] | sides[1]
    if op.name in _ROUNDINGS:
        inner = float_range(op.operands[0], depth - 1)
        return None if inner is None else FloatRange(*(_rounded(op.name, end) for end in (inner.least, inner.most)))
    return _of_elements(value, op, depth - 1)


def _of_elements(value: ir.Value, op: ir.Operation | None, depth: int) -> FloatRange | None:
    """The range of a tensor's elements, or of one of them that is read at another place than it is written."""
    if op is None:
        view, number = _read_by(value)
        return None if view is None else float_range(view.operands[number], depth)
    if op.name in TENSOR_VIEWS:
        return float_range(op.operands[0], depth)
    view = structured(op)
    is_computed = view is not None and view.is_elementwise and isinstance(value.type, ir.RankedTensorType)
    return float_range(view.yielded[ir.OpResult(value).result_number], depth) if view and is_computed else None


def _where(condition: ir.Value, value: ir.Value, depth: int) -> FloatRange | None:
    """The range of a value where a condition holds."""
    known = float_range(value, depth)
    bound = _bound(_source(condition), _source(value), depth)
    return known if bound is None else bound if known is None else bound & known


def _bound(condition: ir.Value, value: ir.Value, depth: int) -> FloatRange | None:
    """What a condition says of a value; None if nothing. Both are where they are computed."""
    op = defining_op(condition)
    if op is None or depth == 0:
        return None
    if op.name == "arith.andi":
        both = [_bound(_source(operand), value, depth - 1) for operand in op.operands]
        known = [bound for bound in both if bound is not None]
        return known[0] if len(known) == 1 else known[0] & known[1] if known else None
    if op.name != "arith.cmpf":
        return None
    predicate = arith.CmpFPredicate(ir.IntegerAttr(op.attributes["predicate"]).value)
    left, right = map(_source, op.operands)
    at_most, at_least = predicate in _AT_MOST, predicate in _AT_LEAST
    if right == value and left != value:
        left, right, at_most, at_least = right, left, at_least, at_most
    limit = float_range(right, depth - 1)
    if left != value or limit is None or not (at_most or at_least):
        return None
    return FloatRange(limit.least if at_least else -math.inf, limit.most if at_most else math.inf)


def _source(value: ir.Value) -> ir.Value:
    """What computes a value, through elementwise ops that read it where it is written."""
    while True:
        view, number = _read_by(value)
        if view is not None and _is_in_place(view, number):
            value = view.operands[number]
        maker = structured(op) if (op := defining_op(value)) is not None else None
        if maker is None or not maker.is_elementwise or not isinstance(value.type, ir.RankedTensorType):
            return value
        output = ir.OpResult(value).result_number
        if not _is_in_place(maker, maker.inputs + output):
            return value
        value = maker.yielded[output]


def _read_by(value: ir.Value) -> tuple[LinalgOp | None, int]:
    """The op that an element is read by, as an argument of its body, and its number there."""
    if not isinstance(value.owner, ir.Block) or isinstance(value.type, ir.RankedTensorType):
        return None, 0
    view = structured(value.owner.owner.operation)
    number = ir.BlockArgument(value).arg_number
    return (view, number) if view is not None and number < view.inputs else (None, 0)


def _is_in_place(view: LinalgOp, number: int) -> bool:
    """Whether an operand's element lies where the loops are; a dim of size 1 has one place alone."""
    results, sizes = view.maps[number].results, view.sizes
    return len(results) == view.loops and all(
        expression == ir.AffineDimExpr.get(dim) or (sizes[dim] == 1 and expression == ir.AffineConstantExpr.get(0))
        for dim, expression in enumerate(results)
    )


def _of_constant(constant: ir.Operation) -> FloatRange | None:
    attribute = constant.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    if not isinstance(attribute, ir.FloatAttr) or math.isnan(attribute.value):
        return None
    return FloatRange(attribute.value, attribute.value)


def _rounded(name: str, end: float) -> float:
    return end if math.isinf(end) else float(_ROUNDINGS[name](end))
