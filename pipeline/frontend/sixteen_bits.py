"""Sums of 16-bit floats: torch adds them up in float32 and rounds once, torch-mlir would round after each addition.

The greatest and the least ones are found in float32, too, for which there are vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_SMALL = (torch.float16, torch.bfloat16)

#: What folds elements of its first operand, with a result of the same dtype.
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
)


def fold_in_float32(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions with those of folds, which do for other dtypes what the table did."""
    return table | {op: _in_float32(op, table.get(op)) for op in _FOLDS}


def _in_float32(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """sum(x) → sum(x.float()).to(x.dtype), for x of 16 bits."""

    def decomposed(x: Tensor, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        named = {} if dtype is None else {"dtype": dtype}
        if x.dtype in _SMALL and dtype in (None, x.dtype):
            return op(x.float(), *args, **kwargs).to(x.dtype)
        return NotImplemented if otherwise is None else otherwise(x, *args, **kwargs, **named)

    return decomposed
