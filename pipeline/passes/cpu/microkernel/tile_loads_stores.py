"""How a register tile at a place reaches memory: by vectors of neighbours, of elements apart, or across its lines."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type, is_scalar
from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.mlir import affine, arith, ir, memref, vector
from pipeline.passes.cpu.microkernel import narrow_elements
from pipeline.passes.cpu.microkernel.padded_loads import load_padded
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import crosses_vectors
from pipeline.passes.cpu.microkernel.tiled_op import TiledOp
from pipeline.passes.cpu.microkernel.vector_builders import zeros
from pipeline.passes.cpu.microkernel.vector_transpose import transposed


class TileAccesses:
    """A tile at a place: loads and stores its vectors, the last of a row under a mask if there is one."""

    def __init__(self, stage: TiledOp, position: TilePosition):
        self.stage = stage
        self.position = position
        self._crossed: dict[tuple[int, int], list[ir.Value]] = {}
        self._given: dict[tuple[int, int, int], ir.Value] = {}  # what needs no load, by operand, row and column

    def load(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of an operand: loaded where it moves along vectors, else one element broadcast."""
        tile = self.stage.tile
        source = self.stage.view.operands[operand]
        if (operand, row, column) in self._given:
            return self._given[operand, row, column]
        if is_scalar(source):
            return self._broadcast(narrow_elements.number(source))
        if operand in self.stage.pads:
            return self._load_padded(operand, at, row, column)
        if self._crosses(operand):
            return self._load_crossed(operand, at, column)[row]
        if operand in self.stage.loaded:
            return self._broadcast(self.stage.loaded[operand])
        if self.stage.view.moves(operand, tile.vector_dim) == "fixed":
            return self._broadcast(self._load_number(operand, at, row, column))
        indices, element = self._indices(operand, at, row, column), element_type(source)
        kind = ir.VectorType.get([tile.lanes], narrow_elements.stored(element))
        return narrow_elements.after_load(self._load_vector(kind, operand, indices, column), element)

    def fixed_numbers(self) -> dict[int, ir.Value]:
        """The inputs that are one number in all iterations of the loops that the tile is not in yet, loaded.

        Loops of a linalg op write nothing that other iterations read. What moves along rows is a number for each.
        """
        view, at = self.stage.view, dict(self.position.at)
        entered = at.keys() - ({self.stage.tile.row_dim} if self.position.rows > 1 else set())
        return {
            operand: self._load_number(operand, at, 0, 0)
            for operand in range(view.inputs)
            if not is_scalar(view.operands[operand])
            and operand not in self.stage.pads
            and all(loop in entered or view.moves(operand, loop) == "fixed" for loop in range(view.loops))
        }

    def _load_number(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """The element of an operand that does not move along vectors."""
        number = memref.LoadOp(self._buffer(operand), self._indices(operand, at, row, column)).result
        return narrow_elements.after_load(number, element_type(self.stage.view.operands[operand]))

    def _load_padded(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        tile, indexing = self.stage.tile, self.stage.view.maps[operand]
        moved = {tile.row_dim: row, tile.vector_dim: column * tile.lanes}
        used = [self.stage.view.moves(operand, dim) != "fixed" for dim in range(indexing.n_dims)]
        values = [at[dim] if used[dim] else as_index(0) for dim in range(indexing.n_dims)]
        shifts = [moved.get(dim, 0) for dim in range(indexing.n_dims)]
        return load_padded(self.stage.pads[operand], indexing, values, shifts, tile.vector_dim, tile.lanes)

    def _crosses(self, operand: int) -> bool:
        tile = self.stage.tile
        return crosses_vectors(self.stage.view, operand, tile.vector_dim, tile.row_dim)

    def _load_crossed(self, operand: int, at: dict[int, ir.Value], column: int) -> list[ir.Value]:
        """The vectors of all rows of an operand that moves along rows: loaded along those, and transposed.

        Behind the edge of the vectors the last element before it is loaded again.
        """
        if (operand, column) in self._crossed:
            return self._crossed[operand, column]
        tile, source = self.stage.tile, self._buffer(operand)
        kind = ir.VectorType.get([tile.lanes], element_type(source))
        rows = None if self.position.rows == tile.lanes else self._first_lanes(self.position.rows)
        lines = []
        for lane in range(tile.lanes):
            step = as_index(column * tile.lanes + lane)
            if self._is_masked(column):
                last = arith.SubIOp(self.position.mask, as_index(1)).result
                step = arith.MinUIOp(step, arith.AddIOp(as_index(column * tile.lanes), last).result).result
            place = arith.AddIOp(at[tile.vector_dim], step).result
            indices = self._indices(operand, {**at, tile.vector_dim: place}, 0, 0)
            if rows is None:
                lines.append(vector.LoadOp(kind, source, indices).result)
            else:
                lines.append(vector.MaskedLoadOp(kind, source, indices, rows, zeros(kind)).result)
        element = element_type(self.stage.view.operands[operand])
        self._crossed[operand, column] = [narrow_elements.after_load(line, element) for line in transposed(lines)]
        return self._crossed[operand, column]

    def _store_crossed(self, vectors: list[ir.Value], operand: int) -> None:
        """Stores the tile of an output that moves along rows: transposed, then along those.

        Where rows are fewer than lanes, floats are stored under a mask; others may be truncated, see `tile_sizes`.
        """
        tile, buffer, count = self.stage.tile, self._buffer(operand), self.position.rows
        element = element_type(self.stage.view.operands[operand])
        by_mask = count < tile.lanes and isinstance(element, (ir.F32Type, ir.F64Type))
        rows = self._first_lanes(count) if by_mask else None
        for column in range(self.position.vectors):
            lines = [narrow_elements.before_store(value, element) for value in vectors[column :: self.position.vectors]]
            kind = ir.VectorType(lines[0].type)
            lines += [zeros(kind)] * (tile.lanes - len(lines))
            for lane, line in enumerate(transposed(lines)):
                step = as_index(column * tile.lanes + lane)
                place = arith.AddIOp(self.position.at[tile.vector_dim], step).result
                indices = self._indices(operand, {**self.position.at, tile.vector_dim: place}, 0, 0)
                if rows is None:
                    vector.StoreOp(_first_of(line, count), buffer, indices)
                else:
                    vector.MaskedStoreOp(buffer, indices, rows, line)

    def _first_lanes(self, count: int) -> ir.Value:
        return vector.CreateMaskOp(self._mask_type(), [as_index(count)]).result

    def _buffer(self, operand: int) -> ir.Value:
        return narrow_elements.stored_view(self.stage.view.operands[operand])

    def _broadcast(self, number: ir.Value) -> ir.Value:
        return vector.BroadcastOp(ir.VectorType.get([self.stage.tile.lanes], number.type), number).result

    def _load_vector(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int) -> ir.Value:
        """A vector of elements as they are stored."""
        if self.stage.view.moves(operand, self.stage.tile.vector_dim) == "strided":
            return self._load_strided(kind, operand, indices, column)
        buffer = self._buffer(operand)
        if not self._is_masked(column):
            return vector.LoadOp(kind, buffer, indices).result
        return vector.MaskedLoadOp(kind, buffer, indices, self._mask_vector(), zeros(kind)).result

    def _load_strided(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int) -> ir.Value:
        """A vector whose elements are a constant number of elements apart."""
        step = coefficient(self.stage.view.maps[operand].results[-1], self.stage.tile.vector_dim)
        assert step is not None
        if not self._is_masked(column) and _is_short(kind):
            return self._load_lane_by_lane(kind, operand, indices, step)
        if step in (2, 4):
            return self._load_and_thin_out(kind, operand, indices, column, step)
        return self._gather(kind, operand, indices, column, step)

    def _load_lane_by_lane(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], step: int) -> ir.Value:
        """Elements that are `step` apart, where no instruction loads under a mask.

        Every second one: of two vectors, the second of which ends with the last element that is wanted.
        """
        buffer, lanes = self._buffer(operand), kind.shape[0]

        def behind(elements: int) -> list[ir.Value]:
            return [*indices[:-1], arith.AddIOp(indices[-1], as_index(elements)).result] if elements else indices

        if step == 2 and lanes > 2:
            first, second = (vector.LoadOp(kind, buffer, behind(place)).result for place in (0, lanes - 1))
            half = lanes // 2
            order = [2 * lane for lane in range(half)] + [lanes + 1 + 2 * lane for lane in range(half)]
            return vector.ShuffleOp(first, second, order).result
        loaded = [memref.LoadOp(buffer, behind(lane * step)).result for lane in range(lanes)]
        return vector.FromElementsOp(kind, loaded).result

    def _load_and_thin_out(
        self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int, step: int
    ) -> ir.Value:
        """All elements from the first to the last, of which every second or fourth is kept: faster than a gather."""
        lanes = self.stage.tile.lanes
        wide = ir.VectorType.get([lanes * step], kind.element_type)
        mask_type = ir.VectorType.get([lanes * step], ir.IntegerType.get_signless(1))
        count = self.position.mask if self._is_masked(column) else as_index(lanes)
        last = arith.SubIOp(arith.MulIOp(count, as_index(step)).result, as_index(step - 1)).result
        mask = vector.CreateMaskOp(mask_type, [last]).result
        buffer = self._buffer(operand)
        value = vector.MaskedLoadOp(wide, buffer, indices, mask, zeros(wide)).result
        while ir.VectorType(value.type).shape[0] > lanes:
            value = vector.DeinterleaveOp(value).results[0]
        return value

    def _gather(self, kind: ir.VectorType, operand: int, indices: list[ir.Value], column: int, step: int) -> ir.Value:
        """Every element by itself."""
        tile = self.stage.tile
        offsets = ir.VectorType.get([tile.lanes], ir.IntegerType.get_signless(32))
        steps = ir.DenseElementsAttr.get(np.arange(tile.lanes, dtype=np.int32) * step, type=offsets)
        buffer = self._buffer(operand)
        mask = self._mask_vector() if self._is_masked(column) else self._full_mask()
        return vector.GatherOp(kind, buffer, indices, arith.ConstantOp(offsets, steps).result, mask, zeros(kind)).result

    def store(self, value: ir.Value, operand: int, row: int, column: int) -> None:
        """Stores a vector of an output."""
        buffer = self._buffer(operand)
        value = narrow_elements.before_store(value, element_type(self.stage.view.operands[operand]))
        indices = self._indices(operand, self.position.at, row, column)
        if self._is_masked(column):
            vector.MaskedStoreOp(buffer, indices, self._mask_vector(), value)
        else:
            vector.StoreOp(value, buffer, indices)

    def store_all(self, vectors: list[ir.Value], operand: int) -> None:
        """Stores the whole tile of an output."""
        if self._crosses(operand):
            self._store_crossed(vectors, operand)
            return
        values = iter(vectors)
        for row in range(self.position.rows):
            for column in range(self.position.vectors):
                self.store(next(values), operand, row, column)

    def _indices(self, operand: int, at: Mapping[int, ir.Value], row: int, column: int) -> list[ir.Value]:
        """Where the vector of a row and a column of the tile at `at` begins in an operand."""
        tile, view = self.stage.tile, self.stage.view
        shifts = {tile.row_dim: row, tile.vector_dim: column * tile.lanes}
        indices: list[ir.Value] = []
        for expression in view.maps[operand].results:
            loop = loop_of(expression)
            if loop is not None and not shifts.get(loop):
                indices.append(at[loop])
            else:
                indices.append(self._index(operand, expression, at, shifts))
        return indices

    def _index(
        self, operand: int, expression: ir.AffineExpr, at: Mapping[int, ir.Value], shifts: Mapping[int | None, int]
    ) -> ir.Value:
        """An index that is computed of the loops, each of which is so much further on."""
        loops = range(self.stage.view.loops)
        fixed = [loop for loop in loops if self.stage.view.moves(operand, loop) == "fixed"]
        none = as_index(0) if fixed else None
        values = [none if loop in fixed else at[loop] for loop in loops]
        dims = map(ir.AffineDimExpr.get, loops)
        shifted = [ir.AffineExpr.get_add(dim, shifts.get(loop, 0)) for loop, dim in zip(loops, dims, strict=True)]
        moved = expression.compose(ir.AffineMap.get(len(loops), 0, shifted))
        return affine.AffineApplyOp(ir.AffineMap.get(len(loops), 0, [moved]), values).result

    def _is_masked(self, column: int) -> bool:
        return self.position.mask is not None and column == self.position.vectors - 1

    def _mask_vector(self) -> ir.Value:
        assert self.position.mask is not None
        return vector.CreateMaskOp(self._mask_type(), [self.position.mask]).result

    def _full_mask(self) -> ir.Value:
        true = ir.IntegerAttr.get(ir.IntegerType.get_signless(1), 1)
        return arith.ConstantOp(self._mask_type(), ir.DenseElementsAttr.get_splat(self._mask_type(), true)).result

    def _mask_type(self) -> ir.VectorType:
        return ir.VectorType.get([self.stage.tile.lanes], ir.IntegerType.get_signless(1))


def _first_of(line: ir.Value, count: int) -> ir.Value:
    """The first elements of a vector."""
    if ir.VectorType(line.type).shape[0] == count:
        return line
    return vector.ShuffleOp(line, line, list(range(count))).result


def _is_short(kind: ir.VectorType) -> bool:
    """Whether vectors are of 16 bytes: processors with those have no loads under masks."""
    lanes = kind.shape[0]
    return lanes <= 4 and lanes * kind.element_type.width <= 128
