"""Writes the loops of a transpose over square tiles in registers; what the pass transpose-in-registers emits."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.analysis.access import Loops
from pipeline.analysis.tiling import element_type
from pipeline.mlir import arith, ir, memref, vector
from pipeline.passes.vector_values import constant_index, floor_to, parallel_loop

At = dict[int, ir.Value]


def emit(generic: ir.Operation, loops: Loops, column: int, row: int, lanes: int) -> None:
    """Loops over tiles, and over the elements at the edges, at the insertion point.

    Args:
        column: the loop along the source's innermost dimension.
        row: the loop along the target's.
        lanes: how many rows and columns a tile has.
    """
    _Emitter(generic, loops, column, row, lanes).emit()


class _Emitter:
    def __init__(self, generic: ir.Operation, loops: Loops, column: int, row: int, lanes: int):
        self.source, self.target = generic.operands
        self.loops = loops
        self.column, self.row, self.lanes = column, row, lanes
        self.vector = ir.VectorType.get([lanes], element_type(self.source))

    def emit(self) -> None:
        order = [ir.AffineDimExpr(expression).position for expression in self.loops.maps[1].results]
        self._nest([dim for dim in order if dim not in (self.column, self.row)], {}, self._columns)

    def _nest(self, dims: list[int], at: At, inner: Callable[[At], None]) -> None:
        if not dims:
            inner(at)
            return
        dim, *rest = dims
        parallel_loop(constant_index(0), self._size(dim), 1, lambda i: self._nest(rest, {**at, dim: i}, inner))

    def _columns(self, at: At) -> None:
        """Bands of as many columns of the source as a tile has, each of which is some whole rows of the target."""
        size = self._size(self.column)
        full = floor_to(size, self.lanes)
        parallel_loop(constant_index(0), full, self.lanes, lambda i: self._band({**at, self.column: i}))
        parallel_loop(full, size, 1, lambda i: self._elements({**at, self.column: i}, self.row, constant_index(0)))

    def _band(self, at: At) -> None:
        size = self._size(self.row)
        full = floor_to(size, self.lanes)
        parallel_loop(constant_index(0), full, self.lanes, lambda i: self._tile({**at, self.row: i}))
        first = at[self.column]
        end = arith.AddIOp(first, constant_index(self.lanes)).result
        parallel_loop(first, end, 1, lambda i: self._elements({**at, self.column: i}, self.row, full))

    def _elements(self, at: At, dim: int, first: ir.Value) -> None:
        """Copies the elements from `first` on along a loop."""

        def copy(i: ir.Value) -> None:
            here = {**at, dim: i}
            element = memref.LoadOp(self.source, self._place(0, here)).result
            memref.StoreOp(element, self.target, self._place(1, here))

        parallel_loop(first, self._size(dim), 1, copy)

    def _tile(self, at: At) -> None:
        rows = [
            vector.LoadOp(self.vector, self.source, self._place(0, self._moved(at, self.row, step))).result
            for step in range(self.lanes)
        ]
        for step, one in enumerate(transposed(rows)):
            vector.StoreOp(one, self.target, self._place(1, self._moved(at, self.column, step)))

    def _moved(self, at: At, dim: int, step: int) -> At:
        return {**at, dim: arith.AddIOp(at[dim], constant_index(step)).result} if step else at

    def _place(self, operand: int, at: At) -> list[ir.Value]:
        return [at[ir.AffineDimExpr(expression).position] for expression in self.loops.maps[operand].results]

    def _size(self, dim: int) -> ir.Value:
        known = self.loops.sizes[dim]
        if known is not None:
            return constant_index(known)
        operand, position = self.loops.bounds[dim]
        return memref.DimOp((self.source, self.target)[operand], constant_index(position)).result


def transposed(rows: list[ir.Value]) -> list[ir.Value]:
    """The columns of as many vectors as each has elements, a power of two: n log2(n) shuffles of two vectors.

    In each step, blocks of 1, 2, 4, ... elements change places with those of the vector as many rows below:
    [a b; c d] -> [a c; b d].
    """
    lanes, block = len(rows), 1
    rows = list(rows)
    while block < lanes:
        for upper in (row for row in range(lanes) if not row & block):
            pair = rows[upper], rows[upper + block]
            for half, row in enumerate((upper, upper + block)):
                rows[row] = vector.ShuffleOp(*pair, _mask(lanes, block, half)).result
        block *= 2
    return rows


def _mask(lanes: int, block: int, half: int) -> list[int]:
    """Takes the even (half 0) or the odd (half 1) blocks of two vectors, in turn from the first and the second."""
    return [(lane & ~block) + half * block + (lanes if lane & block else 0) for lane in range(lanes)]
