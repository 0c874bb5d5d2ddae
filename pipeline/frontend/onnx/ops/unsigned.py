"""Arithmetic of unsigned 16, 32 and 64 bits, of which torch has little: in 64 signed bits."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pipeline.errors import CaptureError

_SMALL = (torch.uint16, torch.uint32)
_WIDE = (*_SMALL, torch.uint64)


def in_signed(function: Callable[..., torch.Tensor], *tensors: torch.Tensor) -> torch.Tensor:
    """`function` of tensors in 64 signed bits, where they are unsigned and torch does not compute with their type.

    Of 64 bits this is right for what is the same function of both: sums, products, bits, equality.
    """
    dtype = tensors[0].dtype
    if dtype not in _WIDE:
        return function(*tensors)
    result = function(*(signed(tensor) for tensor in tensors))
    return result if result.dtype != torch.int64 else unsigned(result, dtype)


def signed(tensor: torch.Tensor) -> torch.Tensor:
    """An unsigned tensor in 64 signed bits; one of 64 bits by its bits."""
    return tensor.view(torch.int64) if tensor.dtype == torch.uint64 else tensor.to(torch.int64)


def unsigned(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The inverse of `signed`."""
    return tensor.view(torch.uint64) if dtype == torch.uint64 else tensor.to(dtype)


def unsigned_less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a < b of 64 unsigned bits."""
    x, y = signed(a), signed(b)
    return torch.where((x < 0) == (y < 0), x < y, y < 0)


def refuse_64_bits(tensor: torch.Tensor) -> None:
    """Raises `CaptureError` for what 64 signed bits do not give: quotients, remainders, shifts to the right."""
    if tensor.dtype == torch.uint64:
        raise CaptureError("quotients and shifts to the right of uint64 are not supported; cast to int64 or uint32")
