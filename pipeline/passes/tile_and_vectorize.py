"""tile-and-vectorize: linalg on buffers → loops over register tiles of vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.access import loops_of
from pipeline.analysis.tiling import choose_tile, unsupported
from pipeline.mlir import ir, walk
from pipeline.passes.base import Pass


@dataclass(frozen=True)
class TileAndVectorize(Pass):
    """Turn linalg.generic on buffers into loops over tiles that live in vector registers.

    A tile is some rows of some vectors of the output: the vectors run along a parallel loop in which every operand is
    either fixed (it is broadcast) or moves one by one along its innermost dimension; the rows along another parallel
    loop. Reductions run inside, with the tile as their accumulator. Matrix products, direct convolutions, pooling,
    column reductions and elementwise ops all have this form. A fold along the innermost dimension, such as a sum, has
    partial results in vectors instead, which are combined at the end of each row. Edges are masked. What has neither
    form is left for convert-linalg-to-loops, with a remark.
    """

    name: ClassVar[str] = "tile-and-vectorize"
    anchor: ClassVar[str] = "func.func"

    vector_bytes: int = field(default=64, metadata={"help": "the width of a vector register"})
    registers: int = field(default=32, metadata={"help": "how many vector registers there are"})
    fma: bool = field(default=True, metadata={"help": "multiply and add with one rounding in contractions"})

    def run(self, op: ir.Operation) -> None:
        """Vectorizes what it can of one function."""
        from pipeline.passes.register_tiles import Emitter  # it needs MLIR's vector dialect, which is slow to import

        for generic in walk(op, "linalg.generic"):
            problem, loops = unsupported(generic), loops_of(generic)
            if problem or loops is None:
                self.missed(generic, problem or "a loop is bounded by no operand's dimension")
                continue
            tile = choose_tile(generic, loops, self.vector_bytes, self.registers)
            if isinstance(tile, str):
                self.missed(generic, tile)
                continue
            self.passed(generic, f"tiles of {tile.rows} x {tile.vectors} vectors of {tile.lanes}")
            with generic.location, ir.InsertionPoint(generic):
                Emitter(generic, loops, tile, self.fma).emit()
            generic.erase()
