"""fold-unit-reshapes: linalg.generics read through reshapes that only add or take away dims of size 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import TAPS
from pipeline.ir.indexing_maps import bounded_loops, loop_of, moves
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.reshapes import RESHAPES, reassociation
from pipeline.ir.rewriting import (
    before,
    build_generic,
    copy_attributes,
    copy_body,
    iterator_types,
    read_by,
    replace,
    sizes_of,
)
from pipeline.mlir import defining_op, ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class FoldUnitReshapes(PatternPass):
    """Let a linalg.generic read what a reshape reads, if that only adds or drops dims of size 1.

    expand_shape [[0, 1]] : 64 -> 64x1, read at (d0, d1)  =>  64, read at (d0)
    collapse_shape [[0, 1]] : 1x64 -> 64, read at (d0)    =>  1x64, read at (0, d0)

    Such a reshape stands between a reduction and what it is broadcast to (`keepdim`), and hides that they have rows in
    common. A reduction that writes such dims itself writes them to a reshape: behind what it runs along they would keep
    it from running in vectors. For the same reason an argument's reshape that drops them stays: 64x1 -> 64.
    """

    name: ClassVar[str] = "fold-unit-reshapes"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic")
    def shrink(self, generic: ir.Operation) -> bool:
        """generic : 5x7x1, written at (d0, d1, 0)   ->   expand_shape (generic : 5x7, written at (d0, d1))"""
        view = structured(generic)
        if view is None or not any(view.reductions) or len(generic.results) != 1:
            return False
        written = list(view.maps[-1].results)
        kept = len(written)
        while kept and isinstance(written[kept - 1], ir.AffineConstantExpr):
            kept -= 1
        if kept in (0, len(written)) or not _runs_along(view, loop_of(written[kept - 1])):
            return False
        _shrink(view, kept)
        return True

    @pattern("linalg.generic")
    def fold(self, generic: ir.Operation) -> bool:
        """generic(reshape(x))   ->   generic(x), with another indexing map"""
        folds = 0
        while _fold_one(generic):
            folds += 1
        return folds > 0


def _runs_along(view: LinalgOp, loop: int | None) -> bool:
    """Whether a loop runs along the innermost dim of an input."""
    return loop is not None and any(moves(indexing, loop) == "unit" for indexing in view.maps[: view.inputs])


def _shrink(view: LinalgOp, kept: int) -> None:
    """Has an op write the first dims of its result alone, and reshapes that for those that read it."""
    op, old = view.op, ir.RankedTensorType(view.op.results[0].type)
    groups = [*([dim] for dim in range(kept - 1)), list(range(kept - 1, old.rank))]
    maps = [*view.maps[:-1], ir.AffineMap.get(view.loops, 0, list(view.maps[-1].results)[:kept])]
    with before(op):
        sizes = sizes_of(view.operands[view.inputs])
        output = _init(view.operands[view.inputs], groups, sizes[:kept])
        inputs = list(view.operands)[: view.inputs]
        made = build_generic(
            inputs, [output], maps, iterator_types(view.reductions), lambda elements: copy_body(view, elements)
        )
        copy_attributes(op, made)
        dynamic = [size for size in sizes if not isinstance(size, int)]
        result = tensor.ExpandShapeOp(old, made.results[0], groups, dynamic, list(old.shape)).result
    replace(op, [result])


def _init(value: ir.Value, groups: list[list[int]], sizes: list[int | ir.Value]) -> ir.Value:
    """What an op starts from, without its last dims."""
    fill = defining_op(value)
    kind = ir.RankedTensorType(value.type)
    if fill is not None and fill.name == "linalg.fill":
        return linalg.fill(fill.operands[0], outs=[tensor.EmptyOp(sizes, kind.element_type).result])
    small = ir.RankedTensorType.get(list(kind.shape)[: len(sizes)], kind.element_type)
    return tensor.CollapseShapeOp(small, value, groups).result


def _fold_one(generic: ir.Operation) -> bool:
    """Folds the first reshape of those that an op reads; returns whether there was one."""
    view = structured(generic)
    assert view is not None
    for number in range(view.inputs):
        reshape = defining_op(generic.operands[number])
        if reshape is None or reshape.name not in RESHAPES or (number == 1 and TAPS in generic.attributes):
            continue
        through = _read_through(view.maps[number], reshape)
        if through is None or _hides_innermost(view.maps[number], through, reshape.operands[0]):
            continue
        maps = [*view.maps[:number], through, *view.maps[number + 1 :]]
        if len(bounded_loops(maps)) < view.loops:
            continue
        read_by(generic, number, reshape.operands[0], through)
        if not list(reshape.results[0].uses):
            reshape.erase()
        return True
    return False


def _hides_innermost(indexing: ir.AffineMap, through: ir.AffineMap, source: ir.Value) -> bool:
    """Whether a loop runs along the innermost dim of an argument's reshape, and not of the argument.

    Nothing has computed an argument that could have rows in common with the op.
    """
    loop = loop_of(indexing.results[-1]) if len(indexing.results) else None
    if loop is None or defining_op(source) is not None:
        return False
    return moves(indexing, loop) == "unit" and moves(through, loop) != "unit"


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
