"""The table of replacements, and what they share about dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Decomposition = Callable[..., Any]

#: The functions of this package, by the overload that they replace.
REPLACEMENTS: dict[Any, Decomposition] = {}


def replaces(*overloads: Any) -> Callable[[Decomposition], Decomposition]:
    """Puts a function into the table, for each of the overloads; each has one, whatever is imported first."""

    def register(function: Decomposition) -> Decomposition:
        if twice := REPLACEMENTS.keys() & set(overloads):
            raise ValueError(f"{', '.join(map(str, twice))} are replaced by another function already")
        REPLACEMENTS.update(dict.fromkeys(overloads, function))
        return function

    return register


def is_float(*values: Any) -> bool:
    """Whether torch computes an op on these operands in floating point."""
    return any(value.is_floating_point() if isinstance(value, Tensor) else isinstance(value, float) for value in values)


def promoted(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two operands, one of them perhaps a number, as tensors of their common dtype."""
    dtype = torch.result_type(a, b)
    device = (a if isinstance(a, Tensor) else b).device
    first, second = (
        value.to(dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=dtype, device=device)
        for value in (a, b)
    )
    return first, second


def wrapped(number: Any, beside: Tensor) -> Any:
    """A whole number as torch takes it beside a tensor of integers: wrapped around in their dtype."""
    if not isinstance(number, int) or beside.is_floating_point() or beside.dtype == torch.bool:
        return number
    limits = torch.iinfo(beside.dtype)
    return (number - limits.min) % 2**limits.bits + limits.min


def promoted_in_float32(function: Decomposition, a: Any, b: Any) -> Tensor:
    """The function of `promoted` operands; with a result of 16 bits it is computed in float32 and rounded once.

    A number has its digits in float32 then, as in torch: 1.3 is not rounded to 16 bits.
    """
    dtype = torch.result_type(a, b)
    if dtype not in (torch.float16, torch.bfloat16):
        return function(*promoted(a, b))
    wide = (value.float() if isinstance(value, Tensor) else value for value in (a, b))
    return function(*promoted(*wide)).to(dtype)


def in_float32(function: Decomposition) -> Decomposition:
    """The function with operands of 16 bits computed in float32 and rounded once, as torch does."""

    def wrapped(*tensors: Tensor) -> Tensor:
        dtype = tensors[0].dtype
        if dtype not in (torch.float16, torch.bfloat16):
            return function(*tensors)
        return function(*(tensor.float() for tensor in tensors)).to(dtype)

    return wrapped
