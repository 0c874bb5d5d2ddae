"""Taps: which reductions of a window op on buffers are unrolled, so that what several taps read is loaded once."""

from __future__ import annotations

from itertools import product

from pipeline.analysis.access import Loops, coefficient
from pipeline.analysis.tiling import Tile

#: The most multiply-adds, or what else the body does, of an unrolled tile: more takes LLVM too long.
_MOST = 256

#: One iteration of unrolled loops: the number of each.
Tap = dict[int, int]


def unrolled(loops: Loops, tile: Tile) -> list[int]:
    """The innermost reductions to be unrolled; none but those of a depthwise convolution or a pool.

    There each reduction slides a window along a parallel loop. A convolution that sums over channels, too, reads each
    element for so many results that its loads do not matter.
    """
    reductions = [dim for dim, reduces in enumerate(loops.reductions) if reduces]
    if tile.folds or not all(_slides(loops, dim) for dim in reductions):
        return []
    count, found = tile.rows * tile.vectors, []
    for dim in reversed(reductions):
        count *= loops.sizes[dim] or _MOST + 1
        if count > _MOST:
            break
        found.insert(0, dim)
    return found


def taps(loops: Loops, dims: list[int]) -> list[Tap]:
    """The iterations of unrolled loops, in their order."""
    return [dict(zip(dims, numbers, strict=True)) for numbers in product(*(range(loops.sizes[d] or 0) for d in dims))]


def offsets(loops: Loops, operand: int, steps: dict[int | None, int]) -> tuple[int, ...]:
    """How far the indices of an operand move when each loop of `steps` moves by so many; for linear maps."""
    return tuple(
        sum((coefficient(expression, dim) or 0) * step for dim, step in steps.items() if dim is not None)
        for expression in loops.maps[operand].results
    )


def _slides(loops: Loops, dim: int) -> bool:
    """Whether an index of an input is the sum of a reduction and a parallel loop, with all other maps linear."""
    parallel = [loop for loop, reduces in enumerate(loops.reductions) if not reduces and loops.sizes[loop] != 1]
    expressions = [expression for indexing in loops.maps[: loops.inputs] for expression in indexing.results]
    if any(coefficient(expression, loop) is None for expression in expressions for loop in range(len(loops.sizes))):
        return False
    return any(
        coefficient(expression, dim) and any(coefficient(expression, loop) for loop in parallel)
        for expression in expressions
    )

