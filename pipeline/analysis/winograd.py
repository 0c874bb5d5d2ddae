"""Winograd's algorithm for 3x3 convolutions: which ones it is for, how they are tiled, and its matrices.

F(m x m, 3 x 3) computes tiles of m x m results from tiles of (m + 2) x (m + 2) data d and a weight g as
A^T [(G g G^T) * (B^T d B)] A, where the products in the middle, summed over channels, are matrix products. See Lavin
and Gray, Fast Algorithms for Convolutional Neural Networks, 2015. F(2, 3) multiplies 2.25 times less than a convolution
does and is about as exact; F(4, 3) multiplies 4 times less and loses one or two digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pipeline.ir.indexing_maps import block_of
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import ir

#: B^T, G and A^T of F(m, 3), by m.
DATA = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}
WEIGHT = {
    2: ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}
RESULT = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
}

#: The transformed data of the tiles that are computed at once should take so many bytes, a part of the second-level
#: cache; more than that only for one row of tiles, up to the most.
_BYTES, _MOST_BYTES = 900_000, 2_000_000

#: Multiply-adds a nanosecond, bytes of weights a nanosecond, and what transforming an element of data or of a result
#: takes in nanoseconds, on one core of an AVX-512 machine.
_RATE, _STREAM, _TRANSFORM = 56.0, 20.0, 0.25


@dataclass(frozen=True)
class Sizes:
    """A 3x3 convolution: n images of h x w results from c channels to f."""

    n: int
    h: int
    w: int
    c: int
    f: int

    def tiles(self, m: int) -> tuple[int, int]:
        """The rows and columns of tiles of an image."""
        return ceil(self.h / m), ceil(self.w / m)

    def rows_at_once(self, m: int) -> int:
        """How many rows of tiles are transformed, multiplied and transformed back before the next ones.

        As many as the cache takes; up to half as many where threads have nothing to share else but an odd number.
        """
        rows, columns = self.tiles(m)
        most = max(1, min(rows, _BYTES // self._row_bytes(m, columns)))
        counts = [count for count in range(most, 0, -1) if rows % count == 0]
        even = (count for count in counts if rows == count or rows // count % 2 == 0)
        return next((count for count in even if 2 * count >= counts[0]), counts[0])

    def pays(self, m: int) -> bool:
        """Whether it takes less time than a direct convolution, by an estimate with a margin."""
        return self.saves(m) > 0.1 * self._direct

    def saves(self, m: int) -> float:
        """The nanoseconds that it takes less than a direct convolution, by an estimate; 0 where it takes more."""
        rows, columns = self.tiles(m)
        if not self._direct or self._row_bytes(m, columns) > _MOST_BYTES:
            return 0.0
        points, tiles = (m + 2) ** 2, self.n * rows * columns
        streamed = points * self.c * self.f * 4 * self.n * rows / self.rows_at_once(m)
        products = max(tiles * points * self.c * self.f / _RATE, streamed / _STREAM)
        transforms = tiles * points * (self.c + self.f) * _TRANSFORM
        return max(0.0, self._direct - products - transforms)

    @property
    def _direct(self) -> float:
        return self.n * self.h * self.w * 9 * self.c * self.f / _RATE

    def _row_bytes(self, m: int, columns: int) -> int:
        return (m + 2) ** 2 * columns * self.c * 4


def read_sizes(view: LinalgOp) -> Sizes | None:
    """The sizes of a 3x3 convolution of stride 1 with channels last; its first two inputs are data and weight.

    data: [n, h + 2, w + 2, c], weight: [f / block, 3, 3, c, block], in f32. None if it is something else.
    """
    if view.inputs not in (2, 3) or view.loops != 7 or None in view.sizes:
        return None
    if not all(isinstance(ir.ShapedType(value.type).element_type, ir.F32Type) for value in view.operands):
        return None
    n, h, w, f, r, s, c = (ir.AffineDimExpr.get(loop) for loop in range(7))
    if list(view.maps[0].results) != [n, h + r, w + s, c] or list(view.maps[-1].results) != [n, h, w, f]:
        return None
    block = block_of(view.maps[1], 3)
    if block is None or list(view.maps[1].results)[1:4] != [r, s, c]:
        return None
    images, height, width, channels, rows, columns, data = (size or 0 for size in view.sizes)
    if (rows, columns) != (3, 3) or channels % block:
        return None
    return Sizes(images, height, width, data, channels)
