"""Which factor of a product lies in the lanes of vectors, so that one load is for several steps of a sum.

Where multiply-adds take a lane of a vector for a factor of all lanes, as those of AArch64 do, the rows of a product's
first operand are loaded as vectors along the sum: a tile of 8 x 2 vectors loads 16 of them for 64 multiply-adds. Where
its elements lie side by side for the rows, as weights may, they are loaded along those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.analysis.dot_product import DotProduct
from pipeline.ir.element_types import element_type, is_scalar
from pipeline.ir.indexing_maps import moves
from pipeline.ir.linalg_op import LinalgOp, slides
from pipeline.mlir import ir, vector
from pipeline.passes.cpu.microkernel.blocked_sums import Blocks
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: How many vector registers there are for accumulators, what lies in lanes, and two steps of what is multiplied.
_REGISTERS = 32


def with_lane_factor(view: LinalgOp, tile: TileSizes, dot: DotProduct | None = None) -> TileSizes:
    """The tile, with its factor in lanes if it has one, and the registers suffice for that.

    Args:
        dot: the dot product that the op is computed by, whose lanes are groups of elements.
    """
    if tile.folds or not any(view.reductions) or dot is None and not _is_product(view):
        return tile
    steps = 1 if dot is None else dot.steps
    for operand in range(2):
        walks = view.maps[operand]
        found = next((dim for dim in _candidates(view, tile, steps) if moves(walks, dim) == "unit"), None)
        if found is not None and moves(walks, tile.vector_dim) == "fixed":
            return replace(tile, lane_factor=operand, lane_dim=found)
    return tile


def last_sum(view: LinalgOp) -> int:
    """The innermost loop of a sum that has several iterations."""
    return next((dim for dim in reversed(view.summed) if view.sizes[dim] != 1), view.summed[-1])


def _candidates(view: LinalgOp, tile: TileSizes, steps: int) -> Iterator[int]:
    """The loops along which vectors of a factor are worth a load: they are long enough, and the registers suffice."""
    innermost = last_sum(view)
    size = view.sizes[innermost]
    if tile.rows * (tile.vectors + 1) + 2 * tile.vectors <= _REGISTERS and (size is None or size >= steps * tile.lanes):
        yield innermost
    if steps == 1 and tile.row_dim is not None and tile.rows >= tile.lanes:
        yield tile.row_dim


def _is_product(view: LinalgOp) -> bool:
    """Whether an op adds up products of two buffers, all in f32 or all in f64, and no window slides over one."""
    kinds = {element_type(operand) for operand in view.operands}
    if view.inputs != 2 or len(view.outputs) != 1 or any(map(is_scalar, view.operands)) or slides(view):
        return False
    names = [op.name for op in view.body_ops]
    return kinds in ({ir.F32Type.get()}, {ir.F64Type.get()}) and names == ["arith.mulf", "arith.addf"]


def lane(value: ir.Value, number: int) -> ir.Value:
    """A lane of a vector, in all lanes."""
    return vector.BroadcastOp(value.type, vector.ExtractOp(value, [], [number]).result).result


def in_whole_vectors(blocks: Blocks | None, lanes: int) -> Blocks | None:
    """Blocks of a sum that has so many steps at once, so that all but the last block are whole."""
    return None if blocks is None else replace(blocks, iterations=-(-blocks.iterations // lanes) * lanes)


def load_lanes(buffer: ir.Value, indices: Sequence[ir.Value], lanes: int) -> ir.Value:
    """Elements of a buffer along its innermost dim, as the lanes of a vector."""
    kind = ir.VectorType.get([lanes], ir.MemRefType(buffer.type).element_type)
    return vector.LoadOp(kind, buffer, list(indices)).result
