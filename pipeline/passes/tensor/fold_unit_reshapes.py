"""fold-unit-reshapes: linalg.generics read through reshapes that only add or take away dims of size 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.indexing_maps import bounded_loops
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import RESHAPES, reassociation
from pipeline.ir.rewriting import read_by
from pipeline.mlir import defining_op, ir
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FoldUnitReshapes(PatternPass):
    """Let a linalg.generic read what a reshape reads, if that only adds or drops dims of size 1.

    expand_shape [[0, 1]] : 64 -> 64x1, read at (d0, d1)  =>  64, read at (d0)
    collapse_shape [[0, 1]] : 1x64 -> 64, read at (d0)    =>  1x64, read at (0, d0)

    Such a reshape stands between a reduction and what it is broadcast to (`keepdim`), and hides that they have rows in
    common.
    """

    name: ClassVar[str] = "fold-unit-reshapes"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def fold(self, generic: ir.Operation) -> bool:
        """generic(reshape(x))   ->   generic(x), with another indexing map"""
        folds = 0
        while _fold_one(generic):
            folds += 1
        return folds > 0


def _fold_one(generic: ir.Operation) -> bool:
    """Folds the first reshape of those that an op reads; returns whether there was one."""
    view = structured(generic)
    assert view is not None
    for number in range(view.inputs):
        reshape = defining_op(generic.operands[number])
        if reshape is None or reshape.name not in RESHAPES:
            continue
        through = _read_through(view.maps[number], reshape)
        if through is None:
            continue
        maps = [*view.maps[:number], through, *view.maps[number + 1 :]]
        if len(bounded_loops(maps)) < view.loops:
            continue
        read_by(generic, number, reshape.operands[0], through)
        if not list(reshape.results[0].uses):
            reshape.erase()
        return True
    return False


def _read_through(indexing: ir.AffineMap, reshape: ir.Operation) -> ir.AffineMap | None:
    """The map that reads the reshape's operand as `indexing` reads its result; None if more than unit dims differ."""
    source = ir.RankedTensorType(reshape.operands[0].type)
    result = ir.RankedTensorType(reshape.results[0].type)
    expands = reshape.name == "tensor.expand_shape"
    many = result if expands else source
    zero = ir.AffineConstantExpr.get(0)
    read: list[ir.AffineExpr] = []
    if not expands and not result.rank:  # a single number: there are no groups
        read = [zero] * source.rank
    for number, group in enumerate(reassociation(reshape)):
        large = [dim for dim in group if many.is_dynamic_dim(dim) or many.get_dim_size(dim) != 1]
        if len(large) > 1:
            return None
        if expands:
            read.append(indexing.results[large[0]] if large else zero)
        else:
            read += [indexing.results[number] if dim in large else zero for dim in group]
    if not expands and not result.rank:
        read = [zero] * source.rank
    return ir.AffineMap.get(indexing.n_dims, 0, read)
