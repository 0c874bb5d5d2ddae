"""Sums of data in the bodies of larger ops: where branches meet in them, they become ops of their own.

relu((a * s + t) + b)   ->   relu(sum), where sum = (a * s + t) + b
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.product_body import arguments_behind
from pipeline.analysis.scale_shift import Elementwise, own_affine, read_elementwise, read_segments
from pipeline.ir.body_splitting import BodyPart, split_body
from pipeline.ir.indexing_maps import is_identity
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.mlir import defining_op, has_one_use, ir, walk
from pipeline.passes.weight_folding.addition_tree import is_sum
from pipeline.passes.weight_folding.residual_terms import read_branch


def isolate_sums(function: ir.Operation, weights: ConstExprs) -> None:
    """Takes sums out of bodies, those with two terms that come from the same data, one of them by a contraction."""
    for generic in walk(function, "linalg.generic"):
        found = _sum_in(generic, weights)
        if found is not None and found.has_branches(weights):
            found.isolate(weights)


@dataclass(frozen=True)
class _Sum:
    """A sum of several terms in a body that does more.

    Attributes:
        view: the op.
        terms: the values of the body that are added up; with those that are an operand, scaled and shifted perhaps.
    """

    view: LinalgOp
    terms: dict[ir.Value, Elementwise | None]

    def has_branches(self, weights: ConstExprs) -> bool:
        """Whether two of the terms come from the same data, one of them by a convolution or product."""
        contracted: Counter[ir.Value] = Counter()
        others: set[ir.Value] = set()
        for term in filter(None, self.terms.values()):
            affine = own_affine(term)
            branch = read_branch(term.data, weights, affine) if affine is not None else None
            if branch is not None:
                contracted[branch.window.value] += 1
            else:
                others.update(_behind(term.data, weights))
        return any(count > 1 or value in others for value, count in contracted.items())

    def isolate(self, weights: ConstExprs) -> None:
        """Has ops of their own compute the terms and each addition."""
        parts = [self._part(value) for value in self.terms if defining_op(value) is not None]
        op = split_body(self.view, parts) if parts else self.view.op
        while not is_sum(op, weights):
            view = structured(op)
            pair = next(_pairs(view, weights), None) if view is not None else None
            if view is None or pair is None:
                return
            op = split_body(view, [pair])

    def _part(self, value: ir.Value) -> BodyPart:
        arguments = list(self.view.body.arguments)
        inputs = sorted(arguments.index(argument) for argument in arguments_behind(value) if argument in arguments)
        loops = {loop for number in inputs for loop in self.view.loops_read(number)}
        return BodyPart(value, tuple(inputs), tuple(ir.AffineExpr.get_dim(loop) for loop in sorted(loops)))


def _sum_in(generic: ir.Operation, weights: ConstExprs) -> _Sum | None:
    """The first sum of data in a body that is more than one addition; None if there is none that can be cut out."""
    view = structured(generic)
    if view is None or not view.is_elementwise or not is_identity(view.maps[-1]) or is_sum(generic, weights):
        return None
    names = {op.name for op in view.body_ops}
    if "arith.addf" not in names or "linalg.index" in names or any(len(op.regions) for op in view.body_ops):
        return None
    segments = {segment.end: segment for segment in read_segments(generic, weights) if segment.operand is not None}
    begun = {segment.start for segment in segments.values()}
    for number in _data(view, weights):
        argument = view.body.arguments[number]
        if argument not in begun:
            segments[argument] = Elementwise(view, argument, argument, ())
    additions = {op.results[0]: op for op in view.body_ops if _adds(op, segments)}
    inner = {operand for op in additions.values() for operand in op.operands if has_one_use(operand)}
    last = next((value for value in reversed(additions) if value not in inner), None)
    if last is None:
        return None
    terms = list(_terms(last, additions, last))
    found = {term: segments.get(term) for term in terms}
    plain = all(each is None or is_identity(view.maps[each.operand or 0]) for each in found.values())
    return _Sum(view, found) if plain and len(found) == len(terms) else None


def _data(view: LinalgOp, weights: ConstExprs) -> list[int]:
    """The inputs that are data."""
    return [number for number in range(view.inputs) if not weights.knows(view.op.operands[number])]


def _adds(op: ir.Operation, segments: dict[ir.Value, Elementwise]) -> bool:
    """Whether an op adds two values, and is no step of a segment."""
    inside = {result for segment in segments.values() for step in segment.ops() for result in step.results}
    return op.name == "arith.addf" and op.results[0] not in inside


def _terms(value: ir.Value, additions: dict[ir.Value, ir.Operation], last: ir.Value) -> Iterator[ir.Value]:
    if value not in additions or (value != last and len(list(value.uses)) > 1):
        yield value
        return
    for operand in additions[value].operands:
        yield from _terms(operand, additions, last)


def _pairs(view: LinalgOp, weights: ConstExprs) -> Iterator[BodyPart]:
    """The additions of two operands of data."""
    places = {view.body.arguments[number]: number for number in _data(view, weights)}
    indices = tuple(ir.AffineExpr.get_dim(loop) for loop in range(view.loops))
    for op in view.body_ops:
        numbers = tuple(places[operand] for operand in op.operands if operand in places)
        if op.name == "arith.addf" and len(numbers) == 2 and all(is_identity(view.maps[n]) for n in numbers):
            yield BodyPart(op.results[0], numbers, indices)


def _behind(value: ir.Value, weights: ConstExprs) -> Iterator[ir.Value]:
    """A value, and what it is by steps alone."""
    yield value
    while (elementwise := read_elementwise(defining_op(value), weights)) is not None:
        value = elementwise.data
        yield value
