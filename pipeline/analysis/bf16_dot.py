"""Dot products of bf16: which sums of products AVX512_BF16 computes two at a time."""

from __future__ import annotations

from pipeline.mlir import defining_op, ir, terminator

#: What a vector of the instruction has: f32 sums, with a pair of bf16 factors for each.
LANES = 16


def multiplies_bf16(body: ir.Block) -> bool:
    """Whether a body of two bf16 and an f32 yields out + extf(a) * extf(b), in any order."""
    arguments = list(body.arguments)
    kinds = [str(argument.type) for argument in arguments]
    if kinds != ["bf16", "bf16", "f32"]:
        return False
    addition = defining_op(terminator(body).operands[0])
    if addition is None or addition.name != "arith.addf" or arguments[2] not in list(addition.operands):
        return False
    sides = [value for value in addition.operands if value != arguments[2]]
    product = defining_op(sides[0]) if len(sides) == 1 else None
    if product is None or product.name != "arith.mulf":
        return False
    return {_before_extension(factor) for factor in product.operands} == set(arguments[:2])


def _before_extension(value: ir.Value) -> ir.Value:
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == "arith.extf" else value


def in_pairs(column: ir.AffineExpr, row: ir.AffineExpr) -> list[ir.AffineExpr]:
    """The indices [row / 2, column, row % 2], the last two as one: pairs of rows side by side for each column."""
    place = ir.AffineExpr.get_add(ir.AffineExpr.get_mul(column, 2), ir.AffineExpr.get_mod(row, 2))
    return [ir.AffineExpr.get_floor_div(row, 2), place]


def lies_in_pairs(indexing: ir.AffineMap, column: int, row: int) -> bool:
    """Whether an operand has pairs of the elements along loop `row` side by side, for each iteration of `column`."""
    half, place = in_pairs(ir.AffineDimExpr.get(column), ir.AffineDimExpr.get(row))
    results = list(indexing.results)
    if len(results) < 2 or results[-1] != place or half not in results[:-1]:
        return False
    others = [expression for expression in results[:-1] if expression != half]
    return not any(expression.compose(_without(indexing.n_dims, column, row)) != expression for expression in others)


def _without(count: int, *loops: int) -> ir.AffineMap:
    """A map that puts 0 for some loops: an expression that it changes depends on one of them."""
    zero = ir.AffineConstantExpr.get(0)
    return ir.AffineMap.get(count, 0, [zero if d in loops else ir.AffineDimExpr.get(d) for d in range(count)])
