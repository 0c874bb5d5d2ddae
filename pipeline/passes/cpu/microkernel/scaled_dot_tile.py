"""Writes sums of scaled products of bytes by dot products: a group of terms is a sum of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod

from pipeline.analysis.dot_product import DotProduct
from pipeline.analysis.scaled_dot import STEPS, ByteFactor, ScaledDot, scaled_dot_of
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import moves
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.nibbles import BITS, HALVES, MASK
from pipeline.mlir import arith, constant_integer, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.dot_product_tile import GroupTile, behind, dot_intrinsic, joined, sum_of
from pipeline.passes.cpu.microkernel.factor_tile import FactorTile, Term
from pipeline.passes.cpu.microkernel.loop_nest import Context, NestEmitter
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.vector_builders import zeros

#: The bit by which bytes with a sign and without are 128 apart.
_SIGN = 128

_Place = tuple[int, int]


class ScaledDotTile(GroupTile, FactorTile):
    """A tile of sums of products of bytes, beside sums of either factor if something is taken away from the other one.

    Attributes:
        factors: how each factor is read: where few rows share a weight, the weight loses its sign in place of the data,
            since sums of data are fewer then than sums of weights.
    """

    @cached_property
    def scaled_dot(self) -> ScaledDot:
        """What is summed up."""
        found = scaled_dot_of(self.stage.view)
        assert found is not None
        return found

    @property
    def weight(self) -> int:
        """See `FactorTile.weight`."""
        return self.scaled_dot.weight

    @property
    def dot(self) -> DotProduct:
        """See `GroupTile.dot`."""
        return DotProduct(STEPS, (self.factors[0][0].unsigned, self.factors[1][0].unsigned))

    @cached_property
    def factors(self) -> tuple[tuple[ByteFactor, int, bool], tuple[ByteFactor, int, bool]]:
        """Of each the factor, the number that is taken away besides its centers, whether its sign bit is flipped."""
        given = self.scaled_dot.factors
        numbers = [sum(constant_integer(center) or 0 for center in factor.centers) for factor in given]
        read = [(factor, number, False) for factor, number in zip(given, numbers, strict=True)]
        weight = self.weight
        data = 1 - weight
        if given[data].unsigned and not given[weight].unsigned and not self._shares_weights:
            read[data] = self._with_other_sign(*read[data])
            read[weight] = self._with_other_sign(*read[weight])
        return read[0], read[1]

    @property
    def _shares_weights(self) -> bool:
        """Whether several rows of a tile read the same weights."""
        tile = self.stage.tile
        fixed = tile.row_dim is not None and moves(self.stage.view.maps[self.weight], tile.row_dim) == "fixed"
        return fixed and tile.rows > tile.vectors

    @staticmethod
    def _with_other_sign(factor: ByteFactor, number: int, flipped: bool) -> tuple[ByteFactor, int, bool]:
        if factor.offset is not None:  # a number of four bits is the same with a sign and without
            same = ByteFactor(factor.operand, not factor.unsigned, factor.centers, 0)
            return same, number + factor.offset, False
        half = -_SIGN if factor.unsigned else _SIGN
        return ByteFactor(factor.operand, not factor.unsigned, factor.centers, None), number + half, not flipped

    @cached_property
    def summed_places(self) -> tuple[list[_Place], list[_Place]]:
        """Where each factor is summed up: nowhere if nothing is taken away from the other one."""
        found = []
        for operand in range(2):
            needed = self._has_center(1 - operand)
            places = [self._position(operand, *place) for place in self.places] if needed else []
            found.append(list(dict.fromkeys(places)))
        return found[0], found[1]

    def _has_center(self, operand: int) -> bool:
        factor, number, _ = self.factors[operand]
        return number != 0 or any(constant_integer(center) is None for center in factor.centers)

    def starts(self) -> list[ir.Value]:
        """What the sums begin with."""
        zero = zeros(self._words)
        return [zero] * (len(self.places) + sum(map(len, self.summed_places)))

    @property
    def _words(self) -> ir.VectorType:
        return ir.VectorType.get([self.stage.tile.lanes], ir.IntegerType.get_signless(32))

    def add_bytes(self, at: dict[int, ir.Value], sums: Sequence[ir.Value], loop: int, count: int) -> list[ir.Value]:
        """The sums plus the products at `count` places along a loop, of bytes or of two numbers each."""
        self.prefetch(at, STEPS)
        known: dict[tuple[int, _Place], list[ir.Value]] = {}

        def words(operand: int, place: _Place) -> list[ir.Value]:
            key = operand, self._position(operand, *place)
            if key not in known:
                known[key] = self._quads(operand, at, key[1], loop, count)
            return known[key]

        results = list(sums)
        for number, place in enumerate(self.places):
            for left, right in zip(words(0, place), words(1, place), strict=True):
                results[number] = self._dot(results[number], left, right)
        number = len(self.places)
        for operand, places in enumerate(self.summed_places):
            ones = self._splat(0x01010101)
            for place in places:
                for word in words(operand, place):
                    pair = (word, ones) if operand == 0 else (ones, word)
                    results[number] = self._dot(results[number], *pair)
                number += 1
        return results

    def _dot(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        """A sum plus the products of words of input 0 and of input 1."""
        name, first = dot_intrinsic(self.dot, self.stage.tile.lanes)
        pair = (left, right) if first == 0 else (right, left)
        return sum_of(name, total, *pair, self.dot)

    def _quads(self, operand: int, at: dict[int, ir.Value], place: _Place, loop: int, count: int) -> list[ir.Value]:
        """The words of four bytes of a factor: one, or one of the lower and one of the upper halves of weights."""
        nibble = self.scaled_dot.nibble
        factor, _, flipped = self.factors[operand]
        if nibble is None:
            words = [self.groups(operand, at, *place, loop, count)]
        elif operand == nibble.operand:
            words = self._halves(self.groups(operand, at, *place, loop, count), factor.offset or 0)
        else:
            words = self._of_halves(operand, at, place, loop, count)
        if flipped:
            words = [arith.XOrIOp(word, self._splat(0x01010101 * _SIGN)).result for word in words]
        if count < STEPS:
            kept = self._splat((1 << (8 * count)) - 1)
            words = [arith.AndIOp(word, kept).result for word in words]
        return words

    def _halves(self, packed: ir.Value, offset: int) -> list[ir.Value]:
        """The lower and the upper halves of bytes, minus a number."""
        mask = self._splat(0x01010101 * MASK)
        upper = arith.ShRUIOp(packed, self._splat(BITS)).result
        halves = [arith.AndIOp(word, mask).result for word in (packed, upper)]
        if not offset:
            return halves
        bytes_ = ir.VectorType.get([STEPS * self.stage.tile.lanes], ir.IntegerType.get_signless(8))
        number = ir.IntegerAttr.get(bytes_.element_type, offset)
        taken = arith.ConstantOp(bytes_, ir.DenseElementsAttr.get_splat(bytes_, number)).result
        less = [arith.SubIOp(vector.BitCastOp(bytes_, half).result, taken).result for half in halves]
        return [vector.BitCastOp(self._words, half).result for half in less]

    def _of_halves(self, operand: int, at: dict[int, ir.Value], place: _Place, loop: int, count: int) -> list[ir.Value]:
        """The bytes that are multiplied with the lower halves, and those that are with the upper ones."""
        nibble, lanes = self.scaled_dot.nibble, self.stage.tile.lanes
        assert nibble is not None
        if not self._has_pairs(operand, loop, nibble.loop) or not self.is_fixed(operand) or count < STEPS:
            return [
                self._one_half(operand, {**at, nibble.loop: as_index(half)}, place, loop, count)
                for half in range(HALVES)
            ]
        byte = ir.IntegerType.get_signless(8)
        pairs = HALVES * STEPS
        first = self._indices(operand, {**at, nibble.loop: as_index(0)}, *place)
        loaded = vector.LoadOp(ir.VectorType.get([pairs], byte), self._buffer(operand), first).result
        wide = ir.IntegerType.get_signless(8 * pairs)
        number = vector.ExtractOp(vector.BitCastOp(ir.VectorType.get([1], wide), loaded).result, [], [0]).result
        copies = STEPS * lanes // pairs
        spread = vector.BroadcastOp(ir.VectorType.get([copies], wide), number).result
        bytes_ = vector.BitCastOp(ir.VectorType.get([STEPS * lanes], byte), spread).result
        words = []
        for half in range(HALVES):
            order = [pairs * (lane // HALVES) + HALVES * step + half for lane in range(lanes) for step in range(STEPS)]
            words.append(vector.BitCastOp(self._words, vector.ShuffleOp(bytes_, bytes_, order).result).result)
        return words

    def _one_half(self, operand: int, at: dict[int, ir.Value], place: _Place, loop: int, count: int) -> ir.Value:
        """The bytes that are multiplied with halves of one kind, loaded one by one."""
        places = [behind(at, loop, step) for step in range(count)]
        if not self.is_fixed(operand):
            return joined(self._words, [self.load(operand, here, *place) for here in places])
        buffer, word = self._buffer(operand), ir.IntegerType.get_signless(32)
        elements = [memref.LoadOp(buffer, self._indices(operand, here, *place)).result for here in places]
        return vector.BroadcastOp(self._words, joined(word, elements)).result

    def _has_pairs(self, operand: int, bytes_: int, halves: int) -> bool:
        """Whether the elements for both halves of bytes lie one behind the other along two loops."""
        places = list(self.stage.view.maps[operand].results)[-2:]
        if places != [ir.AffineDimExpr.get(bytes_), ir.AffineDimExpr.get(halves)]:
            return False
        strides, _ = ir.MemRefType(self._buffer(operand).type).get_strides_and_offset()
        return strides[-2:] == [HALVES, 1]

    def scaled(
        self, at: dict[int, ir.Value], totals: list[ir.Value], sums: list[ir.Value], count: int
    ) -> list[ir.Value]:
        """Totals plus the scaled sums of a group of `count` terms."""
        term, results = Term(at), []
        data, weights = self.summed_places
        rest = sums[len(self.places) :]
        summed = [dict(zip(data, rest, strict=False)), dict(zip(weights, rest[len(data) :], strict=True))]
        for place, total, part in zip(self.places, totals, sums, strict=False):
            centers = [self._center(number, term, place) for number in range(2)]
            for number, center in enumerate(centers):
                if center is not None:
                    other = summed[1 - number][self._position(1 - number, *place)]
                    part = arith.SubIOp(part, arith.MulIOp(other, center).result).result
            if centers[0] is not None and centers[1] is not None:
                both = arith.MulIOp(centers[0], centers[1]).result
                part = arith.AddIOp(part, arith.MulIOp(both, self._splat(count)).result).result
            value = arith.SIToFPOp(total.type, part).result
            scale: ir.Value | None = None
            for factor in self.scaled_dot.scales:
                read = self.value(factor, term, *place)
                scale = read if scale is None else arith.MulFOp(scale, read).result
            results.append(
                arith.AddFOp(total, value).result if scale is None else self.multiply_add(value, scale, total)
            )
        return results

    def _center(self, operand: int, term: Term, place: _Place) -> ir.Value | None:
        """What is taken away from each byte of a factor; None for nothing."""
        factor, number, _ = self.factors[operand]
        if not self._has_center(operand):
            return None
        total = self._splat(number) if number else None
        for center in factor.centers:
            if constant_integer(center) is None:
                value = self.value(center, term, *place)
                total = value if total is None else arith.AddIOp(total, value).result
        return total

    def _splat(self, number: int) -> ir.Value:
        """A number, as 32 bits, in all lanes."""
        signed = number - (1 << 32) if number >= 1 << 31 else number
        attribute = ir.IntegerAttr.get(self._words.element_type, signed)
        return arith.ConstantOp(self._words, ir.DenseElementsAttr.get_splat(self._words, attribute)).result


class ScaledDotEmitter(NestEmitter):
    """Writes the loops of one op whose body is out + float((ext(a) - y) * (ext(b) - z)) * scale.

    The innermost loops add up products of bytes, several at a time; what is taken away from the factors, and the scale,
    which are the same for a group of terms, are applied to the sum of the group.
    """

    tile_type = ScaledDotTile
    long_sums_in_blocks = False  # the sums of groups are exact

    def __init__(self, view: LinalgOp, tile: TileSizes, fma: bool, context: Context):
        found = scaled_dot_of(view)
        assert found is not None
        self._dot = found
        super().__init__(view, tile, fma, context)

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        if depth != self._dot.depth or self.tile.lanes == 1:
            return super().reduction(depth, registers, at, values)
        assert isinstance(registers, ScaledDotTile)
        sums = self._sums(depth, registers, at, registers.starts())
        count = prod(self.view.sizes[loop] or 0 for loop in self.view.summed[depth:])
        return registers.scaled(at, values, sums, count)

    def _sums(
        self, depth: int, registers: ScaledDotTile, at: dict[int, ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """The sums of integers over the loops from the one of that number on."""
        loop = self.view.summed[depth]
        size = self.view.sizes[loop]
        assert size is not None
        innermost = len(self.view.summed) - (1 if self._dot.nibble is None else HALVES)
        if depth < innermost:
            return _loop(size, 1, sums, lambda i, old: self._sums(depth + 1, registers, {**at, loop: i}, old))
        rest = size % STEPS
        if size > rest:
            step = STEPS
            sums = _loop(size - rest, step, sums, lambda i, old: registers.add_bytes({**at, loop: i}, old, loop, step))
        return registers.add_bytes({**at, loop: as_index(size - rest)}, sums, loop, rest) if rest else sums


def _loop(
    end: int, step: int, values: list[ir.Value], body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
) -> list[ir.Value]:
    loop = scf.ForOp(as_index(0), as_index(end), as_index(step), values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)
