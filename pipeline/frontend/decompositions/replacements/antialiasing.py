"""Resizing whose elements average all that they cover, `interpolate(.., antialias=True)`: itself and its gradient.

Along each dim it is a product with a matrix of weights, [wanted, size]. Where the sizes are known and a row of it has
few weights, the taps, these are what is computed; otherwise the products are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.interpolation import weighted_bytes
from pipeline.frontend.decompositions.replacements.resize_kernels import (
    Kernel,
    keys,
    known_sizes_of_bytes,
    lanczos,
    linear,
)
from pipeline.frontend.decompositions.replacements.separable import transposed_products
from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, replaces

#: How many columns a matrix has for each tap, at most, where a product is the faster way.
_COLUMNS_OF_A_TAP = 8


@dataclass(frozen=True)
class _Filter:
    """A kernel over distances in elements of the coarser grid; 0 from `radius` on."""

    radius: int
    kernel: Kernel


FILTERS = {"bilinear": _Filter(1, linear), "bicubic": _Filter(2, keys(-0.5)), "lanczos": _Filter(3, lanczos)}


@dataclass(frozen=True)
class _Grid:
    """`wanted` elements over `size` ones, each `numerator / denominator` of these wide."""

    size: Any
    wanted: Any
    numerator: Any
    denominator: Any

    @staticmethod
    def of(size: Any, wanted: Any, align_corners: bool, scale: float | None) -> _Grid:
        if align_corners:
            several = torch.sym_min(wanted - 1, 1)
            return _Grid(size, wanted, (size - 1) * several, torch.sym_max(wanted - 1, 1))
        return _Grid(size, wanted, 1.0, scale) if scale else _Grid(size, wanted, size, wanted)

    @property
    def is_known(self) -> bool:
        return isinstance(self.size, int) and isinstance(self.wanted, int)

    def matrix(self, form: _Filter, dtype: torch.dtype) -> Tensor:
        """The weights: [wanted, size]."""
        return self._weights(form, torch.arange(self.size).unsqueeze(0), self._centers(dtype))

    def count(self, form: _Filter) -> int:
        """How many elements have a weight in a row, at most; of known sizes."""
        return min(2 * math.ceil(self._reach(form)) + 1, int(self.size))

    def taps(self, form: _Filter, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Where these elements are, and their weights: [wanted, count] each."""
        count, centers = self.count(form), self._centers(dtype)
        first = (centers - self._reach(form) + 0.5).to(torch.int64).clamp(min=0).clamp(max=self.size - count)
        places = first.unsqueeze(1) + torch.arange(count)
        return places, self._weights(form, places, centers)

    def _centers(self, dtype: torch.dtype) -> Tensor:
        """Where the elements have their centers: [wanted]."""
        return (torch.arange(self.wanted, dtype=dtype) + 0.5) * (self.numerator / self.denominator)

    def _weights(self, form: _Filter, places: Tensor, centers: Tensor) -> Tensor:
        """Of the elements at `places`, [wanted or 1, any number], for those with the centers: each row sums to 1."""
        shrunk = self.denominator / torch.sym_max(self.numerator, self.denominator)
        weights = form.kernel(((places.to(centers.dtype) - centers.unsqueeze(1) + 0.5) * shrunk).abs())
        return weights / weights.sum(1, keepdim=True)

    def _reach(self, form: _Filter) -> float:
        return float(form.radius * max(self.numerator / self.denominator, 1.0))


def _grids(size: Any, wanted: Any, align_corners: bool, scales: tuple[float | None, ...]) -> list[_Grid]:
    """Of the height and the width."""
    each = zip(size, wanted, scales or (None, None), strict=True)
    return [_Grid.of(length, count, align_corners, scale) for length, count, scale in each]


def _resized(form: _Filter) -> Decomposition:
    def resized(x: Tensor, size: Any, align_corners: bool, *scales: float | None) -> Tensor:
        """_upsample_bilinear2d_aa(x: [n, c, h, w]) → weighted sums along the height and along the width."""
        grids = _grids(x.shape[2:], size, align_corners, scales)
        if x.dtype == torch.uint8:
            return _of_bytes(form, x, grids)
        if not x.is_floating_point():
            return NotImplemented  # which torch refuses
        wide = x.to(torch.float64 if x.dtype == torch.float64 else torch.float32)
        return _along(3, _along(2, wide, form, grids[0]), form, grids[1]).to(x.dtype)

    return resized


def _along(dim: int, x: Tensor, form: _Filter, grid: _Grid) -> Tensor:
    """Weighted sums along the height, dim 2, or the width, dim 3."""
    if not grid.is_known or int(grid.size) <= _COLUMNS_OF_A_TAP * grid.count(form):
        matrix = grid.matrix(form, x.dtype)
        return matrix @ x if dim == 2 else x @ matrix.mT
    places, weights = grid.taps(form, x.dtype)
    taken = x.index_select(dim, places.flatten()).unflatten(dim, places.shape)
    return (taken * (weights.unsqueeze(2) if dim == 2 else weights)).sum(dim + 1)


def _of_bytes(form: _Filter, x: Tensor, grids: list[_Grid]) -> Tensor:
    """In fixed-point arithmetic, along the width first, as eager does."""
    known_sizes_of_bytes(*(length for grid in grids for length in (grid.size, grid.wanted)))
    for dim, grid in ((3, grids[1]), (2, grids[0])):
        if grid.size != grid.wanted:
            places, weights = grid.taps(form, torch.float64)
            x = weighted_bytes(x, dim, list(places.unbind(1)), list(weights.unbind(1)))
    return x.clone()


def _gradient(form: _Filter) -> Decomposition:
    def gradient(g: Tensor, output_size: Any, input_size: Any, align_corners: bool, *scales: float | None) -> Tensor:
        """_upsample_bilinear2d_aa_backward(g) → A' g B of the matrices A and B of its dims."""
        dtype = torch.float64 if g.dtype == torch.float64 else torch.float32
        grids = _grids(input_size[2:], output_size, align_corners, scales)
        return transposed_products(g, [grid.matrix(form, dtype) for grid in grids])

    return gradient


for _name, _form in FILTERS.items():
    replaces(getattr(aten, f"_upsample_{_name}2d_aa").default)(_resized(_form))
    replaces(getattr(aten, f"_upsample_{_name}2d_aa_backward").default)(_gradient(_form))
