"""tile-groups-to-blocks: the ops of a kernel run in one loop around all of them, a block of a GPU each."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.kernel_ops import ops_to_tile
from pipeline.analysis.loop_alignment import Alignment, align
from pipeline.analysis.op_naming import is_product
from pipeline.ir.attributes import STREAMED
from pipeline.ir.element_types import element_bytes
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir, terminator
from pipeline.passes.tiling.group_loop_nest import Tiler
from pipeline.passes.tiling.group_tile_sizes import in_tiling_order
from pipeline.passmanager.base import Pass

#: No device stores what is handed on in less.
_LEAST_BYTES = 4


@dataclass(frozen=True)
class TileGroupsToBlocks(Pass):
    """Put one loop nest around all ops of a kernel, so that a block of threads can do all of them for one iteration.

    The loops are those that all ops have in common, see `pipeline.analysis.loop_alignment`: the rows of a softmax or of
    a layer norm, the queries of an attention. What the ops hand to each other for one iteration is kept in registers
    or in memory that the threads of the block share. Where a kernel has matrix products, a block takes several rows.
    What mark-flash-attention has marked is left alone, and so are, with a remark, kernels for which that memory does
    not suffice, or is not known; kernels with no reduction, and matrix products, convolutions and pools with their
    epilogues, are left to map-to-threads.
    """

    name: ClassVar[str] = "tile-groups-to-blocks"
    anchor: ClassVar[str] = "func.func"

    scratch: int = field(default=12288, metadata={"help": "how many bytes the values between the ops may take"})
    rows: int = field(default=16, metadata={"help": "how many rows of matrix products a block takes at most"})

    blocks: int = field(default=0, metadata={"help": "a block takes fewer rows where there would be fewer blocks"})

    def run(self, op: ir.Operation) -> None:
        """Puts loops around the ops of one function if it is a kernel of several ops."""
        views = None if STREAMED in op.attributes else ops_to_tile(op)
        if views is None or not any(any(view.reductions) for view in views):
            return
        alignment = align(views)
        refused = _why_not(op, alignment)
        if refused is not None:
            self.missed(op, f"its ops are launches of their own: {refused}")
            return
        tiles = self._tiles(op, alignment)
        if tiles is None:
            self.missed(op, "its ops are launches of their own: what they hand on does not fit into shared memory")
            return
        self.passed(op, f"one block for {' x '.join(map(str, tiles))} of the loops that its ops have in common")
        Tiler(op, alignment, tiles).emit()

    def _tiles(self, kernel: ir.Operation, alignment: Alignment) -> list[int] | None:
        """The size of a tile along each common loop; None if what is handed on does not fit."""
        iteration_bytes = _bytes_of_one(kernel, alignment)
        if iteration_bytes > self.scratch:
            return None
        loops = in_tiling_order(alignment)
        tiles = [1] * len(loops)
        size = alignment.ops[0].sizes[loops[-1][0]]
        if size and any(is_product(view.op) for view in alignment.ops):
            most = min(self.rows, size - 1, self.scratch // max(1, iteration_bytes))
            total = prod(alignment.ops[0].sizes[common[0]] or 1 for common in loops)
            most = max(1, min(most, total // self.blocks)) if self.blocks else most
            tiles[-1] = max(rows for rows in range(1, most + 1) if size % rows == 0)
        return tiles


def _why_not(kernel: ir.Operation, alignment: Alignment) -> str | None:
    """Why the ops cannot be done block by block; None if they can."""
    if not alignment.common:
        return "they have no loop in common"
    if any(alignment.ops[0].sizes[loops[0]] == 0 for loops in alignment.common):
        return "there is nothing to do"
    for number, view in enumerate(alignment.ops):
        around = {loops[number] for loops in alignment.common}
        if any(not view.sizes[loop] for loop in range(view.loops) if loop not in around):
            return "the size of a loop inside of a block is not known, or 0"
    if any(value in alignment.inner for value in _returned(kernel)):
        return "a result of the kernel is read by another of its ops"
    return None


def _returned(kernel: ir.Operation) -> list[ir.Value]:
    block = kernel.regions[0].blocks[0]
    return list(terminator(block).operands)


def _bytes_of_one(kernel: ir.Operation, alignment: Alignment) -> int:
    """What the values between the ops take for one iteration; one that takes another one's place takes nothing."""
    kept = [value for view in alignment.ops for value in view.op.results if value not in _returned(kernel)]
    new = [value for value in kept if not _takes_a_place(value, alignment)]
    return sum(
        prod(size or 1 for size in alignment.sizes(value)) * max(_LEAST_BYTES, element_bytes(value)) for value in new
    )


def _takes_a_place(value: ir.Value, alignment: Alignment) -> bool:
    """Whether the op of a value is elementwise and the last to read another value of the same type and indices."""
    number = next(number for number, view in enumerate(alignment.ops) if value in list(view.op.results))
    view = alignment.ops[number]
    if not view.op.name.startswith("linalg.") or not view.is_elementwise:
        return False
    wrote = view.maps[view.inputs + ir.OpResult(value).result_number]
    return any(
        operand in alignment.inner
        and operand.type == value.type
        and view.maps[position] == wrote
        and not _is_read_later(operand, alignment.ops[number + 1 :])
        for position, operand in enumerate(list(view.op.operands)[: view.inputs])
    )


def _is_read_later(value: ir.Value, later: tuple[LinalgOp, ...]) -> bool:
    return any(value in list(view.op.operands) for view in later)
