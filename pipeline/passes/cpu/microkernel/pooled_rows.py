"""Which pools fold the rows of their windows before they fold along them: those with vectors along images' rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.analysis.reduction_combiners import FOLDS, fold_ops
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir

#: The largest stride that a few shuffles take to pick its elements from vectors.
_MOST_STRIDE = 4


@dataclass(frozen=True)
class PooledRows:
    """How a pool is computed: first the rows of windows are folded, for all columns of an image; then along the row.

    Attributes:
        fold: the associative op that folds.
        rows: the loops over the rows of a window.
        column: the loop along a row of a window.
        stride, dilation: how many columns there are from one window to the next, and from one tap to the next.
    """

    fold: str
    rows: tuple[int, ...]
    column: int
    stride: int
    dilation: int

    def __str__(self) -> str:
        return " of rows that are folded before"


def pooled_rows_of(view: LinalgOp, vector_dim: int) -> PooledRows | None:
    """How a pool with vectors along the rows of its image is cut in two; None for another op, or if it does not pay."""
    folds = fold_ops(view.op) if len(view.outputs) == 1 and len(view.op.regions) else None
    if folds is None or len(view.summed) < 2 or None in view.sizes or not _folds_input(view):
        return None
    found = _columns(view, vector_dim)
    if found is None:
        return None
    column, stride, dilation = found
    rows = tuple(dim for dim in view.summed if dim != column)
    if not all(_slides_alone(view, dim) for dim in rows):
        return None
    chosen = PooledRows(folds[0], rows, column, stride, dilation)
    return chosen if _pays(view, chosen) else None


def reads_unpadded(
    chosen: PooledRows, view: LinalgOp, source: ir.Type, low: tuple[int, ...], number: ir.Attribute
) -> bool:
    """Whether a pool needs no padded copy: a pad that changes no fold stands where windows reach, and there alone."""
    if ir.FloatAttr(number).value != float(FOLDS[chosen.fold][1]):
        return False
    shape, padded = ir.ShapedType(source).shape, ir.ShapedType(view.operands[0].type).shape
    windows = {*chosen.rows, chosen.column}
    return all(
        (start == 0 and size == whole) or any(coefficient(expression, dim) for dim in windows)
        for expression, start, size, whole in zip(view.maps[0].results, low, shape, padded, strict=True)
    )


def _folds_input(view: LinalgOp) -> bool:
    """Whether the body folds elements of its first operand, floats that need no conversion, as they are."""
    kinds = {element_type(view.operands[number]) for number in (0, view.outputs[0])}
    first = view.body.arguments[0]
    return (
        kinds in ({ir.F32Type.get()}, {ir.F64Type.get()})
        and len(view.body_ops) == 1
        and first in list(view.body_ops[0].operands)
        and all(not list(view.body.arguments[number].uses) for number in range(1, view.inputs))
    )


def _columns(view: LinalgOp, vector_dim: int) -> tuple[int, int, int] | None:
    """The loop along a row of a window, the stride and the dilation; None if the innermost index is another sum."""
    innermost = view.maps[0].results[-1]
    steps = {dim: coefficient(innermost, dim) for dim in range(view.loops)}
    used = {dim: step for dim, step in steps.items() if step != 0}
    along = [dim for dim in used if view.reductions[dim]]
    if len(along) != 1 or set(used) != {vector_dim, *along} or _constant(innermost, view.loops) != 0:
        return None
    stride, dilation = used[vector_dim], used[along[0]]
    if stride is None or dilation is None or not 1 <= stride <= _MOST_STRIDE or dilation < 1:
        return None
    others = list(view.maps[0].results)[:-1]
    fixed = all(coefficient(expression, dim) == 0 for expression in others for dim in used)
    return (along[0], stride, dilation) if fixed else None


def _constant(expression: ir.AffineExpr, loops: int) -> int | None:
    """What an index is where all loops begin; None if that is not a number."""
    zeros = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(0)] * loops)
    value = ir.AffineMap.get(0, 0, [expression.compose(zeros)]).results[0]
    return ir.AffineConstantExpr(value).value if isinstance(value, ir.AffineConstantExpr) else None


def _slides_alone(view: LinalgOp, dim: int) -> bool:
    """Whether a loop over rows of a window moves one index of the image, which no other such loop moves, forward."""
    moved = []
    for expression in view.maps[0].results:
        step = coefficient(expression, dim)
        if step != 0:
            others = [loop for loop in view.summed if loop != dim]
            moved.append(step is not None and step > 0 and all(coefficient(expression, loop) == 0 for loop in others))
    return moved == [True]


def _pays(view: LinalgOp, chosen: PooledRows) -> bool:
    """Whether it takes fewer loads and folds of vectors, shuffles among them, for a vector of results."""
    stride, taps = chosen.stride, view.sizes[chosen.column] or 0
    rows = prod(view.sizes[dim] or 0 for dim in chosen.rows)
    picked = taps * 2 * stride
    return rows > 1 and taps > 1 and 5 * ((rows + 1) * stride + picked) < 4 * rows * picked
