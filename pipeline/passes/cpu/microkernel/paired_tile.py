"""Writes sums of products of bf16 and dequantized factors by dot products of bf16, which are made in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from pipeline.analysis.dot_product import BF16_PAIRS, DotProduct
from pipeline.analysis.paired_sum import narrow_data, paired_sum_of
from pipeline.analysis.scaled_sum import ScaledSum, rounding_of
from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, vector
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks, blocks_of
from pipeline.passes.cpu.microkernel.dequantized_nest import DequantizedEmitter
from pipeline.passes.cpu.microkernel.dequantized_tile import DequantizedTile, FillsPanel
from pipeline.passes.cpu.microkernel.dot_product_tile import GroupTile, behind, dot_intrinsic, sum_of
from pipeline.passes.cpu.microkernel.factor_tile import Term
from pipeline.passes.cpu.microkernel.loop_nest import loop_with
from pipeline.passes.cpu.microkernel.rounded_tile import RoundedTile
from pipeline.passes.cpu.microkernel.rounding import is_rounding_to_bf16, pairs_of_nearest_bf16
from pipeline.passes.cpu.microkernel.vector_builders import floor_to

#: How many terms an instruction adds, and the bits of a bf16.
_PAIR, _HALF = 2, 16

_Place = tuple[int, int]
_Step = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


class PairedTile(RoundedTile, GroupTile):
    """A tile of sums of data * core, two terms at a time: the upper halves of cores in f32 are bf16."""

    terms_of_word = _PAIR

    @staticmethod
    def read(view: LinalgOp) -> ScaledSum | None:
        """See `DequantizedTile.read`. Shifts, which few rows alone have, are none."""
        return paired_sum_of(view)

    @property
    def dot(self) -> DotProduct:
        """See `GroupTile.dot`."""
        return BF16_PAIRS

    @cached_property
    def narrow(self) -> int:
        """The number of the input in bf16."""
        found = narrow_data(self.sum, self.stage.view)
        assert found is not None
        return found

    def add_terms(self, terms: Sequence[Term], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums plus the products at some places, of which each two follow each other along the innermost sum."""
        if self.stage.tile.lanes == 1:
            return super().add_terms(terms, sums)
        results = list(sums)
        for first in range(0, len(terms), _PAIR):
            results = self._add_pair(terms[first : first + _PAIR], results)
        return results

    def _add_pair(self, pair: Sequence[Term], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums plus the products of two terms, or one."""
        loop, data, cores = self.stage.view.summed[-1], dict[_Place, ir.Value](), dict[_Place, ir.Value]()

        def words(row: int, column: int) -> ir.Value:
            place = self._position(self.narrow, row, column)
            if place not in data:
                data[place] = self.groups(self.narrow, pair[0].at, *place, loop, len(pair))
            return data[place]

        def factors(row: int, column: int) -> ir.Value:
            place = self.place(self.sum.core, row, column)
            if place not in cores:
                cores[place] = self.word(pair, *place)
            return cores[place]

        results = list(sums)
        for number, place in enumerate(self.places):
            results[number] = self._dot(results[number], factors(*place), words(*place))
        return results

    def word(self, terms: Sequence[Term], row: int, column: int) -> ir.Value:
        """A vector of the cores of two terms, or of one and 0."""
        if self.panel is not None:
            return self.from_panel(terms[0], column)
        rounded = self._rounded
        if rounded is not None and len(terms) == _PAIR:
            return pairs_of_nearest_bf16(*[self.value(rounded, term, row, column) for term in terms])
        return self._upper_halves([self.value(self.sum.core, term, row, column) for term in terms])

    @cached_property
    def _rounded(self) -> ir.Value | None:
        """What the core is the nearest bf16 of, if AVX512_BF16 rounds it."""
        rounding = rounding_of(self.sum.core)
        if rounding is None or not is_rounding_to_bf16(rounding, self.stage.tile.lanes):
            return None
        return rounding.operands[0]

    def _dot(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        name, _ = dot_intrinsic(self.dot, self.stage.tile.lanes)
        return sum_of(name, total, left, right, self.dot)

    def _upper_halves(self, numbers: Sequence[ir.Value]) -> ir.Value:
        """Numbers in f32 whose lower halves are zeros as words of two bf16, the first one in the lowest bits."""
        kind = self._word(0).type
        first, *second = [vector.BitCastOp(kind, number).result for number in numbers]
        word = arith.ShRUIOp(first, self._word(_HALF)).result
        return arith.OrIOp(word, second[0]).result if second else word

    def _word(self, number: int) -> ir.Value:
        """32 bits in all lanes."""
        kind = ir.VectorType.get([self.stage.tile.lanes], ir.IntegerType.get_signless(32))
        attribute = ir.IntegerAttr.get(kind.element_type, number)
        return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, attribute)).result


class _FillsPanelOfPairs(FillsPanel, PairedTile):
    """See `FillsPanel`."""


class PairedEmitter(DequantizedEmitter):
    """Writes the loops of one op whose body is out + extf(data) * (core * scale), in pairs of terms.

    All but the products is as `DequantizedEmitter` has it. A term that is left is added with zeros beside it.
    """

    tile_type = PairedTile
    filling_type = _FillsPanelOfPairs

    def _unscaled(
        self, depth: int, registers: DequantizedTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        takes_bits = self._sum.nibble is not None and not registers.reads_panel
        if takes_bits or depth != len(self.view.summed) - 1 or self.tile.lanes == 1:
            return super()._unscaled(depth, registers, at, values)
        loop = self.view.summed[-1]

        def add(count: int) -> _Step:
            def step(i: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
                first = {**at, loop: i}
                registers.prefetch(first, count)
                return registers.add_terms([Term(behind(first, loop, number)) for number in range(count)], old)

            return step

        def run(first: ir.Value, last: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
            return loop_with(first, last, _PAIR, old, add(_PAIR))

        total, size = self.size(loop), self.view.sizes[loop]
        full = floor_to(total, _PAIR) if size is None else as_index(size - size % _PAIR)
        values = self.in_blocks(depth, full, values, run, _PAIR)
        if size is None:
            return loop_with(full, total, 1, values, add(1))
        return add(1)(full, values) if size % _PAIR else values

    def _blocks_of_sums(self) -> Blocks | None:
        """See `DequantizedEmitter`: a chain of additions has half as many of them as there are terms."""
        if self._sum.nibble is not None:
            return super()._blocks_of_sums()
        sizes = [self.view.sizes[dim] for dim in self.view.summed]
        sizes[-1] = None if sizes[-1] is None else sizes[-1] // _PAIR
        blocks = blocks_of(sizes, ("arith.addf",))
        return blocks if blocks is not None and self._sum.depth <= blocks.depth < len(sizes) else None
