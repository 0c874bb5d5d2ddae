"""merge-parallel-convs: convolutions of the same data whose results are added become one."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.channel_vectors import Vector
from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.rewriting import before, is_unused
from pipeline.mlir import defining_op, ir
from pipeline.passes.weight_folding.addition_tree import read_sums, terms
from pipeline.passes.weight_folding.affine_rewriting import drop
from pipeline.passes.weight_folding.conv_window import offsets
from pipeline.passes.weight_folding.residual_terms import Branch, Diagonal, add, read_branch, read_diagonal
from pipeline.passes.weight_folding.scale_absorption import describe
from pipeline.passes.weight_folding.scale_propagation import NotScalableError
from pipeline.passes.weight_folding.sum_isolation import isolate_sums
from pipeline.passes.weight_folding.weight_builder import WeightSide, fold_into
from pipeline.passes.weight_folding.weight_sums import plus_diagonal, plus_weight
from pipeline.passmanager.base import Pass

#: A term of a sum: an op that adds, and the number of its operand.
Term = tuple[ir.Operation, int]


@dataclass
class _Merge:
    """What goes into the weight of `into`, and the sum of all shifts."""

    into: Branch
    shift: Vector | None
    terms: list[Term]
    inner: list[tuple[Branch, list[int]]]
    diagonals: list[Diagonal]

    def take(self, term: Term, shift: Vector | None) -> bool:
        """Adds a term's shift; False if the shifts run along different dims."""
        total = add(self.shift, shift)
        if total is None and shift is not None:
            return False
        self.shift = total
        self.terms.append(term)
        return True


@dataclass(frozen=True)
class MergeParallelConvs(Pass):
    """Merge convolutions and matrix products of the same data whose results are added, such as RepVGG's branches.

    conv(x, v) + conv(x, w) + x * s  ->  conv(x, v + w + diag(s))

    The weight of one takes in those whose windows lie in its own: same strides, groups and channels, and taps at the
    same places of the data, so that a 1x1 is padded with zeros to a 3x3. The data itself, scaled and shifted by
    channel (a norm on its own) or as it is, is one tap with a diagonal of channels. Only f32 and f64: in narrower types
    the sum of weights would be rounded once more.
    """

    name: ClassVar[str] = "merge-parallel-convs"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Merges the branches of each sum of one function."""
        weights = ConstExprs(op)
        isolate_sums(op, weights)
        for last in read_sums(op, weights):
            self._merge(last, weights)

    def _merge(self, last: ir.Operation, weights: ConstExprs) -> None:
        """Merges what it can of the sum that ends with `last`, the widest windows first."""
        left = terms(last, weights)
        read = [(term, read_branch(term[0].operands[term[1]], weights)) for term in left]
        branches = [(term, branch) for term, branch in read if branch is not None and _op(branch).block == last.block]
        branches.sort(key=lambda pair: -math.prod(pair[1].window.weight_shape))
        merges: list[_Merge] = []
        for term, branch in branches:
            if not self._take(term, branch, merges, last):
                merges.append(_Merge(branch, branch.shift, [term], [], []))
        for term in left:
            if not any(term in merge.terms for merge in merges):
                _take_diagonal(term, merges, weights)
        done = [merge for merge in merges if len(merge.terms) > 1]
        for merge in done:
            self.passed(last, f"merged {_report(merge)} into one {describe(_op(merge.into))}")
        if done:
            _rewrite(last, left, done, weights)

    def _take(self, term: Term, branch: Branch, merges: list[_Merge], last: ir.Operation) -> bool:
        """Whether one of the merges takes the branch in."""
        for merge in merges:
            if merge.into.window.value != branch.window.value:
                continue
            try:
                where = _fit(branch, merge.into)
            except NotScalableError as refusal:
                self.missed(last, f"{describe(_op(branch))} and {describe(_op(merge.into))} not merged: {refusal}")
                continue
            if merge.take(term, branch.shift):
                merge.inner.append((branch, where))
                return True
        return False


def _op(branch: Branch) -> ir.Operation:
    return branch.window.contraction.view.op


def _fit(inner: Branch, outer: Branch) -> list[int]:
    """The place of the weight of `inner` in that of `outer`; raises `NotScalableError` if there is none."""
    if inner.form != outer.form:
        raise NotScalableError("they are of different kinds")
    where = offsets(inner.window, outer.window)
    for branch in (inner, outer):
        if not _is_wide(branch):
            raise NotScalableError("in 16 bits the sum of their weights would be rounded once more")
    return where


def _is_wide(branch: Branch) -> bool:
    """Whether data, weight and result are in f32 or f64."""
    types = {ir.RankedTensorType(value.type).element_type for value in (*_op(branch).operands, _op(branch).results[0])}
    return len(types) == 1 and isinstance(types.pop(), (ir.F32Type, ir.F64Type))


def _take_diagonal(term: Term, merges: list[_Merge], weights: ConstExprs) -> None:
    """Has the first merge that can take in a term that is the data itself."""
    for merge in merges:
        if not _is_wide(merge.into):
            continue
        diagonal = read_diagonal(term[0].operands[term[1]], merge.into, weights)
        if diagonal is not None and merge.take(term, diagonal.shift):
            merge.diagonals.append(diagonal)
            return


def _report(merge: _Merge) -> str:
    names = Counter([describe(_op(branch)) for branch in (merge.into, *(branch for branch, _ in merge.inner))])
    words = [f"{count} {name}" for name, count in names.items()]
    return " and ".join([*words, *(["their data"] if merge.diagonals else [])])


def _rewrite(last: ir.Operation, left: list[Term], merges: list[_Merge], weights: ConstExprs) -> None:
    """Builds the weights, then the sum of the terms that are left, and erases what nothing reads any more."""
    gone = [term for merge in merges for term in merge.terms[1:]]
    for merge in merges:
        _widen(merge, weights)
    values = [op.operands[number] for op, number in left if (op, number) not in gone]
    with before(last):
        total = values[0]
        for value in values[1:]:
            again = last.clone()
            again.operands[0], again.operands[1] = total, value
            total = again.results[0]
    last.results[0].replace_all_uses_with(total)
    _erase_unused(last, weights)


def _widen(merge: _Merge, weights: ConstExprs) -> None:
    """Gives the contraction the weight of all branches, and adds their shifts behind it."""
    contraction = merge.into.window.contraction
    op = contraction.view.op
    with before(op):
        side = WeightSide(weights, op)
        weight = op.operands[contraction.weight]
        for branch, where in merge.inner:
            weight = plus_weight(side, weight, _op(branch).operands[branch.window.contraction.weight], where)
        for diagonal in merge.diagonals:
            weight = plus_diagonal(side, weight, diagonal)
        op.operands[contraction.weight] = weight
        fold_into(contraction, None, merge.shift, side)
    for step in merge.into.steps:
        drop(step)


def _erase_unused(last: ir.Operation, weights: ConstExprs) -> None:
    """Erases `last` and the ops on data that only it reads, consumers first."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> None:
        for producer in map(defining_op, op.operands):
            if producer is None or producer in found or not producer.name.startswith(("linalg.", "tensor.")):
                continue
            if not any(result in weights for result in producer.results):
                visit(producer)
        found.append(op)

    visit(last)
    for op in reversed(found):
        if all(map(is_unused, op.results)):
            op.erase()
