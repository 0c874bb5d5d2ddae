"""Writes sums of products of bf16 by the dot product of AVX512_BF16, which adds two products to each f32."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.analysis.bf16_dot import LANES, lies_in_pairs
from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import moves
from pipeline.mlir import arith, ir, memref, scf, vector
from pipeline.passes.cpu.microkernel.loop_nest import NestEmitter
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.vector_builders import floor_to, zeros

_INTRINSIC = "llvm.x86.avx512bf16.dpbf16ps.512"


_Step = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]


class _PairTile(RegisterTile):
    """A tile whose operands are read as pairs of elements along a loop: 32-bit integers, the first the lower half."""

    def add(self, at: dict[int, ir.Value], sums: list[ir.Value], loop: int, both: bool) -> list[ir.Value]:
        """The sums, one for each vector of the tile, plus the products at a place and, if `both`, the next one."""
        known: dict[tuple[int, int, int], ir.Value] = {}
        results = []
        places = [(row, column) for row in range(self.position.rows) for column in range(self.position.vectors)]
        for (row, column), old in zip(places, sums, strict=True):
            factors = []
            for operand in sorted((0, 1), key=self._is_fixed):  # what is fixed comes last: it is broadcast from memory
                key = (operand, *self._position(operand, row, column))
                if key not in known:
                    known[key] = self._pairs(operand, at, row, column, loop if both else None)
                factors.append(known[key])
            results.append(_dot(old, *factors))
        return results

    def _is_fixed(self, operand: int) -> bool:
        return moves(self.stage.view.maps[operand], self.stage.tile.vector_dim) == "fixed"

    def _pairs(self, operand: int, at: dict[int, ir.Value], row: int, column: int, loop: int | None) -> ir.Value:
        """A vector of pairs along a loop; of elements and zeros if there is none."""
        words = ir.VectorType.get([LANES], ir.IntegerType.get_signless(32))
        if self._is_fixed(operand):
            return vector.BroadcastOp(words, self._pair(operand, at, row, column, loop)).result
        if loop is not None and lies_in_pairs(self.stage.view.maps[operand], self.stage.tile.vector_dim, loop):
            return vector.BitCastOp(words, self._stored_pairs(operand, at, row, column)).result
        low = self.load(operand, at, row, column)
        return _joined(words, low, None if loop is None else self.load(operand, _next(at, loop), row, column))

    def _stored_pairs(self, operand: int, at: dict[int, ir.Value], row: int, column: int) -> ir.Value:
        """A vector of pairs that lie side by side."""
        kind = ir.VectorType.get([2 * LANES], ir.IntegerType.get_signless(16))
        buffer, indices = self._buffer(operand), self._indices(operand, at, row, column)
        if not self._is_masked(column):
            return vector.LoadOp(kind, buffer, indices).result
        both = arith.MulIOp(self.position.mask, as_index(2)).result
        lanes = ir.VectorType.get([2 * LANES], ir.IntegerType.get_signless(1))
        mask = vector.CreateMaskOp(lanes, [both]).result
        return vector.MaskedLoadOp(kind, buffer, indices, mask, zeros(kind)).result

    def _pair(self, operand: int, at: dict[int, ir.Value], row: int, column: int, loop: int | None) -> ir.Value:
        """A pair that is the same for all lanes."""
        word, half = (ir.IntegerType.get_signless(bits) for bits in (32, 16))
        buffer, indices = self._buffer(operand), self._indices(operand, at, row, column)
        if loop is None:
            return _joined(word, memref.LoadOp(buffer, indices).result, None)
        if moves(self.stage.view.maps[operand], loop) == "unit":
            pair = vector.LoadOp(ir.VectorType.get([2], half), buffer, indices).result
            return vector.ExtractOp(vector.BitCastOp(ir.VectorType.get([1], word), pair).result, [], [0]).result
        after = self._indices(operand, _next(at, loop), row, column)
        return _joined(word, memref.LoadOp(buffer, indices).result, memref.LoadOp(buffer, after).result)


def _next(at: dict[int, ir.Value], loop: int) -> dict[int, ir.Value]:
    return {**at, loop: arith.AddIOp(at[loop], as_index(1)).result}


class DotEmitter(NestEmitter):
    """Writes the loops of one op whose body is out + extf(a) * extf(b): the innermost sum takes two steps at a time.

    A last step that has no other is paired with zeros. Vectors of one element, at edges, are computed as others are.
    """

    tile_type = _PairTile
    long_sums_in_blocks = False  # the factors are rounded to 8 bits

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        if depth != len(self.view.summed) - 1 or self.tile.lanes != LANES:
            return super().reduction(depth, registers, at, values)
        assert isinstance(registers, _PairTile)
        pairs, loop = registers, self.view.summed[depth]

        def add(i: ir.Value, old: list[ir.Value], both: bool) -> list[ir.Value]:
            return pairs.add({**at, loop: i}, old, loop, both)

        size = self.view.sizes[loop]
        if size is not None:
            full = as_index(size // 2 * 2)
            values = _steps(as_index(0), full, 2, values, lambda i, old: add(i, old, True))
            return add(full, values, False) if size % 2 else values
        total = self.size(loop)
        full = floor_to(total, 2)
        values = _steps(as_index(0), full, 2, values, lambda i, old: add(i, old, True))
        return _steps(full, total, 1, values, lambda i, old: add(i, old, False))


def _steps(first: ir.Value, last: ir.Value, step: int, values: list[ir.Value], body: _Step) -> list[ir.Value]:
    loop = scf.ForOp(first, last, as_index(step), values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def _joined(kind: ir.Type, low: ir.Value, high: ir.Value | None) -> ir.Value:
    """Two halves as one word, numbers or vectors; the upper one is 0 if there is none."""
    lower = arith.ExtUIOp(kind, low).result
    if high is None:
        return lower
    wide = arith.ExtUIOp(kind, high).result
    return arith.OrIOp(arith.ShLIOp(wide, _sixteen(kind)).result, lower).result


def _sixteen(kind: ir.Type) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.ConstantOp(kind, 16).result
    number = ir.IntegerAttr.get(kind.element_type, 16)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, number)).result


def _dot(total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    """total + the products of pairs of bf16. Denormal factors and results count as 0, as the processor has it."""
    kind = ir.VectorType.get([2 * LANES], ir.BF16Type.get())
    factors = [vector.BitCastOp(kind, factor).result for factor in (left, right)]
    attributes = {
        "intrin": ir.StringAttr.get(_INTRINSIC),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0]),
    }
    made = ir.Operation.create("llvm.call_intrinsic", [total.type], [total, *factors], attributes)
    return made.result
