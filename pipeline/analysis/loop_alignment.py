"""Alignment: which loops of several linalg ops run over the same thing, and so can be one loop around all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.analysis.disjoint_sets import DisjointSets
from pipeline.analysis.reduction_combiners import fold_ops
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir

#: A loop of one of the ops: (number of the op, number of the loop).
Loop = tuple[int, int]


@dataclass(frozen=True)
class Alignment:
    """The loops of ops that hand values to each other, in program order.

    Two loops are the same if one op writes a dim of a value along the first, and another reads it along the second.

    Attributes:
        ops: the ops.
        classes: the loops that are the same, as (op, loop) pairs.
        common: for each loop of more than one iteration that all ops have once, in parallel, its number in each op.
            One loop around all ops can take its place: with such loops alone, no element is computed twice, and of a
            value that is handed on only what one iteration needs has to exist at a time.
        accumulated: likewise for loops that are parallel in some ops, and reductions of others whose results no op
            reads. One loop around all ops can take its place, too: what they fold up to now is carried on.
    """

    ops: tuple[LinalgOp, ...]
    classes: tuple[frozenset[Loop], ...]
    common: tuple[tuple[int, ...], ...]
    accumulated: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def inner(self) -> dict[ir.Value, int]:
        """The values that one of the ops reads and another one computes, each with the number of the latter."""
        return _handed_on(self.ops)

    def in_step(self, one: int, other: int) -> bool:
        """Whether loops that can be around all ops are the same loops of two ops, given by number.

        Then a tensor that both go over in the order of their loops is read and written by both in the same tiles.
        """
        return all(loops[one] == loops[other] for loops in (*self.common, *self.accumulated))

    def sizes(self, value: ir.Value, around_all: Sequence[tuple[int, ...]] | None = None) -> tuple[int | None, ...]:
        """The size of each dim of a value that one of the ops computes, for one iteration of the loops around all ops.

        These are the common ones, if none are given.
        """
        number = next(number for number, candidate in enumerate(self.ops) if value in list(candidate.op.results))
        view = self.ops[number]
        around = {loops[number] for loops in (self.common if around_all is None else around_all)}
        kind = ir.ShapedType(value.type)
        sizes: list[int | None] = []
        for dim, expression in enumerate(_result_map(view, value).results):
            if isinstance(expression, ir.AffineDimExpr) and ir.AffineDimExpr(expression).position in around:
                sizes.append(1)
            else:
                sizes.append(None if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim))
        return tuple(sizes)


def align(ops: Sequence[LinalgOp]) -> Alignment:
    """The alignment of some ops, given in program order."""
    union = DisjointSets[Loop]()
    blocked: set[Loop] = set()
    for number, view in enumerate(ops):
        for loop in range(view.loops):
            union.find((number, loop))
        for indexing in view.maps:
            blocked |= {(number, loop) for loop in _loops_in_arithmetic(indexing)}
    handed_on = _handed_on(ops)
    for number, view in enumerate(ops):
        for operand, indexing in zip(view.op.operands, view.maps, strict=True):
            if operand not in handed_on:
                continue
            producer = handed_on[operand]
            for wrote, reads in zip(_result_map(ops[producer], operand).results, indexing.results, strict=True):
                written, read = _position(wrote), _position(reads)
                if written is not None and read is not None:
                    union.join((producer, written), (number, read))
                elif written is not None:
                    blocked.add((producer, written))
    classes = tuple(frozenset(loops) for loops in union.classes())
    shared = [loops for loops in classes if _is_shared(loops, ops) and not loops & blocked]
    folding = {number for number, view in enumerate(ops) if number not in handed_on.values() and _folds(view)}
    common = tuple(_numbers(loops) for loops in shared if not _reducing(loops, ops))
    accumulated = tuple(
        _numbers(loops) for loops in shared if (reducing := _reducing(loops, ops)) and reducing <= folding
    )
    return Alignment(tuple(ops), classes, common, accumulated if common else ())


def _handed_on(ops: Sequence[LinalgOp]) -> dict[ir.Value, int]:
    made = {result: number for number, view in enumerate(ops) for result in view.op.results}
    return {operand: made[operand] for view in ops for operand in view.op.operands if operand in made}


def _result_map(view: LinalgOp, value: ir.Value) -> ir.AffineMap:
    return view.maps[view.inputs + ir.OpResult(value).result_number]


def _is_shared(loops: frozenset[Loop], ops: Sequence[LinalgOp]) -> bool:
    """Whether all ops have a loop once, and it has more than one iteration."""
    return sorted(number for number, _ in loops) == list(range(len(ops))) and ops[0].sizes[min(loops)[1]] != 1


def _reducing(loops: frozenset[Loop], ops: Sequence[LinalgOp]) -> set[int]:
    """The numbers of the ops of which a loop is a reduction."""
    return {number for number, loop in loops if ops[number].reductions[loop]}


def _numbers(loops: frozenset[Loop]) -> tuple[int, ...]:
    """The number of a loop in each op."""
    return tuple(loop for _, loop in sorted(loops))


def _folds(view: LinalgOp) -> bool:
    """Whether all that an op does along its reductions is to fold values into its results."""
    return view.op.name == "linalg.generic" and any(view.reductions) and fold_ops(view.op) is not None


def _position(expression: ir.AffineExpr) -> int | None:
    return ir.AffineDimExpr(expression).position if isinstance(expression, ir.AffineDimExpr) else None


def _loops_in_arithmetic(indexing: ir.AffineMap) -> set[int]:
    """The loops that an index is computed from, other than by being it."""
    found: set[int] = set()

    def visit(expression: ir.AffineExpr) -> None:
        if isinstance(expression, ir.AffineDimExpr):
            found.add(ir.AffineDimExpr(expression).position)
        elif not isinstance(expression, (ir.AffineConstantExpr, ir.AffineSymbolExpr)):
            binary = ir.AffineBinaryExpr(expression)
            visit(binary.lhs)
            visit(binary.rhs)

    for expression in indexing.results:
        if not isinstance(expression, ir.AffineDimExpr):
            visit(expression)
    return found
