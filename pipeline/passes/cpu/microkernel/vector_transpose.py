"""Transposes square tiles of vectors in registers."""

from __future__ import annotations

from pipeline.mlir import ir, vector


def transposed(rows: list[ir.Value]) -> list[ir.Value]:
    """The columns of as many vectors as each has elements, a power of two: n log2(n) shuffles of two vectors.

    In each step, blocks of 1, 2, 4, ... elements change places with those of the vector as many rows below:
    [a b; c d] -> [a c; b d].
    """
    lanes, block = len(rows), 1
    rows = list(rows)
    while block < lanes:
        for upper in (row for row in range(lanes) if not row & block):
            pair = rows[upper], rows[upper + block]
            for half, row in enumerate((upper, upper + block)):
                rows[row] = vector.ShuffleOp(*pair, _mask(lanes, block, half)).result
        block *= 2
    return rows


def _mask(lanes: int, block: int, half: int) -> list[int]:
    """Takes the even (half 0) or the odd (half 1) blocks of two vectors, in turn from the first and the second."""
    return [(lane & ~block) + half * block + (lanes if lane & block else 0) for lane in range(lanes)]
