"""Tensor.view(dtype) between widths, and of truth values: torch-mlir has bit casts between numbers of one width."""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import aten, replaces

#: Integers by their width in bytes.
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@replaces(aten.view.dtype)
def view_as_dtype(x: Tensor, dtype: torch.dtype) -> Any:
    """x.view(dtype) → its bits as integers, shifted apart or together; the lowest come first in memory."""
    if torch.bool in (x.dtype, dtype):
        return _bytes_of_truth(x, dtype)
    before, after = x.dtype.itemsize, dtype.itemsize
    if before == after or not {before, after} <= set(_INTEGERS):
        return NotImplemented
    bits = x.view(_INTEGERS[before])
    return (_apart(bits, before, after) if after < before else _together(bits, before, after)).view(dtype)


def _bytes_of_truth(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Truth values are bytes of 0 and 1; what is none is true."""
    if x.dtype != torch.bool:
        return x.view(torch.uint8) != 0
    return x.clone() if dtype == torch.bool else x.to(torch.uint8).view(dtype)


def _apart(bits: Tensor, before: int, after: int) -> Tensor:
    parts = [(bits >> shift).to(_INTEGERS[after]) for shift in range(0, 8 * before, 8 * after)]
    return torch.stack(parts, -1).flatten(-2)


def _together(bits: Tensor, before: int, after: int) -> Tensor:
    count = after // before
    lines = bits.reshape(*bits.shape[:-1], bits.shape[-1] // count, count).to(_INTEGERS[after])
    low = lines & (2 ** (8 * before) - 1)
    return functools.reduce(operator.or_, [low[..., part] << 8 * before * part for part in range(count)])
