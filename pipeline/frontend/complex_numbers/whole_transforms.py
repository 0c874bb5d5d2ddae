"""Transforms of lengths without large prime factors, each as one op of ours, which is a kernel of its own."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pipeline.analysis.fourier_lengths import in_registers, is_kernel
from pipeline.frontend.complex_numbers.table import real_dtype
from pipeline.frontend.complex_numbers.transform_op import transform

#: The fewest columns that are transformed where they lie, and the fewest rows of these.
_FEWEST_COLUMNS, _FEWEST_ROWS = 4, 8

_OF_REALS = (torch.float32, torch.float64)


def is_whole(n: Any, dtype: torch.dtype, *, is_real: bool = False) -> bool:
    """Whether rows of n numbers are transformed as a whole; real ones take a complex transform of half the length."""
    if not isinstance(n, int) or real_dtype(dtype) not in _OF_REALS:
        return False
    return n % 2 == 0 and is_kernel(n // 2) if is_real else is_kernel(n)


def is_whole_column(z: Tensor, dim: int) -> bool:
    """Whether the columns of complex numbers are transformed where they lie, as a whole."""
    n, columns = z.size(dim), math.prod(z.shape[dim + 1 :])
    if not isinstance(n, int) or not isinstance(columns, int) or real_dtype(z.dtype) not in _OF_REALS:
        return False
    return n >= _FEWEST_ROWS and in_registers(n) is not None and columns >= _FEWEST_COLUMNS


def transformed_rows(z: Tensor, dim: int, sign: int, scale: float) -> Tensor:
    """scale * the transform of complex numbers along a dim, which comes last for it."""
    pairs = _pairs(z).movedim(dim, -2)
    n = z.size(dim)
    rows = transform(pairs.reshape(-1, 2 * n), n, sign, float(scale), 2 * n)
    return torch.view_as_complex(rows.reshape(pairs.shape).movedim(-2, dim))


def transformed_columns(z: Tensor, dim: int, sign: int, scale: float) -> Tensor:
    """scale * the transform of complex numbers along a dim that is not the last one."""
    n, columns = z.size(dim), math.prod(z.shape[dim + 1 :])
    images = _pairs(z).reshape(-1, n, 2 * columns)
    done = transform(images, n, sign, float(scale), 2 * columns)
    return torch.view_as_complex(done.reshape(*z.shape, 2))


def half_spectrum_of(x: Tensor, scale: float) -> Tensor:
    """scale * the first n // 2 + 1 elements of the transforms of real numbers, [.., n]."""
    n = x.size(-1)
    rows = transform(x.reshape(-1, n), n, -1, float(scale), n + 2)
    return torch.view_as_complex(rows.reshape(*x.shape[:-1], n // 2 + 1, 2))


def real_numbers_of(half: Tensor, n: int, scale: float) -> Tensor:
    """scale * the n real numbers of half a spectrum, [.., n // 2 + 1]."""
    rows = transform(_pairs(half).reshape(-1, n + 2), n, 1, float(scale), n)
    return rows.reshape(*half.shape[:-1], n)


def _pairs(z: Tensor) -> Tensor:
    """[.., 2], of what only for torch's eyes has to be copied first; see `split`."""
    return torch.view_as_real(z.clone() if z.is_conj() else z)
