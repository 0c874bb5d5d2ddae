"""Sums, means, variances, norms and products along dimensions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.casts import cast
from pipeline.frontend.complex_numbers.table import Rule, aten, join, rule, split


def _linear(op: Any) -> Rule:
    def decomposed(z: Tensor, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
        z = z if dtype is None else cast(z, dtype)
        if not z.is_complex():
            return op(z, *args, **kwargs)
        return join(*(op(part, *args, **kwargs) for part in split(z)))

    decomposed.__doc__ = f"{op}(z) -> of the parts."
    return decomposed


for _op in (
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.mean.default,
    aten.mean.dim,
    aten.cumsum.default,
    aten.nansum.default,
):
    rule(_op)(_linear(_op))


@rule(aten.var.correction)
def var(z: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """var(z) -> var(re) + var(im)."""
    re, im = split(z)
    return aten.var.correction(re, *args, **kwargs) + aten.var.correction(im, *args, **kwargs)


@rule(aten.var_mean.correction)
def var_mean(z: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """var_mean(z) -> see `var`, and the means of the parts."""
    re, im = (aten.var_mean.correction(part, dim, correction=correction, keepdim=keepdim) for part in split(z))
    return re[0] + im[0], join(re[1], im[1])


@rule(aten.std.correction)
def std(z: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """std(z) -> sqrt(var(z))."""
    return var(z, *args, **kwargs).sqrt()


@rule(aten.std_mean.correction)
def std_mean(z: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """std_mean(z) -> see `std`, and the means of the parts."""
    variance, mean = var_mean(z, *args, **kwargs)
    return variance.sqrt(), mean


@rule(aten.linalg_vector_norm.default)
def vector_norm(
    z: Tensor, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """linalg_vector_norm(z) -> of abs(z)."""
    wide = z if dtype is None else cast(z, dtype)
    return aten.linalg_vector_norm.default(wide.abs(), order, dim, keepdim)


@rule(aten.norm.ScalarOpt_dim, aten.norm.Scalar, aten.norm.ScalarOpt_dtype, aten.norm.ScalarOpt_dim_dtype)
def norm(z: Tensor, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """norm(z) -> linalg_vector_norm(z)."""
    return vector_norm(z, 2 if order is None else order, dim, keepdim, dtype=dtype)


@rule(aten.prod.dim_int)
def prod(z: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """prod(z, dim) -> products of halves, until one element is left, for a known size."""
    z = z if dtype is None else cast(z, dtype)
    if not z.dim():
        return z.clone()
    if not isinstance(z.size(dim), int):
        return NotImplemented
    if z.size(dim) == 0:
        return torch.ones_like(z.sum(dim, keepdim))
    while (size := z.size(dim)) > 1:
        half = size // 2
        product = z.narrow(dim, 0, half) * z.narrow(dim, half, half)
        rest = z.narrow(dim, 2 * half, size - 2 * half)
        z = torch.cat([product, rest], dim) if size % 2 else product
    return z.clone() if keepdim else z.squeeze(dim)


@rule(aten.prod.default)
def prod_of_all(z: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """prod(z) -> along the one dimension of all elements."""
    return prod(z.reshape(-1), 0, dtype=dtype)


@rule(aten.cumprod.default)
def cumprod(z: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """cumprod(z, dim) -> each element by the one 1, 2, 4, .. before it, for a known size."""
    z = z if dtype is None else cast(z, dtype)
    if not z.dim():
        return z.clone()
    step, size = 1, z.size(dim)
    if not isinstance(size, int):
        return NotImplemented
    while step < size:
        behind = z.narrow(dim, step, size - step) * z.narrow(dim, 0, size - step)
        z = torch.cat([z.narrow(dim, 0, step), behind], dim)
        step *= 2
    return z.clone()
