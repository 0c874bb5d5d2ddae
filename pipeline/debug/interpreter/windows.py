"""Operands of linalg ops seen along the loops: element (i, j, ..) of the view is what iteration (i, j, ..) reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.debug.interpreter.frame import FailedCheck
from pipeline.ir.indexing_maps import coefficient
from pipeline.mlir import ir


def seen_along(array: np.ndarray, indexing: ir.AffineMap, sizes: Sequence[int], writable: bool = False) -> np.ndarray:
    """An array along loops of these sizes; it has size 1 along a loop with which it doesn't move.

    A view, if the indices are linear in the loops, else a copy.

    Raises:
        FailedCheck: some iteration reads outside of the array.
    """
    steps = [[coefficient(result, loop) for loop in range(len(sizes))] for result in indexing.results]
    if any(step is None for row in steps for step in row):
        return array[tuple(_indices(indexing, sizes, array.shape))]
    start, shape, strides = 0, [1] * len(sizes), [0] * len(sizes)
    zero = [0] * len(sizes)
    for dim, (result, row) in enumerate(zip(indexing.results, steps, strict=True)):
        first = int(index_at(result, zero))
        moved = [step * (size - 1) for step, size in zip(row, sizes, strict=True) if step]
        _check(
            first + sum(move for move in moved if move < 0),
            first + sum(move for move in moved if move > 0),
            array.shape[dim],
        )
        start += first * array.strides[dim]
        for loop, step in enumerate(row):
            if step:
                shape[loop] = sizes[loop]
                strides[loop] += step * array.strides[dim]
    if array.ndim == 0:
        return array.reshape(shape)
    behind = array[tuple(slice(int(index_at(result, zero)), None) for result in indexing.results)]
    return np.lib.stride_tricks.as_strided(behind, shape, strides, writeable=writable)


def _indices(indexing: ir.AffineMap, sizes: Sequence[int], shape: Sequence[int]) -> list[np.ndarray]:
    loops = [
        np.arange(size).reshape([-1 if other == loop else 1 for other in range(len(sizes))])
        for loop, size in enumerate(sizes)
    ]
    found: list[np.ndarray] = []
    for result, size in zip(indexing.results, shape, strict=True):
        index = np.asarray(index_at(result, loops))
        index = index.reshape([1] * len(sizes)) if index.ndim == 0 else index
        _check(int(np.min(index)), int(np.max(index)), size)
        found.append(index)
    return found


def _check(lowest: int, highest: int, size: int) -> None:
    if lowest < 0 or highest >= size:
        raise FailedCheck(f"elements {lowest} to {highest} of a dimension of size {size} are read or written")


def index_at(expression: ir.AffineExpr, dims: Sequence, symbols: Sequence = ()) -> np.ndarray | int:
    """An affine expression's value where dims and symbols have these, numbers or arrays."""
    if isinstance(expression, ir.AffineDimExpr):
        return dims[ir.AffineDimExpr(expression).position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[ir.AffineSymbolExpr(expression).position]
    if isinstance(expression, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expression).value
    binary = ir.AffineBinaryExpr(expression)
    left, right = index_at(binary.lhs, dims, symbols), index_at(binary.rhs, dims, symbols)
    if isinstance(expression, ir.AffineAddExpr):
        return left + right
    if isinstance(expression, ir.AffineMulExpr):
        return left * right
    if isinstance(expression, ir.AffineModExpr):
        return left % right
    return left // right if isinstance(expression, ir.AffineFloorDivExpr) else -(-left // right)
