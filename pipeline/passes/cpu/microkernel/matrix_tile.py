"""Writes sums of products of bf16 and of bytes by products of small matrices: AArch64's SMMLA and its kin, and BFMMLA.

Where a dot product adds four products of bytes to each of four sums, one of these adds eight: two rows of one factor
times two columns of the other. So a vector has the sums of two rows in two columns while the products are added up:

    sums[2 x 2] += rows[2 x 8] * columns[8 x 2]
"""

from __future__ import annotations

from pipeline.analysis.dot_product import dot_product_of, lies_in_groups
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, vector
from pipeline.passes.cpu.microkernel.dot_product_tile import (
    DotEmitter,
    GroupTile,
    behind,
    signs_of,
    sum_of,
    unsigned_factor,
)
from pipeline.passes.cpu.microkernel.lane_factors import load_lanes
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: By the signs of the factors; the one that has none comes first.
_INTRINSICS = {
    None: "llvm.aarch64.neon.bfmmla",
    "mixed": "llvm.aarch64.neon.usmmla.v4i32.v16i8",
    "signed": "llvm.aarch64.neon.smmla.v4i32.v16i8",
    "unsigned": "llvm.aarch64.neon.ummla.v4i32.v16i8",
}

#: How many columns a vector of results has.
LANES = 4


def fits_matrices(view: LinalgOp, tile: TileSizes) -> bool:
    """Whether all rows of a tile read the same of the one factor, and all columns the same of the other."""
    fixed = [view.moves(operand, tile.vector_dim) == "fixed" for operand in range(2)]
    if tile.lanes != LANES or fixed.count(True) != 1:
        return False
    return tile.row_dim is None or view.moves(fixed.index(False), tile.row_dim) == "fixed"


class MatrixTile(GroupTile):
    """A tile whose sums lie two by two, while they are added up."""

    @property
    def _rows(self) -> int:
        """The number of the factor that has rows."""
        return 0 if self.is_fixed(0) else 1

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        """The rows two by two; the last one beside itself if their number is odd."""
        last = self.position.rows - 1
        return [(row, min(row + 1, last)) for row in range(0, last + 1, 2)]

    @property
    def unit(self) -> int:
        """How many products an instruction adds to each sum."""
        return 2 * self.dot.steps

    @property
    def _has_columns_first(self) -> bool:
        """Whether the factor that has columns is the first one of the instruction."""
        return signs_of(self.dot) == "mixed" and unsigned_factor(self.dot) != self._rows

    def as_pairs(self, rows: list[ir.Value]) -> list[ir.Value]:
        """Sums that lie in rows, two by two."""
        vectors, found = self.position.vectors, []
        orders = ([0, 4, 1, 5], [2, 6, 3, 7]) if self._has_columns_first else ([0, 1, 4, 5], [2, 3, 6, 7])
        for first, second in self._pairs:
            for column in range(vectors):
                both = rows[first * vectors + column], rows[second * vectors + column]
                found += [_shuffled(*both, order) for order in orders]
        return found

    def as_rows(self, pairs: list[ir.Value]) -> list[ir.Value]:
        """The inverse of `as_pairs`."""
        vectors = self.position.vectors
        found: dict[int, ir.Value] = {}
        orders = ([0, 2, 4, 6], [1, 3, 5, 7]) if self._has_columns_first else ([0, 1, 4, 5], [2, 3, 6, 7])
        for number, rows in enumerate(self._pairs):
            for column in range(vectors):
                place = 2 * (number * vectors + column)
                for row, order in zip(reversed(rows), reversed(orders), strict=True):  # the first one of equal ones
                    found[row * vectors + column] = _shuffled(pairs[place], pairs[place + 1], order)
        return [found[place] for place in range(len(found))]

    def add(self, at: dict[int, ir.Value], sums: list[ir.Value], loop: int, steps: int) -> list[ir.Value]:
        """The sums, two by two, plus the products at `steps` places along a loop from one on."""
        rows = [self._rows_at(at, pair, loop, steps) for pair in self._pairs]
        return self._add(rows, at, sums, loop, steps)

    def add_several(self, at: dict[int, ir.Value], sums: list[ir.Value], loop: int) -> list[ir.Value]:
        """Likewise for two units of steps: rows are loaded as whole vectors."""
        unit, buffer = self.unit, self._buffer(self._rows)
        lines = {
            row: load_lanes(buffer, self._indices(self._rows, at, *self._position(self._rows, row, 0)), 2 * unit)
            for row in range(self.position.rows)
        }
        for part in (0, unit):
            order = [*range(part, part + unit), *range(part + 2 * unit, part + 3 * unit)]
            rows = [_shuffled(lines[first], lines[second], order) for first, second in self._pairs]
            sums = self._add(rows, behind(at, loop, part), sums, loop, unit)
        return sums

    def _add(
        self, rows: list[ir.Value], at: dict[int, ir.Value], sums: list[ir.Value], loop: int, steps: int
    ) -> list[ir.Value]:
        columns = [
            half for column in range(self.position.vectors) for half in self._columns_at(at, column, loop, steps)
        ]
        name, old = _INTRINSICS[signs_of(self.dot)], iter(sums)
        results = []
        for left in rows:
            for right in columns:
                factors = (right, left) if self._has_columns_first else (left, right)
                results.append(sum_of(name, next(old), *factors, self.dot))
        return results

    def _rows_at(self, at: dict[int, ir.Value], pair: tuple[int, int], loop: int, steps: int) -> ir.Value:
        """Elements of two rows along a loop; those behind the first `steps` are zeros."""
        operand = self._rows
        if steps == self.unit and self.stage.view.moves(operand, loop) == "unit":
            buffer = self._buffer(operand)
            first, second = (
                load_lanes(buffer, self._indices(operand, at, *self._position(operand, row, 0)), steps) for row in pair
            )
            return _shuffled(first, second, list(range(2 * steps)))
        words = ir.VectorType.get([LANES], ir.IntegerType.get_signless(32))
        zero = arith.ConstantOp(words.element_type, 0).result
        half, found = self.dot.steps, []
        for row in pair:
            found.append(self.group(operand, at, row, 0, loop, min(steps, half)))
            rest = steps - half
            found.append(self.group(operand, behind(at, loop, half), row, 0, loop, rest) if rest > 0 else zero)
        return vector.FromElementsOp(words, found).result

    def _columns_at(self, at: dict[int, ir.Value], column: int, loop: int, steps: int) -> list[ir.Value]:
        """Elements of the four columns of a vector along a loop, those of two in each of two vectors."""
        operand, unit = 1 - self._rows, self.unit
        if steps == unit and lies_in_groups(self.stage.view.maps[operand], self.stage.tile.vector_dim, loop, unit):
            whole = load_lanes(self._buffer(operand), self._indices(operand, at, 0, column), LANES * unit)
            return [_shuffled(whole, whole, list(range(first, first + 2 * unit))) for first in (0, 2 * unit)]
        half = self.dot.steps
        words = self.groups(operand, at, 0, column, loop, min(steps, half))
        behind_them = arith.XOrIOp(words, words).result  # zeros
        if steps > half:
            behind_them = self.groups(operand, behind(at, loop, half), 0, column, loop, steps - half)
        return [_shuffled(words, behind_them, order) for order in ([0, 4, 1, 5], [2, 6, 3, 7])]


class MatrixEmitter(DotEmitter):
    """Writes the loops of one op whose body is out + ext(a) * ext(b), and that fits products of small matrices."""

    tile_type = MatrixTile

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        if depth or self.tile.lanes != LANES:
            return super().reduction(depth, registers, at, values)
        assert isinstance(registers, MatrixTile)
        return registers.as_rows(super().reduction(depth, registers, at, registers.as_pairs(values)))

    @property
    def steps(self) -> tuple[int, int | None]:
        """See `DotEmitter.steps`."""
        dot = dot_product_of(self.view.body)
        assert dot is not None
        return 2 * dot.steps, None if self.tile.lane_factor is None else 4 * dot.steps


def _shuffled(left: ir.Value, right: ir.Value, order: list[int]) -> ir.Value:
    """Elements of two vectors, by their numbers in both."""
    return vector.ShuffleOp(left, right, order).result
