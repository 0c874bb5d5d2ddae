"""Casts between complex and real dtypes, and tensors that are filled with a number."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.comparisons import truth
from pipeline.frontend.complex_numbers.table import RULES, aten, join, prims, real_dtype, rule, split
from pipeline.frontend.fillers import fillers


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in another dtype, complex or not: a real number gets no imaginary part, a complex one loses it."""
    if dtype == torch.bool:
        return truth(x)
    if not dtype.is_complex:
        return split(x).re.to(dtype)
    re, im = (part.to(real_dtype(dtype)) for part in split(x))
    return join(re, im)


@rule(aten._to_copy.default)
def to_copy(x: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """_to_copy(x, dtype) -> see `cast`."""
    return cast(x, dtype or x.dtype)


@rule(prims.convert_element_type.default)
def convert_element_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    """convert_element_type(x, dtype) -> see `cast`."""
    return cast(x, dtype)


def filled(shape: Any, value: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """A tensor of one number: complex of two tensors of its parts."""
    if not dtype.is_complex:
        return torch.full(shape, value, dtype=dtype, device=device)
    return join(*(torch.full(shape, part, dtype=real_dtype(dtype), device=device) for part in split(value)))


RULES.update(fillers(filled))


@rule(aten.fill.Tensor)
def fill_tensor(z: Tensor, value: Tensor) -> Tensor:
    """fill(z, value) -> of the parts of the value."""
    return cast(value, z.dtype).expand(z.shape).clone()


@rule(aten.eye.default, aten.eye.m)
def eye(*sizes: Any, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """eye(n, m) -> with zeros for imaginary parts."""
    return cast(torch.eye(*sizes, dtype=real_dtype(dtype), device=device), dtype)


@rule(aten.copy.default)
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """copy(x, source) -> the source in x's dtype and shape."""
    return cast(source, x.dtype).expand(x.shape).clone()


@rule(aten.view.dtype)
def view_as_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x.view(dtype) -> the bits of its parts, which lie beside each other in memory, seen as those of `dtype`."""
    parts = torch.stack(split(x), -1).reshape(*x.shape[:-1], -1) if x.is_complex() else x
    seen = parts.view(real_dtype(dtype))
    if dtype.is_complex:
        seen = join(*seen.reshape(*seen.shape[:-1], -1, 2).unbind(-1))
    return seen.reshape(x.shape) if x.dtype.itemsize == dtype.itemsize else seen
