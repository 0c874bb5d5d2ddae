"""Products of groups of rows with a matrix each, as layers of experts compute them: `F.grouped_mm`.

    pipeline.grouped_product(x: [S, K], y: [E, N, K], ends: [E]) → [S, N]      x[s] @ y[e].T for the rows s of group e
    pipeline.grouped_product(x: [S, M], y: [S, N], ends: [E])    → [E, M, N]   x[s].T @ y[s], added up over these rows

Group e has the rows from ends[e - 1] to ends[e]; it may be empty. Results are in float32 for 16 bits, and 0 for rows
behind the last end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: The module of transformers that registers its ops, if anybody has asked for it.
_MODULE = "transformers.integrations.moe"


@torch.library.custom_op("pipeline::grouped_product", mutates_args=())
def grouped_product(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """See the module's docstring."""
    result = grouped_product_fake(x, y, ends).zero_()
    start = 0
    for group, end in enumerate(ends.tolist()):
        mine = x[start:end].to(result.dtype)
        if y.dim() == 3:
            result[start:end] = mine @ y[group].T.to(result.dtype)
        else:
            result[group] = mine.T @ y[start:end].to(result.dtype)
        start = end
    return result


@grouped_product.register_fake
def grouped_product_fake(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """A tensor of the result's shape and dtype."""
    shape = (x.size(0), y.size(1)) if y.dim() == 3 else (ends.size(0), x.size(1), y.size(1))
    return x.new_empty(shape, dtype=torch.float32 if x.dtype.itemsize == 2 else x.dtype)


def grouped_mm(
    x: Tensor,
    y: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """_grouped_mm(x, y, ends) → pipeline.grouped_product: of rows of x, of columns of y, or of what is summed over."""
    if bias is not None:
        return NotImplemented  # eager has none either
    if offs is None:
        result = torch.bmm(x, y)
    elif x.dim() == y.dim():
        result = grouped_product(x.transpose(0, 1), y, _checked(offs, y.size(0)))
    elif x.dim() == 2:
        result = grouped_product(x, y.transpose(1, 2), _checked(offs, x.size(0)))
    else:
        result = grouped_product(y.transpose(0, 1), x, _checked(offs, y.size(1))).transpose(0, 1)
    return result.to(out_dtype or x.dtype)


def _checked(ends: Tensor, size: int) -> Tensor:
    """The ends, of which each call checks that they are in order and inside."""
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    message = "grouped_mm: offs have to ascend from 0 on, up to the number of rows that they part"
    aten._assert_async.msg(((starts <= ends) & (ends <= size)).all(), message)
    return ends


def is_loaded() -> bool:
    """Whether the ops of transformers are there: importing what registers them is left to those who use them."""
    return _MODULE in sys.modules and hasattr(torch.ops.transformers, "grouped_mm_fallback_backward")


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """The decompositions of the ops of transformers, which are there."""
    ops = torch.ops.transformers
    return {
        ops.grouped_mm_fallback.default: grouped_mm,
        ops.grouped_mm_fallback_backward.default: _backward,
    }


def _backward(x: Tensor, y: Tensor, offs: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of grouped_mm(x: [S, K], y: [E, K, N]) by x and y."""
    ends = _checked(offs, x.size(0))
    by_x, by_y = grouped_product(gradient, y, ends), grouped_product(x, gradient, ends)
    return by_x.to(x.dtype), by_y.to(y.dtype)
