"""Writes sums of products of bf16 and of bytes by the dot products of AVX512_BF16 and AVX512_VNNI."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.analysis.dot_product import LANES, DotProduct, dot_product_of, lies_in_groups
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import moves
from pipeline.mlir import arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.loop_nest import NestEmitter
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.vector_builders import floor_to, zeros

_BF16, _BYTES = "llvm.x86.avx512bf16.dpbf16ps.512", "llvm.x86.avx512.vpdpbusd.512"

_Step = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


class _GroupTile(RegisterTile):
    """A tile whose operands are read as groups of elements along a loop: 32-bit integers, the first the lowest bits."""

    @property
    def _dot(self) -> DotProduct:
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
            order = sorted((0, 1), key=self._is_fixed)  # what is fixed comes last: it is broadcast from memory
            for operand in order:
                key = (operand, *self._position(operand, row, column))
                if key not in known:
                    known[key] = self._groups(operand, at, row, column, loop, steps)
                factors[operand] = known[key]
            first = order[0] if self._dot.unsigned is None else self._dot.unsigned
            results.append(_sum(old, factors[first], factors[1 - first], self._dot))
        return results

    def _is_fixed(self, operand: int) -> bool:
        return moves(self.stage.view.maps[operand], self.stage.tile.vector_dim) == "fixed"

    def _groups(self, operand: int, at: dict[int, ir.Value], row: int, column: int, loop: int, steps: int) -> ir.Value:
        """A vector of groups along a loop, whose elements behind the first `steps` are zeros."""
        words = ir.VectorType.get([LANES], ir.IntegerType.get_signless(32))
        if self._is_fixed(operand):
            return vector.BroadcastOp(words, self._group(operand, at, row, column, loop, steps)).result
        whole = steps == self._dot.steps
        if whole and lies_in_groups(self.stage.view.maps[operand], self.stage.tile.vector_dim, loop, steps):
            return vector.BitCastOp(words, self._stored_groups(operand, at, row, column)).result
        return _joined(words, [self.load(operand, _behind(at, loop, step), row, column) for step in range(steps)])

    def _stored_groups(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of groups that lie side by side."""
        count = self._dot.steps * LANES
        kind = ir.VectorType.get([count], ir.IntegerType.get_signless(self._dot.bits))
        buffer, indices = self._buffer(operand), self._indices(operand, at, row, column)
        if not self._is_masked(column):
            return vector.LoadOp(kind, buffer, indices).result
        elements = arith.MulIOp(self.position.mask, as_index(self._dot.steps)).result
        mask = vector.CreateMaskOp(ir.VectorType.get([count], ir.IntegerType.get_signless(1)), [elements]).result
        return vector.MaskedLoadOp(kind, buffer, indices, mask, zeros(kind)).result

    def _group(self, operand: int, at: dict[int, ir.Value], row: int, column: int, loop: int, steps: int) -> ir.Value:
        """A group that is the same for all lanes."""
        word, element = (ir.IntegerType.get_signless(bits) for bits in (32, self._dot.bits))
        buffer = self._buffer(operand)
        if steps == self._dot.steps and moves(self.stage.view.maps[operand], loop) == "unit":
            group = vector.LoadOp(ir.VectorType.get([steps], element), buffer, self._indices(operand, at, row, column))
            return vector.ExtractOp(vector.BitCastOp(ir.VectorType.get([1], word), group.result).result, [], [0]).result
        places = [self._indices(operand, _behind(at, loop, step), row, column) for step in range(steps)]
        return _joined(word, [memref.LoadOp(buffer, place).result for place in places])


def _behind(at: dict[int, ir.Value], loop: int, steps: int) -> dict[int, ir.Value]:
    """A place that lies so many iterations of a loop behind another one."""
    return {**at, loop: arith.AddIOp(at[loop], as_index(steps)).result} if steps else at


class DotEmitter(NestEmitter):
    """Writes the loops of one op whose body is out + ext(a) * ext(b): the innermost sum takes several steps at a time.

    Last steps that are no whole group are filled up with zeros. Vectors of one element, at edges, are computed as
    others are.
    """

    tile_type = _GroupTile
    long_sums_in_blocks = False  # the factors are rounded to 8 bits, or the sums are exact

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        if depth != len(self.view.summed) - 1 or self.tile.lanes != LANES:
            return super().reduction(depth, registers, at, values)
        assert isinstance(registers, _GroupTile)
        tile, loop, dot = registers, self.view.summed[depth], dot_product_of(self.view.body)
        assert dot is not None

        def add(i: ir.Value, old: list[ir.Value], steps: int) -> list[ir.Value]:
            return tile.add({**at, loop: i}, old, loop, steps)

        size = self.view.sizes[loop]
        if size is not None:
            rest = size % dot.steps
            full = as_index(size - rest)
            values = _steps(as_index(0), full, dot.steps, values, lambda i, old: add(i, old, dot.steps))
            return add(full, values, rest) if rest else values
        total = self.size(loop)
        full = floor_to(total, dot.steps)
        values = _steps(as_index(0), full, dot.steps, values, lambda i, old: add(i, old, dot.steps))
        return _steps(full, total, 1, values, lambda i, old: add(i, old, 1))


def _steps(first: ir.Value, last: ir.Value, step: int, values: list[ir.Value], body: _Step) -> list[ir.Value]:
    loop = scf.ForOp(first, last, as_index(step), values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def _joined(kind: ir.Type, elements: Sequence[ir.Value]) -> ir.Value:
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


def _sum(total: ir.Value, left: ir.Value, right: ir.Value, dot: DotProduct) -> ir.Value:
    """total + the products of groups. Denormal bf16 and results count as 0, as the processor has it.

    Of bytes the left ones have no sign, the right ones have.
    """
    element = ir.BF16Type.get() if dot.unsigned is None else ir.IntegerType.get_signless(8)
    kind = ir.VectorType.get([dot.steps * LANES], element)
    factors = [vector.BitCastOp(kind, factor).result for factor in (left, right)]
    attributes = {
        "intrin": ir.StringAttr.get(_BF16 if dot.unsigned is None else _BYTES),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
    }
    made = ir.Operation.create("llvm.call_intrinsic", [total.type], [total, *factors], attributes)
    return made.result
