"""Casts between complex and real dtypes, and tensors that are filled with a number."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.comparisons import truth
from pipeline.frontend.complex_numbers.table import Rule, aten, join, prims, real_dtype, rule, split


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


def _filler(value: Any) -> Rule:
    def decomposed(shape: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
        return filled(shape, value, dtype, device)

    return decomposed


def _filler_like(value: Any) -> Rule:
    def decomposed(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
        return filled(x.shape, value, dtype or x.dtype, x.device)

    return decomposed


def _new_filler(value: Any) -> Rule:
    def decomposed(x: Tensor, shape: Any, *, dtype: Any = None, **_: Any) -> Tensor:
        return filled(shape, value, dtype or x.dtype, x.device)

    return decomposed


for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    _plain = "memory_format" if _name == "empty" else "default"
    rule(getattr(getattr(aten, _name), _plain))(_filler(_value))
    rule(getattr(aten, f"{_name}_like").default)(_filler_like(_value))
    rule(getattr(aten, f"new_{_name}").default)(_new_filler(_value))


@rule(aten.full.default)
def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """full(shape, value) -> of the parts of the value."""
    return filled(shape, value, dtype or torch.result_type(value, value), device)


@rule(aten.full_like.default)
def full_like(x: Tensor, value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """full_like(x, value) -> of the parts of the value."""
    return filled(x.shape, value, dtype or x.dtype, x.device)


@rule(aten.new_full.default)
def new_full(x: Tensor, shape: Any, value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """new_full(x, shape, value) -> of the parts of the value."""
    return filled(shape, value, dtype or x.dtype, x.device)


@rule(aten.fill.Scalar)
def fill(z: Tensor, value: Any) -> Tensor:
    """fill(z, value) -> of the parts of the value."""
    return filled(z.shape, value, z.dtype, z.device)


@rule(aten.fill.Tensor)
def fill_tensor(z: Tensor, value: Tensor) -> Tensor:
    """fill(z, value) -> of the parts of the value."""
    return cast(value, z.dtype).expand(z.shape).clone()


@rule(aten.scalar_tensor.default)
def scalar_tensor(value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    """scalar_tensor(value) -> of the parts of the value."""
    return filled((), value, dtype or torch.result_type(value, value), device)


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
