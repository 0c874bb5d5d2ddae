"""Writes the loops of a 3x3 convolution by Winograd's algorithm; what tile-and-vectorize emits for those meant for it.

for each image, for each few rows of tiles:
    the data of the tiles is transformed            V[point, tile, c]
    for each block of channels of the result:
        for each point of a tile, a matrix product  M[point, tile, f] = V[point, tile, c] * U[block, point, c, f]
        M is transformed back; epilogues run on the results in registers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.analysis.winograd import DATA, RESULT, Sizes, read_sizes
from pipeline.ir.attributes import WINOGRAD
from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, math, memref, scf, vector
from pipeline.passes.cpu.microkernel.blocked_sums import blocks_of
from pipeline.passes.cpu.microkernel.lane_factors import in_whole_vectors, lane, load_lanes
from pipeline.passes.cpu.microkernel.loop_nest import Context, NestEmitter
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes, choose_rows
from pipeline.passes.cpu.microkernel.vector_builders import parallel_loop, plus, scratch, times

#: Loops of the convolution.
_N, _H, _W, _F = range(4)

#: How many vectors of channels of the result a matrix product computes at once.
_VECTORS = 2


@dataclass(frozen=True)
class WinogradTile:
    """How a convolution is tiled.

    Attributes:
        m: rows and columns of results in a tile.
        lanes: elements of a vector.
        block: channels of the result that are computed together; whole vectors.
        registers: of the machine.
        lane_factors: whether a multiply-add can take a lane of a vector for a factor of all lanes.
    """

    sizes: Sizes
    m: int
    lanes: int
    block: int
    registers: int
    lane_factors: bool = False

    @property
    def register_tile(self) -> TileSizes:
        """The results of a tile, for epilogues: its columns are rows of one vector."""
        return TileSizes(_F, _W, self.m, 1, self.lanes, (_N, _H))


def winograd_tile(
    view: LinalgOp, vector_bytes: int, registers: int, lane_factors: bool = False
) -> WinogradTile | str | None:
    """The tile of a convolution that is meant for Winograd's algorithm; or why it cannot be; None if it is not."""
    if WINOGRAD not in view.op.attributes:
        return None
    sizes = read_sizes(view)
    lanes = vector_bytes // 4
    block = ir.ShapedType(view.operands[2].type).get_dim_size(3)
    if sizes is None or view.inputs != 3:
        return "it is no longer a 3x3 convolution with channels last"
    if sizes.c % lanes or block % lanes or min(sizes.n, sizes.h, sizes.w, sizes.c, sizes.f) == 0:
        return "its channels do not fill whole vectors"
    m = ir.IntegerAttr(view.op.attributes[WINOGRAD]).value
    return WinogradTile(sizes, m, lanes, block, registers, lane_factors)


class WinogradEmitter(NestEmitter):
    """Writes the loops of one convolution at the insertion point."""

    def __init__(self, view: LinalgOp, tile: WinogradTile, fma: bool, context: Context):
        super().__init__(view, tile.register_tile, fma, context)
        self._plan = tile
        self._fma = fma
        self._rows_of_tiles, self._columns_of_tiles = tile.sizes.tiles(tile.m)
        self._rows_at_once = tile.sizes.rows_at_once(tile.m)
        self._tiles = self._rows_at_once * self._columns_of_tiles
        self._points = (tile.m + 2) ** 2
        self._vector = ir.VectorType.get([tile.lanes], ir.F32Type.get())
        self._blocks = tile.sizes.f // tile.block
        self._steps_at_once = tile.lanes if tile.lane_factors and fma else 1
        self.blocks = in_whole_vectors(blocks_of([tile.sizes.c], ("arith.addf",)), self._steps_at_once)

    def emit(self) -> None:
        """The whole nest."""
        self._each(
            self._plan.sizes.n, 1, lambda n: self._each(self._rows_of_tiles, self._rows_at_once, self._rows_of(n))
        )

    def _each(self, count: int, step: int, body: Callable[[ir.Value], None]) -> None:
        """A parallel loop, unless it has one iteration only."""
        if count == step:
            body(as_index(0))
        else:
            parallel_loop(as_index(0), as_index(count), step, body)

    def _rows_of(self, n: ir.Value) -> Callable[[ir.Value], None]:
        def rows(first: ir.Value) -> None:
            data = scratch([self._points, self._tiles, self._plan.sizes.c], ir.F32Type.get())
            self._each(self._rows_at_once, 1, lambda row: self._transform_data(n, first, row, data))
            self._each(self._blocks, 1, lambda block: self._channels(n, first, block, data))
            memref.DeallocOp(data)

        return rows

    def _transform_data(self, n: ir.Value, first: ir.Value, row: ir.Value, data: ir.Value) -> None:
        """V[.., tile, c] = B^T d B for the tiles of a row."""
        size = self._plan.sizes
        top = times(arith.AddIOp(first, row).result, self._plan.m)
        rows = self._places(top, self._rows_of_tiles, size.h)
        start = times(row, self._columns_of_tiles)

        def tile(column: ir.Value) -> None:
            columns = self._places(times(column, self._plan.m), self._columns_of_tiles, size.w)
            number = arith.AddIOp(start, column).result

            def channels(c: ir.Value) -> None:
                def load(i: int, j: int) -> ir.Value:
                    return vector.LoadOp(self._vector, self.view.operands[0], [n, rows[i], columns[j], c]).result

                values = self._transform(DATA[self._plan.m], load)
                for point, value in enumerate(values):
                    vector.StoreOp(value, data, [as_index(point), number, c])

            parallel_loop(as_index(0), as_index(size.c), self._plan.lanes, channels)

        self._each(self._columns_of_tiles, 1, tile)

    def _places(self, first: ir.Value, tiles: int, results: int) -> list[ir.Value]:
        """Where the rows or columns of a tile of data are.

        What the last tile lacks is read from the border instead: only results outside of the image depend on it.
        """
        m = self._plan.m
        places = [plus(first, number) for number in range(m + 2)]
        if tiles * m == results:
            return places
        last = as_index(results + 1)
        return [arith.MinUIOp(place, last).result if number >= 3 else place for number, place in enumerate(places)]

    def _transform(self, matrix: Sequence[Sequence[float]], load: Callable[[int, int], ir.Value]) -> list[ir.Value]:
        """matrix * values * matrix^T, row by row; `load` gives the values by row and column."""
        count = len(matrix[0])
        columns = []
        for j in range(count):
            column = [load(i, j) for i in range(count)]
            columns.append([self._sum(row, column) for row in matrix])
        return [self._sum(other, [columns[j][i] for j in range(count)]) for i in range(len(matrix)) for other in matrix]

    def _sum(self, factors: Sequence[float], values: Sequence[ir.Value]) -> ir.Value:
        """The sum of values times constants; what is multiplied by 1 comes first."""
        terms = [(factor, value) for factor, value in zip(factors, values, strict=True) if factor]
        terms.sort(key=lambda term: (abs(term[0]) != 1, term[0] != 1))
        (factor, total), *rest = terms
        if factor != 1:
            total = arith.MulFOp(total, self._constant(factor)).result
        for factor, value in rest:
            if factor == 1:
                total = arith.AddFOp(total, value).result
            elif factor == -1:
                total = arith.SubFOp(total, value).result
            else:
                total = self._multiply_add(value, self._constant(factor), total)
        return total

    def _constant(self, value: float) -> ir.Value:
        number = ir.FloatAttr.get(ir.F32Type.get(), value)
        return arith.ConstantOp(self._vector, ir.DenseElementsAttr.get_splat(self._vector, number)).result

    def _multiply_add(self, left: ir.Value, right: ir.Value, addend: ir.Value) -> ir.Value:
        if self._fma:
            return math.FmaOp(left, right, addend).result
        return arith.AddFOp(arith.MulFOp(left, right).result, addend).result

    def _channels(self, n: ir.Value, first: ir.Value, block: ir.Value, data: ir.Value) -> None:
        """The results of a block of channels."""
        products = scratch([self._points, self._tiles, self._plan.block], ir.F32Type.get())
        self._products(block, data, products)
        m, columns = self._plan.m, self._plan.sizes.w

        def row(number: ir.Value) -> None:
            start = times(number, self._columns_of_tiles)
            h = times(arith.AddIOp(first, number).result, m)
            full = columns // m
            if full:
                self._each(full, 1, lambda column: self._results(n, h, block, start, column, products, m))
            if columns % m:
                self._results(n, h, block, start, as_index(full), products, columns % m)

        self._each(self._rows_at_once, 1, row)
        memref.DeallocOp(products)

    def _products(self, block: ir.Value, data: ir.Value, products: ir.Value) -> None:
        """M[point, tile, ..] = V[point, tile, c] * U[block, point, c, ..]."""
        vectors = min(_VECTORS, self._plan.block // self._plan.lanes)
        while self._plan.block % (vectors * self._plan.lanes):
            vectors -= 1
        rows = choose_rows(self._tiles, vectors, self._plan.registers)
        full = self._tiles // rows * rows

        def point(number: ir.Value) -> None:
            for column in range(0, self._plan.block, vectors * self._plan.lanes):

                def tiles(tile: ir.Value, count: int = rows, column: int = column) -> None:
                    self._product(block, number, tile, count, column, vectors, data, products)

                self._each(full, rows, tiles)
                if full < self._tiles:
                    tiles(as_index(full), self._tiles - full)

        parallel_loop(as_index(0), as_index(self._points), 1, point)

    def _product(
        self,
        block: ir.Value,
        point: ir.Value,
        tile: ir.Value,
        rows: int,
        column: int,
        vectors: int,
        data: ir.Value,
        products: ir.Value,
    ) -> None:
        """Some rows of some vectors of a matrix product, in registers."""
        columns = [as_index(column + number * self._plan.lanes) for number in range(vectors)]
        tiles = [plus(tile, row) for row in range(rows)]
        zero = self._constant(0.0)

        def add(c: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            loaded = [self._load_data(data, [point, row, c]) for row in tiles]
            for step in range(self._steps_at_once):
                here, given = [block, point, plus(c, step)], iter(sums)
                weights = [
                    vector.LoadOp(self._vector, self.view.operands[2], [*here, place]).result for place in columns
                ]
                factors = [self._factor(one, step) for one in loaded]
                sums = [self._multiply_add(factor, weight, next(given)) for factor in factors for weight in weights]
            return sums

        values = iter(self._sum_over_channels([zero] * (rows * vectors), add))
        for row in tiles:
            for place in columns:
                vector.StoreOp(next(values), products, [point, row, place])

    def _load_data(self, data: ir.Value, indices: list[ir.Value]) -> ir.Value:
        """An element of the data; with the ones behind it where a step of the sum takes several."""
        if self._steps_at_once == 1:
            return memref.LoadOp(data, indices).result
        return load_lanes(data, indices, self._plan.lanes)

    def _factor(self, loaded: ir.Value, step: int) -> ir.Value:
        """The element of a step, in all lanes."""
        return vector.BroadcastOp(self._vector, loaded).result if self._steps_at_once == 1 else lane(loaded, step)

    def _sum_over_channels(
        self, starts: list[ir.Value], add: Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
    ) -> list[ir.Value]:
        def run(first: ir.Value, last: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            loop = scf.ForOp(first, last, as_index(self._steps_at_once), values)
            with ir.InsertionPoint(loop.body):
                scf.YieldOp(add(loop.induction_variable, list(loop.inner_iter_args)))
            return list(loop.results)

        return self.in_blocks(0, as_index(self._plan.sizes.c), starts, run)

    def _results(
        self,
        n: ir.Value,
        h: ir.Value,
        block: ir.Value,
        start: ir.Value,
        column: ir.Value,
        products: ir.Value,
        columns: int,
    ) -> None:
        """A^T M A of one tile, of which so many columns are in the image; then the epilogues."""
        m = self._plan.m
        number, w = arith.AddIOp(start, column).result, times(column, m)
        channel = times(block, self._plan.block)
        for place in range(0, self._plan.block, self._plan.lanes):

            def load(i: int, j: int, place: int = place) -> ir.Value:
                point = as_index(i * (m + 2) + j)
                return vector.LoadOp(self._vector, products, [point, number, as_index(place)]).result

            values = self._transform(RESULT[m], load)
            for row in range(m):
                at = {_N: n, _H: plus(h, row), _W: w, _F: plus(channel, place)}
                self._row(at, values[row * m : row * m + columns], is_sure=row == 0)

    def _row(self, at: dict[int, ir.Value], values: list[ir.Value], is_sure: bool) -> None:
        """The results of a row of a tile, if the row is in the image."""
        if is_sure or self._plan.sizes.h % self._plan.m == 0:
            self._finish(at, values)
            return
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, at[_H], as_index(self._plan.sizes.h)).result
        branch = scf.IfOp(inside)
        with ir.InsertionPoint(branch.then_block):
            self._finish(at, values)
            scf.YieldOp([])

    def _finish(self, at: dict[int, ir.Value], values: list[ir.Value]) -> None:
        registers = RegisterTile(self.stage, TilePosition(at, len(values)))
        (output,) = self.view.outputs
        starts = [self.start(registers, output, at, row, 0) for row in range(len(values))]
        sums = [arith.AddFOp(value, start).result for value, start in zip(values, starts, strict=True)]
        self.finish(registers, sums)
