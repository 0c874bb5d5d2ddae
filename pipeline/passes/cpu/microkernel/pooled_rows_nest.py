"""Writes pools whose rows are folded first, as pooled_rows.py chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import affine, arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.loop_nest import Context, NestEmitter
from pipeline.passes.cpu.microkernel.pooled_rows import pooled_rows_of
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.vector_builders import (
    combine,
    plus,
    scratch,
    sequential_loop,
    splat_of,
    times,
)

#: How many vectors are folded side by side, to hide latencies.
_VECTORS = 8


class PooledRowsEmitter(NestEmitter):
    """Writes loops over the rows of results, each of which folds rows of the image to one, and then along that.

    That row lies in scratch memory, with the pad before and behind it; rows above and below the image are left out.
    """

    def __init__(self, view: LinalgOp, tile: TileSizes, fma: bool, context: Context):
        chosen = pooled_rows_of(view, tile.vector_dim)
        assert chosen is not None
        outer = [dim for dim, reduces in enumerate(view.reductions) if not reduces and dim != tile.vector_dim]
        vectors = 1 if tile.vectors == 1 else 2
        by_rows = replace(tile, row_dim=None, rows=1, vectors=vectors, outer=tuple(outer[:-1]))
        super().__init__(view, by_rows, fma, context)
        self._chosen, self._along = chosen, outer[-1] if outer else None
        self._pad = context.pads.get(0)
        self._image = view.operands[0] if self._pad is None else self._pad.source
        self._low = self._pad.low if self._pad is not None else (0,) * len(view.maps[0].results)
        self._kind = ir.VectorType.get([tile.lanes], element_type(self._image))

    def emit(self) -> None:
        """The whole nest."""
        self.nest(TilePosition(), self._plane)

    def _plane(self, position: TilePosition) -> None:
        """All rows of one image: they use one scratch row, one after the other."""
        self._row = scratch([self._scratch_size()], self._kind.element_type)
        self._pad_row()
        if self._along is None:
            self._results(position)
        else:
            along = self._along
            sequential_loop(as_index(0), self.size(along), 1, lambda i: self._results(position.inside(along, i)))
        memref.DeallocOp(self._row)

    def _scratch_size(self) -> int:
        """How many elements are stored there or loaded, those that no result is made of included."""
        lanes, stride = self.tile.lanes, self._chosen.stride
        results = -(-(self.view.sizes[self.tile.vector_dim] or 0) // lanes) * lanes
        reach = ((self.view.sizes[self._chosen.column] or 0) - 1) * self._chosen.dilation
        return max(results * stride + reach, self._low[-1] + self._width()) + lanes

    def _width(self) -> int:
        """How many columns the image has."""
        return ir.MemRefType(self._image.type).shape[-1]

    def _pad_row(self) -> None:
        """What is before and behind the image."""
        if self._pad is None:
            return
        whole, start = ir.MemRefType(self.view.operands[0].type).shape[-1], self._low[-1]
        number, row = self._pad.number, self._row
        for first, last in ((0, start), (start + self._width(), whole)):
            sequential_loop(as_index(first), as_index(last), 1, lambda i: memref.StoreOp(number, row, [i]))

    def _results(self, position: TilePosition) -> None:
        """A row of results."""
        self._fold_rows(position.at)
        self._vectors(position, self._tile)

    def _fold_rows(self, at: Mapping[int, ir.Value]) -> None:
        """The rows of the windows folded to one, in vectors; the last one begins so early that it is full."""
        width = self._width()
        lanes = min(self.tile.lanes, 1 << (width.bit_length() - 1)) if width else 1
        step, rest = _VECTORS * lanes, width % (_VECTORS * lanes)
        if width >= step:
            end = as_index(width - rest)
            sequential_loop(as_index(0), end, step, lambda i: self._fold_columns(at, i, _VECTORS, lanes))
        if rest >= lanes:
            self._fold_columns(at, as_index(width - rest), rest // lanes, lanes)
        if rest % lanes:
            self._fold_columns(at, as_index(width - lanes), 1, lanes)

    def _fold_columns(self, at: Mapping[int, ir.Value], column: ir.Value, vectors: int, lanes: int) -> None:
        """Some vectors of the scratch row."""
        kind = ir.VectorType.get([lanes], self._kind.element_type)

        def level(depth: int, counters: dict[int, ir.Value], values: list[ir.Value]) -> list[ir.Value]:
            if depth == len(self._chosen.rows):
                return self._with_row(kind, {**at, **counters}, column, values)
            dim = self._chosen.rows[depth]
            first, last = self._rows_inside(at, dim)
            loop = scf.ForOp(first, last, as_index(1), values)
            with ir.InsertionPoint(loop.body):
                inner = {**counters, dim: loop.induction_variable}
                scf.YieldOp(level(depth + 1, inner, list(loop.inner_iter_args)))
            return list(loop.results)

        values = level(0, {}, [splat_of(kind, self._chosen.fold)] * vectors)
        for number, value in enumerate(values):
            vector.StoreOp(value, self._row, [plus(column, self._low[-1] + number * lanes)])

    def _with_row(
        self, kind: ir.VectorType, at: Mapping[int, ir.Value], column: ir.Value, values: list[ir.Value]
    ) -> list[ir.Value]:
        """Values folded with a row of the image."""
        indices = [
            plus(self._index(expression, at), -low)
            for expression, low in zip(list(self.view.maps[0].results)[:-1], self._low, strict=False)
        ]
        loaded = [
            vector.LoadOp(kind, self._image, [*indices, plus(column, number * kind.shape[0])]).result
            for number in range(len(values))
        ]
        return [combine(self._chosen.fold, *pair) for pair in zip(values, loaded, strict=True)]

    def _index(self, expression: ir.AffineExpr, at: Mapping[int, ir.Value]) -> ir.Value:
        """An index of the padded image; loops that do not move it are anything."""
        zero = as_index(0)
        values = [at.get(loop, zero) for loop in range(self.view.loops)]
        return affine.AffineApplyOp(ir.AffineMap.get(self.view.loops, 0, [expression]), values).result

    def _rows_inside(self, at: Mapping[int, ir.Value], dim: int) -> tuple[ir.Value, ir.Value]:
        """The first row of a window that is inside of the image, and the one behind the last."""
        count = self.view.sizes[dim] or 0
        place = next(n for n, expression in enumerate(self.view.maps[0].results) if coefficient(expression, dim))
        expression, low = self.view.maps[0].results[place], self._low[place]
        size, whole = (ir.MemRefType(buffer.type).shape[place] for buffer in (self._image, self.view.operands[0]))
        if size == whole:
            return as_index(0), as_index(count)
        step = coefficient(expression, dim) or 1
        start = self._index(expression, {**at, dim: as_index(0)})
        place_of = ir.AffineDimExpr.get(0)
        above = ir.AffineExpr.get_ceil_div(low - place_of, step)
        below = ir.AffineExpr.get_ceil_div(low + size - place_of, step)
        first, last = (
            affine.AffineApplyOp(ir.AffineMap.get(1, 0, [bound]), [start]).result for bound in (above, below)
        )
        return arith.MaxSIOp(first, as_index(0)).result, arith.MinSIOp(last, as_index(count)).result

    def _tile(self, position: TilePosition) -> None:
        """Folds along the scratch row."""
        registers = self.tile_type(self.stage, position)
        values = self.starts(registers)
        first = times(position.at[self.tile.vector_dim], self._chosen.stride)
        for tap in range(self.view.sizes[self._chosen.column] or 0):
            for number in range(position.vectors):
                behind = number * self.tile.lanes * self._chosen.stride + tap * self._chosen.dilation
                values[number] = combine(self._chosen.fold, values[number], self._picked(plus(first, behind)))
        self.finish(registers, values)

    def _picked(self, place: ir.Value) -> ir.Value:
        """A vector of elements of the scratch row that are a stride apart: shuffled together from several vectors."""
        lanes, stride = self.tile.lanes, self._chosen.stride
        kind = ir.VectorType.get([lanes], self._kind.element_type)
        loaded = [vector.LoadOp(kind, self._row, [plus(place, number * lanes)]).result for number in range(stride)]
        value = loaded[0]
        for number, following in enumerate(loaded[1:], 1):
            so_far = stride if number == 1 else 1  # how far apart the elements lie that were picked before
            order = [
                lane * so_far
                if lane * stride < number * lanes
                else lanes + min(lane * stride - number * lanes, lanes - 1)
                for lane in range(lanes)
            ]
            value = vector.ShuffleOp(value, following, order).result
        return value
