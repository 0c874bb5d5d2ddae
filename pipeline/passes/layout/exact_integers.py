"""Integers in expressions of elements that are known to be small: casts that change nothing, differences as floats."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.element_range import ElementRange, range_of, range_of_op, range_of_type
from pipeline.mlir import arith, ir
from pipeline.passes.layout.dequantization import Compute, Expression, Read, Source, build

#: Integers up to here are exact as floats.
_EXACT = 2**24


def without_casts(expression: Expression, sources: Sequence[Source]) -> Expression:
    """An expression without truncations of integers that fit, where what follows extends them again."""
    if isinstance(expression, Read):
        return expression
    operands = tuple(without_casts(operand, sources) for operand in expression.operands)
    inner = operands[0] if operands else None
    if isinstance(inner, Compute) and inner.op.name == "arith.trunci" and _fits(inner, sources):
        (wide,) = inner.operands
        if expression.op.name == "arith.sitofp":
            return Compute(expression.op, (wide,))
        if expression.op.name == "arith.extsi" and _type(wide, sources) == expression.op.results[0].type:
            return wide
    return Compute(expression.op, operands)


def build_exact(expression: Expression, sources: Sequence[Source], elements: Sequence[ir.Value]) -> ir.Value:
    """Builds an expression with float(q - zero) as float(q) - float(zero), which are the same for small integers.

    What comes from q alone is then the same for all zero points.
    """
    if isinstance(expression, Compute) and expression.op.name == "arith.sitofp":
        kind = expression.op.results[0].type
        if isinstance(kind, ir.F32Type) and _is_exact(expression.operands[0], sources):
            return _as_float(expression.operands[0], sources, elements, kind)
    if isinstance(expression, Read) or not isinstance(expression.op.results[0].type, ir.FloatType):
        return build(expression, elements)
    operands = [build_exact(operand, sources, elements) for operand in expression.operands]
    copy = expression.op.clone()
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    return copy.results[0]


def _as_float(integer: Expression, sources: Sequence[Source], elements: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """A small integer as a float: differences are those of floats."""
    if isinstance(integer, Compute) and integer.op.name == "arith.subi":
        left, right = (_as_float(operand, sources, elements, kind) for operand in integer.operands)
        return arith.SubFOp(left, right).result
    return arith.SIToFPOp(kind, build(integer, elements)).result


def _is_exact(integer: Expression, sources: Sequence[Source]) -> bool:
    """Whether an integer is a difference that does not wrap, of integers that are exact as floats."""
    if not isinstance(integer, Compute) or integer.op.name != "arith.subi":
        return False
    left, right = (_range(operand, sources) for operand in integer.operands)
    whole = range_of_type(integer.op.results[0].type)
    difference = left.minus(right)
    exact = all(number.lies_in(-_EXACT, _EXACT) for number in (left, right, difference))
    return exact and difference.lies_in(whole.least, whole.most)


def _fits(truncation: Compute, sources: Sequence[Source]) -> bool:
    """Whether a truncation leaves an integer with a sign as it is."""
    whole = range_of_type(truncation.op.results[0].type)
    return _range(truncation.operands[0], sources).lies_in(whole.least, whole.most)


def _range(expression: Expression, sources: Sequence[Source]) -> ElementRange:
    if isinstance(expression, Read):
        return range_of(sources[expression.source].value)
    return range_of_op(expression.op, lambda number: _range(expression.operands[number], sources))


def _type(expression: Expression, sources: Sequence[Source]) -> ir.Type:
    if isinstance(expression, Read):
        return ir.RankedTensorType(sources[expression.source].value.type).element_type
    return expression.op.results[0].type
