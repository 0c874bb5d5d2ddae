"""16-bit floats that torch computes with in float32, rounding once, where torch-mlir would round more often.

Sums are added up in float32; the greatest and the least ones are found in float32, too, for which there are vectors.
A factor that is a number is one in float32: 1e5 does not become infinite in float16, and 0.1 keeps its digits. (What is
added is rounded to 16 bits first, by torch as well.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_SMALL = (torch.float16, torch.bfloat16)

#: What folds elements of its first operand, with a result of the same dtype; it may have places behind that.
_FOLDS = (
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.mean.default,
    aten.mean.dim,
    aten.linalg_vector_norm.default,
    aten.cumsum.default,
    aten.cumprod.default,
    aten.amax.default,
    aten.amin.default,
    aten.avg_pool1d.default,
    aten.avg_pool2d.default,
    aten.avg_pool3d.default,
    aten.adaptive_avg_pool1d.default,
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
    aten.max_pool1d.default,
    aten.max_pool2d.default,
    aten.max_pool3d.default,
    aten.max_pool2d_with_indices.default,
    aten.max_pool3d_with_indices.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
)


#: Functions of elements that are more than one step to torch-mlir: 1 + erf(x) of 16 bits has few digits left.
_FUNCTIONS = (
    aten.elu.default,
    aten.gelu.default,
    aten.sigmoid.default,
    aten.silu.default,
)

#: What multiplies by numbers, or divides by them.
_PRODUCTS = (
    aten.div.Scalar,
    aten.div.Tensor,
    aten.mul.Scalar,
    aten.mul.Tensor,
)


def factors_in_float32(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions with those of products with numbers that 16 bits do not have."""
    return table | {op: _with_factor(op, table.get(op)) for op in _PRODUCTS}


def _with_factor(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """mul(x: f16, 0.1) → mul(x.float(), 0.1).to(f16), for numbers that change when they are rounded to 16 bits."""

    def decomposed(x: Any, factor: Any) -> Any:
        dtype = torch.result_type(x, factor)
        if isinstance(x, Tensor) and x.dtype == dtype and dtype in _SMALL and not _fits(factor, dtype):
            return op(x.float(), factor).to(dtype)
        return NotImplemented if otherwise is None else otherwise(x, factor)

    return decomposed


def _fits(number: float | Tensor, dtype: torch.dtype) -> bool:
    """Whether a dtype of 16 bits has exactly this number, infinities and NaN included; of tensors it is theirs."""
    if isinstance(number, Tensor):
        return number.dtype == dtype or not number.is_floating_point()
    if not isinstance(number, (int, float)):
        return not isinstance(number, (torch.SymInt, torch.SymFloat))
    kind = "<e" if dtype == torch.float16 else "<f"
    try:
        packed = struct.pack(kind, number)
    except OverflowError:
        return False
    is_same = struct.unpack(kind, packed)[0] == number
    return number != number or (is_same and (len(packed) == 2 or packed[:2] == bytes(2)))


def compute_in_float32(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions with those of folds and functions, which do for other dtypes what the table did."""
    return table | {op: _in_float32(op, table.get(op)) for op in (*_FOLDS, *_FUNCTIONS)}


def _in_float32(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """sum(x) → sum(x.float()).to(x.dtype), for x of 16 bits."""

    def decomposed(x: Tensor, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        named = {} if dtype is None else {"dtype": dtype}
        if x.dtype in _SMALL and dtype in (None, x.dtype):
            result = op(x.float(), *args, **kwargs)
            return result.to(x.dtype) if isinstance(result, Tensor) else (result[0].to(x.dtype), *result[1:])
        return NotImplemented if otherwise is None else otherwise(x, *args, **kwargs, **named)

    return decomposed
