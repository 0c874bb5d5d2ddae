"""Taps: which reductions of a window op on buffers are unrolled, so that what several taps read is loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pipeline.ir.indexing_maps import coefficient, moves
from pipeline.ir.linalg_op import LinalgOp, slides
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes

#: The most multiply-adds, or what else the body does, of an unrolled tile: more takes LLVM too long.
_MOST = 256

#: One iteration of unrolled loops: the number of each.
Tap = dict[int, int]


def unrolled(view: LinalgOp, tile: TileSizes) -> list[int]:
    """The innermost reductions to be unrolled; none but those of a depthwise convolution or a pool.

    There each reduction slides a window along a parallel loop. A convolution that sums over channels, too, reads each
    element for so many results that its loads do not matter.
    """
    reductions = view.summed
    if tile.folds or not slides(view):
        return []
    count = tile.rows * tile.vectors
    found: list[int] = []
    for dim in reversed(reductions):
        count *= view.sizes[dim] or _MOST + 1
        if count > _MOST:
            break
        found.insert(0, dim)
    return found


def taps(view: LinalgOp, dims: list[int]) -> list[Tap]:
    """The iterations of unrolled loops, in their order."""
    return [dict(zip(dims, numbers, strict=True)) for numbers in product(*(range(view.sizes[d] or 0) for d in dims))]


def offsets(view: LinalgOp, operand: int, steps: Sequence[tuple[int | None, int]]) -> tuple[int, ...]:
    """How far the indices of an operand move when loops move by so many: (loop, by how many); for linear maps."""
    return tuple(
        sum((coefficient(expression, dim) or 0) * step for dim, step in steps if dim is not None)
        for expression in view.maps[operand].results
    )


def vector_loop(view: LinalgOp) -> int | None:
    """The loop that vectors run along: the first in which the results move one by one, and no operand leaps."""
    for dim, reduces in enumerate(view.reductions):
        walks = [moves(indexing, dim) for indexing in view.maps]
        plain = not {"other", "blocked"} & set(walks) and all(walks[output] == "unit" for output in view.outputs)
        if not reduces and view.sizes[dim] != 1 and plain:
            return dim
    return None
