"""A softmax as the reductions and elementwise ops that it is, in the form in which torch-mlir has it."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.ir.constants import zero
from pipeline.ir.rewriting import build_generic, empty_like, iterator_types, sizes_of
from pipeline.mlir import arith, ir, linalg, math, tensor

_Binary = Callable[[ir.Value, ir.Value], ir.Value]


def build_softmax(x: ir.Value, dim: int) -> ir.Value:
    """exp(x - max(x)) / sum(exp(x - max(x))) along a dim of a tensor, at the insertion point."""
    lines = _Lines(x, dim)
    lowest = arith.ConstantOp(lines.element, ir.FloatAttr.get(lines.element, -float("inf"))).result
    greatest = lines.reduced(x, lowest, lambda a, b: arith.MaximumFOp(a, b).result)
    shifted = lines.pointwise([x, greatest], lambda a, b: arith.SubFOp(a, b).result)
    powers = lines.pointwise([shifted], lambda a, _: math.ExpOp(a).result)
    total = lines.reduced(powers, zero(lines.element), lambda a, b: arith.AddFOp(a, b).result)
    return lines.pointwise([powers, total], lambda a, b: arith.DivFOp(a, b).result)


class _Lines:
    """Ops on a tensor and on what it has along all dims but one."""

    def __init__(self, x: ir.Value, dim: int):
        kind = ir.RankedTensorType(x.type)
        self.element = kind.element_type
        self._x, self._dim, self._rank = x, dim, kind.rank
        self._all = ir.AffineMap.get_identity(kind.rank)
        others = [expression for place, expression in enumerate(self._all.results) if place != dim]
        self._others = ir.AffineMap.get(kind.rank, 0, others)

    def reduced(self, source: ir.Value, start: ir.Value, combine: _Binary) -> ir.Value:
        """The elements along the dim folded into one."""
        sizes = [size for place, size in enumerate(sizes_of(source)) if place != self._dim]
        out = linalg.fill(start, outs=[tensor.EmptyOp(sizes, self.element).result])
        iterators = iterator_types(place == self._dim for place in range(self._rank))
        maps = [self._all, self._others]
        return build_generic([source], [out], maps, iterators, lambda e: [combine(e[0], e[1])]).results[0]

    def pointwise(self, sources: list[ir.Value], combine: _Binary) -> ir.Value:
        """An elementwise op on a tensor, and on what there is of each line if that comes, too."""
        out = empty_like(self._x, self.element)
        maps = [self._all, self._others][: len(sources)]
        iterators = iterator_types([False] * self._rank)
        return build_generic(sources, [out], [*maps, self._all], iterators, lambda e: [combine(e[0], e[1])]).results[0]
