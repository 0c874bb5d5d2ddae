"""Resizing whose elements average all that they cover, `interpolate(.., antialias=True)`: itself and its gradient.

Along each dim it is a product with a matrix of weights, [wanted, size]. Where the sizes are known and a row of it has
few weights, the taps, these are what is computed; otherwise the products are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.errors import PipelineError
from pipeline.frontend.decompositions.replacements.interpolation import weighted_bytes
from pipeline.frontend.decompositions.replacements.separable import transposed_products
from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, replaces

#: How many columns a matrix has for each tap, at most, where a product is the faster way.
_COLUMNS_OF_A_TAP = 8


@dataclass(frozen=True)
class _Filter:
    """The weight of an element by its distance, in elements of the coarser grid; 0 from `radius` on."""

    radius: int
    weight: Callable[[Tensor], Tensor]


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance).clamp(min=0)


def _cubic(distance: Tensor) -> Tensor:
    """The kernel of Keys with a = -0.5, which resizing without antialias has at -0.75."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


def _lanczos(distance: Tensor) -> Tensor:
    """sinc(distance) sinc(distance / 3) below 3."""
    return torch.where(distance < 3, torch.sinc(distance) * torch.sinc(distance / 3), 0.0)


FILTERS = {"bilinear": _Filter(1, _triangle), "bicubic": _Filter(2, _cubic), "lanczos": _Filter(3, _lanczos)}


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

    def centers(self, dtype: torch.dtype) -> Tensor:
        """Where the elements have their centers: [wanted]."""
        return (torch.arange(self.wanted, dtype=dtype) + 0.5) * (self.numerator / self.denominator)

    def weights(self, form: _Filter, places: Tensor, centers: Tensor) -> Tensor:
        """Of the elements at `places`, [wanted or 1, any number], for those with the centers: each row sums to 1."""
        shrunk = self.denominator / torch.sym_max(self.numerator, self.denominator)
        distances = (places.to(centers.dtype) - centers.unsqueeze(1) + 0.5) * shrunk
        weights = form.weight(distances.abs())
        return weights / weights.sum(1, keepdim=True)

    def matrix(self, form: _Filter, dtype: torch.dtype) -> Tensor:
        """All weights: [wanted, size]."""
        return self.weights(form, torch.arange(self.size).unsqueeze(0), self.centers(dtype))

    def taps(self, form: _Filter) -> int:
        """How many elements have a weight in a row, at most; of known sizes."""
        return min(2 * math.ceil(self._reach(form)) + 1, int(self.size))

    def places(self, form: _Filter, centers: Tensor) -> Tensor:
        """Where these elements are: [wanted, taps]."""
        taps = self.taps(form)
        first = (centers - self._reach(form) + 0.5).to(torch.int64).clamp(min=0).clamp(max=self.size - taps)
        return first.unsqueeze(1) + torch.arange(taps)

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
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        rows = _along_rows(form, x.to(wide), grids[0])
        return _along_columns(form, rows, grids[1]).to(x.dtype)

    return resized


def _by_taps(form: _Filter, grid: _Grid) -> bool:
    return grid.is_known and int(grid.size) > _COLUMNS_OF_A_TAP * grid.taps(form)


def _along_rows(form: _Filter, x: Tensor, grid: _Grid) -> Tensor:
    if not _by_taps(form, grid):
        return grid.matrix(form, x.dtype) @ x
    centers = grid.centers(x.dtype)
    places = grid.places(form, centers)
    taken = x.index_select(2, places.flatten()).unflatten(2, places.shape)
    return (taken * grid.weights(form, places, centers).unsqueeze(2)).sum(3)


def _along_columns(form: _Filter, x: Tensor, grid: _Grid) -> Tensor:
    if not _by_taps(form, grid):
        return x @ grid.matrix(form, x.dtype).mT
    centers = grid.centers(x.dtype)
    places = grid.places(form, centers)
    taken = x.index_select(3, places.flatten()).unflatten(3, places.shape)
    return (taken * grid.weights(form, places, centers)).sum(4)


def _of_bytes(form: _Filter, x: Tensor, grids: list[_Grid]) -> Tensor:
    """In fixed-point arithmetic, along the width first, as eager does."""
    if not all(grid.is_known for grid in grids):
        raise PipelineError("interpolation of uint8 needs sizes known in advance; make it float32 and round after")
    for dim, grid in ((3, grids[1]), (2, grids[0])):
        if grid.size != grid.wanted:
            centers = grid.centers(torch.float64)
            places = grid.places(form, centers)
            weights = grid.weights(form, places, centers)
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
