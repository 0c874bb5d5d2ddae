"""Writes sums of products of bf16 and of bytes by dot products: of AVX512_BF16 and AVX512_VNNI, and of AArch64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.analysis.dot_product import DotProduct, dot_product_of, lies_in_groups
from pipeline.ir.constants import as_index
from pipeline.ir.intrinsics import call_intrinsic
from pipeline.mlir import arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.lane_factors import lane, load_lanes
from pipeline.passes.cpu.microkernel.loop_nest import NestEmitter
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.vector_builders import floor_to, zeros

#: The intrinsics by how many sums a vector has, and by the signs of factors; None for bf16. What has none comes first.
_INTRINSICS = {
    (16, None): "llvm.x86.avx512bf16.dpbf16ps.512",
    (16, "mixed"): "llvm.x86.avx512.vpdpbusd.512",
    (4, None): "llvm.aarch64.neon.bfdot.v4f32.v8bf16",
    (4, "mixed"): "llvm.aarch64.neon.usdot.v4i32.v16i8",
    (4, "signed"): "llvm.aarch64.neon.sdot.v4i32.v16i8",
    (4, "unsigned"): "llvm.aarch64.neon.udot.v4i32.v16i8",
}

_Step = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


class GroupTile(RegisterTile):
    """A tile whose operands are read as groups of elements along a loop: 32-bit integers, the first the lowest bits."""

    @property
    def dot(self) -> DotProduct:
        """The dot product."""
        dot = dot_product_of(self.stage.view.body)
        assert dot is not None
        return dot

    def add(self, at: dict[int, ir.Value], sums: list[ir.Value], loop: int, steps: int) -> list[ir.Value]:
        """The sums, one for each vector of the tile, plus the products at `steps` places along a loop from one on."""
        known: dict[tuple[int, int, int], ir.Value] = {}
        results = []
        places = [(row, column) for row in range(self.position.rows) for column in range(self.position.vectors)]
        for (row, column), old in zip(places, sums, strict=True):
            factors = {}
            order = sorted((0, 1), key=self.is_fixed)  # what is fixed comes last: it is broadcast from memory
            for operand in order:
                key = (operand, *self._position(operand, row, column))
                if key not in known:
                    known[key] = self.groups(operand, at, row, column, loop, steps)
                factors[operand] = known[key]
            name, first = dot_intrinsic(self.dot, self.stage.tile.lanes, order[0])
            results.append(sum_of(name, old, factors[first], factors[1 - first], self.dot))
        return results

    def is_fixed(self, operand: int) -> bool:
        """Whether an operand is the same for all lanes."""
        return self.stage.view.moves(operand, self.stage.tile.vector_dim) == "fixed"

    def groups(self, operand: int, at: dict[int, ir.Value], row: int, column: int, loop: int, steps: int) -> ir.Value:
        """A vector of groups along a loop, whose elements behind the first `steps` are zeros."""
        words = ir.VectorType.get([self.stage.tile.lanes], ir.IntegerType.get_signless(32))
        if (operand, row, 0) in self._given:
            return self._given[operand, row, 0]
        if self.is_fixed(operand):
            return vector.BroadcastOp(words, self.group(operand, at, row, column, loop, steps)).result
        whole = steps == self.dot.steps
        if whole and lies_in_groups(self.stage.view.maps[operand], self.stage.tile.vector_dim, loop, steps):
            return vector.BitCastOp(words, self._stored_groups(operand, at, row, column)).result
        return joined(words, [self.load(operand, behind(at, loop, step), row, column) for step in range(steps)])

    def _stored_groups(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of groups that lie side by side."""
        count = self.dot.steps * self.stage.tile.lanes
        kind = ir.VectorType.get([count], ir.IntegerType.get_signless(self.dot.bits))
        buffer, indices = self._buffer(operand), self._indices(operand, at, row, column)
        if not self._is_masked(column):
            return vector.LoadOp(kind, buffer, indices).result
        elements = arith.MulIOp(self.position.mask, as_index(self.dot.steps)).result
        mask = vector.CreateMaskOp(ir.VectorType.get([count], ir.IntegerType.get_signless(1)), [elements]).result
        return vector.MaskedLoadOp(kind, buffer, indices, mask, zeros(kind)).result

    def group(self, operand: int, at: dict[int, ir.Value], row: int, column: int, loop: int, steps: int) -> ir.Value:
        """A group that is the same for all lanes."""
        word, element = (ir.IntegerType.get_signless(bits) for bits in (32, self.dot.bits))
        buffer = self._buffer(operand)
        if steps == self.dot.steps and self.stage.view.moves(operand, loop) == "unit":
            group = vector.LoadOp(ir.VectorType.get([steps], element), buffer, self._indices(operand, at, row, column))
            return vector.ExtractOp(vector.BitCastOp(ir.VectorType.get([1], word), group.result).result, [], [0]).result
        places = [self._indices(operand, behind(at, loop, step), row, column) for step in range(steps)]
        return joined(word, [memref.LoadOp(buffer, place).result for place in places])

    def add_several(self, at: dict[int, ir.Value], sums: list[ir.Value], loop: int) -> list[ir.Value]:
        """Adds the products of as many groups along a loop as a vector has lanes, which hold those of one factor."""
        factor, lanes = self.stage.tile.lane_factor, self.stage.tile.lanes
        assert factor is not None
        words = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        places = sorted({self._position(factor, row, 0) for row in range(self.position.rows)})
        buffer, count = self._buffer(factor), self.dot.steps * lanes
        lines = {place: load_lanes(buffer, self._indices(factor, at, *place), count) for place in places}
        loaded = {place: vector.BitCastOp(words, line).result for place, line in lines.items()}
        for number in range(lanes):
            self._given = {(factor, *place): lane(value, number) for place, value in loaded.items()}
            sums = self.add(behind(at, loop, number * self.dot.steps), sums, loop, self.dot.steps)
        self._given = {}
        return sums


def behind(at: dict[int, ir.Value], loop: int, steps: int) -> dict[int, ir.Value]:
    """A place that lies so many iterations of a loop behind another one."""
    return {**at, loop: arith.AddIOp(at[loop], as_index(steps)).result} if steps else at


class DotEmitter(NestEmitter):
    """Writes the loops of one op whose body is out + ext(a) * ext(b): the innermost sum takes several steps at a time.

    Last steps that are no whole group are filled up with zeros. Vectors of one element, at edges, are computed as
    others are.
    """

    tile_type = GroupTile
    long_sums_in_blocks = False  # the factors are rounded to 8 bits, or the sums are exact

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        if depth != len(self.view.summed) - 1 or self.tile.lanes == 1:
            return super().reduction(depth, registers, at, values)
        assert isinstance(registers, GroupTile)
        tile, loop, (steps, several) = registers, self.view.summed[depth], self.steps

        def add(i: ir.Value, old: list[ir.Value], steps: int) -> list[ir.Value]:
            return tile.add({**at, loop: i}, old, loop, steps)

        def add_several(i: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
            return tile.add_several({**at, loop: i}, old, loop)

        first, size = as_index(0), self.view.sizes[loop]
        if size is not None:
            rest, left = size % steps, size % (several or size + 1)
            if several is not None:
                first = as_index(size - left)
                values = _steps(as_index(0), first, several, values, add_several)
            if left >= steps:
                values = _steps(first, as_index(size - rest), steps, values, lambda i, old: add(i, old, steps))
            return add(as_index(size - rest), values, rest) if rest else values
        total = self.size(loop)
        full = floor_to(total, steps)
        if several is not None:
            first = floor_to(total, several)
            values = _steps(as_index(0), first, several, values, add_several)
        values = _steps(first, full, steps, values, lambda i, old: add(i, old, steps))
        return _steps(full, total, 1, values, lambda i, old: add(i, old, 1))

    @property
    def steps(self) -> tuple[int, int | None]:
        """How many steps of the innermost sum are added at a time; how many by several instructions, or None."""
        dot = dot_product_of(self.view.body)
        assert dot is not None
        return dot.steps, None if self.tile.lane_factor is None else dot.steps * self.tile.lanes


def _steps(first: ir.Value, last: ir.Value, step: int, values: list[ir.Value], body: _Step) -> list[ir.Value]:
    loop = scf.ForOp(first, last, as_index(step), values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def joined(kind: ir.Type, elements: Sequence[ir.Value]) -> ir.Value:
    """Elements as one word, numbers or vectors, the first one in the lowest bits; 0 where there are none."""
    word: ir.Value | None = None
    for number, element in enumerate(elements):
        wide = arith.ExtUIOp(kind, element).result
        bits = ir.ShapedType(element.type).element_type.width if isinstance(kind, ir.VectorType) else element.type.width
        moved = arith.ShLIOp(wide, _number(kind, number * bits)).result if number else wide
        word = moved if word is None else arith.OrIOp(moved, word).result
    assert word is not None
    return word


def _number(kind: ir.Type, number: int) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.ConstantOp(kind, number).result
    attribute = ir.IntegerAttr.get(kind.element_type, number)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, attribute)).result


def sum_of(intrinsic: str, total: ir.Value, left: ir.Value, right: ir.Value, dot: DotProduct) -> ir.Value:
    """total + the products of groups. Denormal bf16 and results count as 0, as the processor has it."""
    element = ir.BF16Type.get() if dot.unsigned is None else ir.IntegerType.get_signless(8)
    kind = ir.VectorType.get([dot.steps * ir.VectorType(total.type).shape[0]], element)
    factors = [vector.BitCastOp(kind, factor).result for factor in (left, right)]
    return call_intrinsic(intrinsic, total.type, total, *factors)


def dot_intrinsic(dot: DotProduct, lanes: int, first: int = 0) -> tuple[str, int]:
    """The instruction for so many sums, and the number of the factor that comes first: `first` where either may."""
    signs = signs_of(dot)
    return _INTRINSICS[lanes, signs], unsigned_factor(dot) if signs == "mixed" else first


def signs_of(dot: DotProduct) -> str | None:
    """`mixed`, `signed` or `unsigned`; None for bf16."""
    if dot.unsigned is None:
        return None
    return "mixed" if len(set(dot.unsigned)) == 2 else "unsigned" if dot.unsigned[0] else "signed"


def unsigned_factor(dot: DotProduct) -> int:
    """The number of the first factor that has no sign."""
    assert dot.unsigned is not None
    return dot.unsigned.index(True)
