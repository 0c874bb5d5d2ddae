"""What asks: comparisons, selections, tests for special values; a complex number is true if it is not zero."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.table import Rule, aten, join, promoted, rule, split


@rule(aten.eq.Tensor, aten.eq.Scalar)
def eq(a: Any, b: Any) -> Tensor:
    """eq(a, b) -> both parts are equal."""
    x, y = promoted(a, b)
    return (x.re == y.re) & (x.im == y.im)


@rule(aten.ne.Tensor, aten.ne.Scalar)
def ne(a: Any, b: Any) -> Tensor:
    """ne(a, b) -> one of the parts differs."""
    x, y = promoted(a, b)
    return (x.re != y.re) | (x.im != y.im)


@rule(aten.where.self)
def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """where(c, a, b) -> of the parts."""
    x, y = promoted(a, b)
    return join(torch.where(condition, x.re, y.re), torch.where(condition, x.im, y.im))


@rule(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(z: Tensor, mask: Tensor, value: Any) -> Tensor:
    """masked_fill(z, mask, value) -> of the parts, with those of the value."""
    x, y = split(z), split(value)
    return join(torch.where(mask, y.re, x.re).to(x.re.dtype), torch.where(mask, y.im, x.im).to(x.re.dtype))


@rule(aten.isnan.default)
def isnan(z: Tensor) -> Tensor:
    """isnan(z) -> one of the parts is."""
    re, im = split(z)
    return re.isnan() | im.isnan()


@rule(aten.isinf.default)
def isinf(z: Tensor) -> Tensor:
    """isinf(z) -> one of the parts is."""
    re, im = split(z)
    return re.isinf() | im.isinf()


@rule(aten.isfinite.default)
def isfinite(z: Tensor) -> Tensor:
    """isfinite(z) -> both parts are."""
    re, im = split(z)
    return re.isfinite() & im.isfinite()


def truth(z: Tensor) -> Tensor:
    """Whether a number is not zero."""
    if not z.is_complex():
        return z != 0
    re, im = split(z)
    return (re != 0) | (im != 0)


def _on_truth(op: Any) -> Rule:
    def decomposed(*tensors: Any, **kwargs: Any) -> Tensor:
        return op(*(truth(tensor) if isinstance(tensor, Tensor) else tensor for tensor in tensors), **kwargs)

    decomposed.__doc__ = f"{op}(z) -> of whether z is not zero."
    return decomposed


for _op in (
    aten.all.default,
    aten.all.dim,
    aten.all.dims,
    aten.any.default,
    aten.any.dim,
    aten.any.dims,
    aten.logical_and.default,
    aten.logical_not.default,
    aten.logical_or.default,
    aten.logical_xor.default,
):
    rule(_op)(_on_truth(_op))


@rule(aten.count_nonzero.dim_IntList, aten.count_nonzero.default)
def count_nonzero(z: Tensor, dim: Any = None) -> Tensor:
    """count_nonzero(z) -> of whether z is not zero."""
    return truth(z).sum() if dim is None else truth(z).sum(dim)
