"""Reductions, with their places."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, is_float, replaces


@replaces(aten.any.default, aten.any.dim, aten.any.dims)
def any_(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """any(x: numbers) → any(x != 0); in uint8 for uint8."""
    return NotImplemented if x.dtype == torch.bool else _quantified(torch.any, x, dim, keepdim)


@replaces(aten.all.default, aten.all.dim, aten.all.dims)
def all_(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """all(x: numbers) → all(x != 0); in uint8 for uint8; all(x, dims) → not any(not x, dims), which torch-mlir has."""
    if x.dtype != torch.bool:
        return _quantified(torch.all, x, dim, keepdim)
    return NotImplemented if dim is None or isinstance(dim, int) else torch.any(~x, dim, keepdim).logical_not()


@replaces(aten._is_any_true.default)
def is_any_true(x: Tensor) -> Tensor:
    """_is_any_true(x) → any(x)."""
    return torch.any(x)


@replaces(aten._is_all_true.default)
def is_all_true(x: Tensor) -> Tensor:
    """_is_all_true(x) → all(x)."""
    return torch.all(x)


def _quantified(quantifier: Decomposition, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    holds = x != 0
    result = quantifier(holds) if dim is None else quantifier(holds, dim, keepdim)
    return result.to(torch.uint8) if x.dtype == torch.uint8 else result


@replaces(aten.mean.dim)
def mean(x: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """mean(x, dtype=f64) → mean(x in f64)."""
    return NotImplemented if dtype in (None, x.dtype) else x.to(dtype).mean(dim, keepdim)


@replaces(aten.norm.Scalar, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dtype, aten.norm.ScalarOpt_dim_dtype)
def p_norm(
    x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """norm(x, p) → vector_norm(x, p); torch-mlir takes some of them, of some dtypes."""
    return torch.linalg.vector_norm(x, 2 if p is None else p, dim or None, keepdim, dtype=dtype)


@replaces(aten.linalg_vector_norm.default)
def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """vector_norm(x, 2) → sqrt(sum(x * x)), vector_norm(x, 1) → sum(|x|), instead of powers; 16 bits in float32."""
    if ord not in (1, 2) or x.is_complex():
        return NotImplemented
    given = x if dtype is None else x.to(dtype)
    wide = given.float() if given.dtype.itemsize == 2 else given
    dims = list(range(x.dim())) if dim is None else dim
    result = (wide * wide).sum(dims, keepdim).sqrt() if ord == 2 else wide.abs().sum(dims, keepdim)
    return result.to(given.dtype)


@replaces(aten.linalg_norm.default)
def norm(
    x: Tensor, ord: float | None = None, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """linalg.norm(x) → vector_norm(x, 2), and likewise for norms of vectors that are given."""
    if ord is not None and (x.dim() if dim is None else len(dim)) != 1:
        return NotImplemented
    return torch.linalg.vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@replaces(aten.dist.default)
def dist(a: Tensor, b: Tensor, p: float = 2) -> Tensor:
    """dist(a, b, p) → vector_norm(a - b, p)."""
    return torch.linalg.vector_norm(a - b, p)


@replaces(aten.max.dim)
def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """max(x, dim) → (amax(x, dim), argmax(x, dim)): torch-mlir's index misses a NaN."""
    return (x.amax(dim, keepdim), x.argmax(dim, keepdim)) if _has_folds(x, dim) else NotImplemented


@replaces(aten.min.dim)
def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """min(x, dim) → (amin(x, dim), argmin(x, dim))."""
    return (x.amin(dim, keepdim), x.argmin(dim, keepdim)) if _has_folds(x, dim) else NotImplemented


@replaces(aten.argmax.default)
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmax(x) → see `_first_extreme`."""
    return _first_extreme(x, dim, keepdim, torch.amax) if _has_folds(x, dim) else NotImplemented


@replaces(aten.argmin.default)
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """argmin(x) → see `_first_extreme`."""
    return _first_extreme(x, dim, keepdim, torch.amin) if _has_folds(x, dim) else NotImplemented


def _has_folds(x: Tensor, dim: int | None) -> bool:
    """Whether an extreme and its place are folds of their own: of floats, and along rows.

    Torch-mlir has one op for both, which misses a NaN, and has vectors only where results lie along them.
    """
    is_along_rows = dim is None or dim % max(1, x.dim()) == x.dim() - 1
    return is_float(x) or (x.dtype != torch.bool and is_along_rows)


def _first_extreme(x: Tensor, dim: int | None, keepdim: bool, extreme: Decomposition) -> Tensor:
    """The first place that holds the extreme or a NaN: the least of the numbers of such places, which is a fold."""
    if dim is None:
        place = _first_extreme(x.flatten(), 0, False, extreme)
        return place.reshape([1] * x.dim()) if keepdim else place
    size = x.shape[dim]
    dtype = torch.int32 if isinstance(size, int) and size < 2**31 else torch.int64
    places = torch.arange(size, dtype=dtype, device=x.device).reshape([-1, *[1] * (x.dim() - 1 - dim % x.dim())])
    is_there = x == extreme(x, dim, True)
    if is_float(x):
        is_there = is_there | (x != x)
    return torch.where(is_there, places, size).amin(dim, keepdim).to(torch.int64)
