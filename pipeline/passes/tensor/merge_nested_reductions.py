"""merge-nested-reductions: a reduction of a reduction is one over the dims of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.reduction_combiners import FOLDS, fold_ops, neutral
from pipeline.ir.indexing_maps import is_permutation, loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.matchers import is_zero
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, iterator_types, replace
from pipeline.mlir import defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern

#: Sums in these are rounded after each element alone where they are in a narrower type, so they stay as they are.
_ROUNDED = ("arith.addf", "arith.mulf")


@dataclass(frozen=True)
class MergeNestedReductions(PatternPass):
    """Merge reductions with one combiner, as largest elements along several dims come, one dim at a time.

    Where nothing else reads the inner one, which starts from the neutral element, and both run along the innermost dims
    of what it reads: rows that follow each other in memory are one row then. Sums in 16 bits stay as they are.
    """

    name: ClassVar[str] = "merge-nested-reductions"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def merge(self, outer_op: ir.Operation) -> bool:
        """max(max(x, -1), -1)   ->   max(x, (-2, -1))"""
        outer, inner = _plain_fold(outer_op), structured(defining_op(outer_op.operands[0]))
        if outer is None or inner is None or not _folds_alike(inner, outer):
            return False
        loops = _loops_of_inner(inner, outer)
        summed = {*inner.summed, *(loops[loop] for loop in outer.summed)}
        if not _are_innermost(inner, summed):
            return False
        self.passed(outer_op, f"merged with the reduction before: {len(summed)} dims")
        with before(outer_op):
            results = [ir.AffineDimExpr.get(loops[loop]) for loop in outer.loops_read(1)]
            maps = [*inner.maps[: inner.inputs], ir.AffineMap.get(inner.loops, 0, results)]
            iterators = iterator_types(loop in summed for loop in range(inner.loops))
            inputs = list(inner.operands)[: inner.inputs]
            merged = build_generic(inputs, [outer_op.operands[1]], maps, iterators, lambda e: copy_body(inner, e))
        copy_attributes(outer_op, merged, "pipeline.")
        replace(outer_op, list(merged.results))
        inner.op.erase()
        return True


def _plain_fold(op: ir.Operation) -> LinalgOp | None:
    """A reduction that folds the elements of one tensor, as they are, into another one; None of any other op."""
    view = structured(op)
    if view is None or len(view.maps) != 2 or view.inputs != 1 or not view.summed or len(view.body_ops) != 1:
        return None
    if not is_permutation(view.maps[0]) or fold_ops(op) is None or len(view.loops_read(1)) != len(view.maps[1].results):
        return None
    return view if set(view.body_ops[0].operands) == set(view.body.arguments) else None


def _folds_alike(inner: LinalgOp, outer: LinalgOp) -> bool:
    """Whether a reduction that another one alone reads folds by the same op, from its neutral element on."""
    if inner.op.name != "linalg.generic" or len(inner.outputs) != 1 or not inner.summed:
        return False
    if inner.op.block != outer.op.block or len(list(inner.op.results[0].uses)) != 1:
        return False
    folds = fold_ops(inner.op)
    if folds is None or folds != fold_ops(outer.op) or folds[0] not in FOLDS:
        return False
    element = ir.RankedTensorType(inner.op.results[0].type).element_type
    if folds[0] in _ROUNDED and not isinstance(element, (ir.F32Type, ir.F64Type)):
        return False
    written = inner.loops_read(inner.inputs)
    if len(written) != len(inner.maps[inner.inputs].results) or len({*written, *inner.summed}) != inner.loops:
        return False
    return _starts_neutral(inner, folds[0])


def _starts_neutral(view: LinalgOp, fold: str) -> bool:
    """Whether a reduction starts from what changes nothing."""
    init = defining_op(view.operands[view.inputs])
    number = defining_op(init.operands[0]) if init is not None and init.name == "linalg.fill" else None
    if number is None or number.name != "arith.constant":
        return False
    with view.op.location:
        start = neutral(fold, number.results[0].type)
    return number.attributes["value"] == start or (fold == "arith.addf" and is_zero(view.operands[view.inputs]))


def _loops_of_inner(inner: LinalgOp, outer: LinalgOp) -> dict[int, int]:
    """For each loop of the outer reduction the one of the inner reduction that counts the same."""
    written = inner.loops_read(inner.inputs)
    return {loop: written[dim] for dim, loop in enumerate(outer.loops_read(0))}


def _are_innermost(inner: LinalgOp, summed: set[int]) -> bool:
    """Whether some loops are the innermost dims of the largest operand, in their order."""
    largest = max(range(inner.inputs), key=lambda operand: len(inner.maps[operand].results))
    read = [loop_of(index) for index in inner.maps[largest].results]
    return set(read[len(read) - len(summed) :]) == summed
