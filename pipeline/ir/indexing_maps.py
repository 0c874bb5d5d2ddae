"""Indexing maps, from the loops of a linalg op to the indices of an operand: what they say of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.mlir import ir


def coefficient(expression: ir.AffineExpr, dim: int) -> int | None:
    """How far an index moves when loop `dim` moves by one; None if that is not the same everywhere."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(ir.AffineDimExpr(expression).position == dim)
    if isinstance(expression, (ir.AffineConstantExpr, ir.AffineSymbolExpr)):
        return 0
    binary = ir.AffineBinaryExpr(expression)
    left, right = coefficient(binary.lhs, dim), coefficient(binary.rhs, dim)
    if left is None or right is None:
        return None
    if isinstance(expression, ir.AffineAddExpr):
        return left + right
    if isinstance(expression, ir.AffineMulExpr) and isinstance(binary.rhs, ir.AffineConstantExpr):
        return left * ir.AffineConstantExpr(binary.rhs).value
    return 0 if left == right == 0 else None


def moves(indexing: ir.AffineMap, dim: int) -> str:
    """How an operand moves with loop `dim`.

    `fixed`; `unit`, along its innermost dimension, one by one; `strided`, along its innermost dimension in constant
    steps; `blocked`, one by one within blocks of `block_of`; or `other`.
    """
    if block_of(indexing, dim) is not None:
        return "blocked"
    steps = [coefficient(expression, dim) for expression in indexing.results]
    if all(step == 0 for step in steps):
        return "fixed"
    if steps[-1] is None or any(step != 0 for step in steps[:-1]):
        return "other"
    return "unit" if steps[-1] == 1 else "strided"


def block_of(indexing: ir.AffineMap, dim: int) -> int | None:
    """The size of the blocks that an operand moves in with loop `dim`: [.., dim floordiv block, .., dim mod block]."""
    if len(indexing.results) < 2 or not isinstance(indexing.results[-1], ir.AffineModExpr):
        return None
    remainder = ir.AffineBinaryExpr(indexing.results[-1])
    if remainder.lhs != ir.AffineDimExpr.get(dim) or not isinstance(remainder.rhs, ir.AffineConstantExpr):
        return None
    quotient = ir.AffineExpr.get_floor_div(remainder.lhs, remainder.rhs)
    rest = [expression for expression in indexing.results[:-1] if expression != quotient]
    if len(rest) != len(indexing.results) - 2 or any(coefficient(expression, dim) != 0 for expression in rest):
        return None
    return ir.AffineConstantExpr(remainder.rhs).value


def loop_of(expression: ir.AffineExpr) -> int | None:
    """The number of the loop that an index is; None if it is computed."""
    return expression.position if isinstance(expression, ir.AffineDimExpr) else None


def loops_in(indexing: ir.AffineMap, last: bool = False) -> set[int]:
    """The loops that an operand moves with; along its last dimension only if `last`."""
    expressions = list(indexing.results)[-1:] if last else list(indexing.results)
    return {loop for loop in range(indexing.n_dims) if any(coefficient(e, loop) != 0 for e in expressions)}


def is_permutation(indexing: ir.AffineMap) -> bool:
    """Whether the indices are the loops, in some order."""
    positions = [
        ir.AffineDimExpr(expression).position
        for expression in indexing.results
        if isinstance(expression, ir.AffineDimExpr)
    ]
    return len(positions) == len(indexing.results) and sorted(positions) == list(range(indexing.n_dims))


def is_identity(indexing: ir.AffineMap) -> bool:
    """Whether the indices are the loops, in their order."""
    return indexing == ir.AffineMap.get_identity(indexing.n_dims)


def bounded_loops(maps: Sequence[ir.AffineMap]) -> set[int]:
    """The loops that run along a dimension of an operand with one of these maps, and are bounded by it."""
    return {
        ir.AffineDimExpr(expression).position
        for indexing in maps
        for expression in indexing.results
        if isinstance(expression, ir.AffineDimExpr)
    }
