"""transpose-in-registers: copies that turn rows into columns go by square tiles of vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.access import Loops, loops_of
from pipeline.analysis.epilogue import follows_anchor
from pipeline.analysis.tiling import element_type, unsupported
from pipeline.mlir import ir, walk
from pipeline.passes.base import Pass

#: What vectors are shuffled as; shuffles of smaller elements take several instructions each.
_BITS = (32, 64)


@dataclass(frozen=True)
class TransposeInRegisters(Pass):
    """Turn linalg.generic ops that only permute a buffer's dimensions, the innermost one among them, into tiles.

    A tile is as many rows as a vector has elements: so many vectors are read, transposed by shuffles, and written, and
    each cache line is touched once. What is left at the edges is copied element by element. Taken are elements of 32
    and 64 bits, where both dimensions have room for a tile. Copies that keep the innermost dimension are left for
    tile-and-vectorize, and so are those of what a reduction right before them computes, whose epilogue they may be.
    """

    name: ClassVar[str] = "transpose-in-registers"
    anchor: ClassVar[str] = "func.func"

    vector_bytes: int = field(default=64, metadata={"help": "the width of a vector register"})

    def run(self, op: ir.Operation) -> None:
        """Rewrites the transposes of one function."""
        for generic in walk(op, "linalg.generic"):
            self._rewrite(generic)

    def _rewrite(self, generic: ir.Operation) -> None:
        loops = loops_of(generic)
        if loops is None or not _permutes(generic, loops) or unsupported(generic) or follows_anchor(generic, loops):
            return
        column, row = _innermost(loops.maps[0]), _innermost(loops.maps[1])
        if column == row:
            return
        bits = _bits(element_type(generic.operands[0]))
        if bits not in _BITS:
            self.missed(generic, f"elements of {bits} bits are not transposed in registers")
            return
        lanes = self.vector_bytes * 8 // bits
        if any(size is not None and size < lanes for size in (loops.sizes[column], loops.sizes[row])):
            self.missed(generic, f"there is no room for a tile of {lanes} x {lanes}")
            return
        from pipeline.passes.transpose_tiles import emit  # it needs MLIR's vector dialect, which is slow to import

        self.passed(generic, f"transposed in tiles of {lanes} x {lanes}")
        with generic.location, ir.InsertionPoint(generic):
            emit(generic, loops, column, row, lanes)
        generic.erase()


def _permutes(generic: ir.Operation, loops: Loops) -> bool:
    """Whether an op copies its one input to its one output with the dimensions in another order."""
    if len(loops.maps) != 2 or loops.inputs != 1 or len(loops.sizes) < 2 or any(loops.reductions):
        return False
    block = generic.regions[0].blocks[0]
    copies = len(block.operations) == 1 and block.operations[0].operation.operands[0] == block.arguments[0]
    return copies and all(indexing.is_permutation for indexing in loops.maps)


def _innermost(indexing: ir.AffineMap) -> int:
    """The loop along an operand's innermost dimension."""
    return ir.AffineDimExpr(indexing.results[len(indexing.results) - 1]).position


def _bits(element: ir.Type) -> int:
    return ir.IntegerType(element).width if isinstance(element, ir.IntegerType) else ir.FloatType(element).width
