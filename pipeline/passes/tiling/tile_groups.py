"""tile-groups: the ops of a kernel run tile by tile inside of the loops that they have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.kernel_ops import ops_to_tile
from pipeline.analysis.loop_alignment import align
from pipeline.ir.linalg_op import LinalgOp
from pipeline.ir.schedule import schedule_of
from pipeline.mlir import ir, terminator
from pipeline.passes.tiling.group_tile_sizes import choose_tiles, lodgers
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class TileGroups(Pass):
    """Put one loop nest around all ops of a kernel, so that what they hand to each other is a tile that stays in cache.

    The loops are those that all ops have in common, see `pipeline.analysis.loop_alignment`; a softmax over the rows of
    a matrix becomes a loop over rows whose body has its two reductions and its elementwise ops, on one row each. Values
    between the ops become scratch tensors of the size of a tile, or lie where a result of the same size will be that is
    computed from them element by element. Kernels of one op, and matrix products, convolutions
    and pools with their epilogues, are left to tile-and-vectorize, and so are kernels that a user made with fuse-into,
    whose ops need not fit into common loops.
    """

    name: ClassVar[str] = "tile-groups"
    anchor: ClassVar[str] = "func.func"

    scratch: int = field(default=8192, metadata={"help": "how many bytes the values between the ops may take"})

    def run(self, op: ir.Operation) -> None:
        """Tiles one function if it is a kernel of several ops."""
        views = ops_to_tile(op)
        if views is None:
            return
        if any(map(_reads_nothing, views)):
            self.missed(op, "one of its loops runs no round")
            return
        alignment = align(views)
        if not alignment.common:
            self.missed(op, "its ops have no loop in common")
            return
        from pipeline.passes.tiling.group_loop_nest import Tiler

        tiles = choose_tiles(alignment, schedule_of(op).scratch or self.scratch)
        self.passed(op, f"tiles of {' x '.join(map(str, tiles))} of the loops that its ops have in common")
        block = op.regions[0].blocks[0]
        returned = list(terminator(block).operands)
        Tiler(op, alignment, tiles, lodgers(alignment, returned)).emit()


def _reads_nothing(view: LinalgOp) -> bool:
    """Whether an operand has no elements, so that a tile of it is outside of it."""
    kinds = [operand.type for operand in view.op.operands]
    return any(isinstance(kind, ir.RankedTensorType) and 0 in kind.shape for kind in kinds)
