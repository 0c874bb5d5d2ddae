"""Arithmetic of unsigned 16, 32 and 64 bits, of which torch has little: in 64 signed bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_SMALL = (torch.uint16, torch.uint32)
_WIDE = (*_SMALL, torch.uint64)

_LOWEST = -(2**63)


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
    return torch.bitwise_xor(signed(a), _LOWEST) < torch.bitwise_xor(signed(b), _LOWEST)


def unsigned_divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a // b of 64 unsigned bits: by half of a, corrected by one (Hacker's Delight, 9-3)."""
    x, y = signed(a), signed(b)
    half = torch.bitwise_and(torch.bitwise_right_shift(x, 1), 0x7FFFFFFFFFFFFFFF)
    divisor = torch.where(y > 0, y, 1)
    quotient = torch.div(half, divisor, rounding_mode="trunc") * 2
    rest = (x - quotient * y).view(torch.uint64)
    quotient = quotient + torch.logical_not(unsigned_less(rest, b)).to(torch.int64)
    large = torch.logical_not(unsigned_less(a, b)).to(torch.int64)  # of a divisor of 2^63 or more
    return torch.where(y < 0, large, quotient).view(torch.uint64)


def any_is_wide(tensors: Any) -> bool:
    """Whether one of the tensors is of such a type."""
    return any(isinstance(tensor, torch.Tensor) and tensor.dtype in _WIDE for tensor in tensors)
