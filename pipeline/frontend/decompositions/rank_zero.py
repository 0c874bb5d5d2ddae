"""Ops along a dimension of a tensor that has none: torch takes dimension 0 or -1 of it for one of size 1.

torch-mlir does not: it refuses such ops, and the greatest element of such a tensor keeps it busy for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten

#: What takes a tensor and a dimension, or several; a result has no dimension either.
_ALONG_A_DIM = (
    aten._log_softmax.default,
    aten._softmax.default,
    aten.all.dim,
    aten.all.dims,
    aten.amax.default,
    aten.amin.default,
    aten.any.dim,
    aten.any.dims,
    aten.argmax.default,
    aten.argmin.default,
    aten.cummax.default,
    aten.cummin.default,
    aten.cumprod.default,
    aten.cumsum.default,
    aten.flip.default,
    aten.index_select.default,
    aten.kthvalue.default,
    aten.linalg_vector_norm.default,
    aten.logcumsumexp.default,
    aten.logsumexp.default,
    aten.max.dim,
    aten.mean.dim,
    aten.median.dim,
    aten.min.dim,
    aten.mode.default,
    aten.nanmedian.dim,
    aten.prod.dim_int,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
    aten.sort.default,
    aten.sort.stable,
    aten.sum.dim_IntList,
    aten.topk.default,
    aten.var.correction,
    aten.var_mean.correction,
)


def give_a_dim(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions, with tensors of no dimension given one, and otherwise what the table did."""
    return table | {op: _along_one(op, table.get(op)) for op in _ALONG_A_DIM}


def _along_one(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """sort(x: []) → sort(x as [1]) as []."""

    def decomposed(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim():
            return NotImplemented if otherwise is None else otherwise(x, *args, **kwargs)
        line, args, kwargs = tree_map_only(Tensor, _line, (x, args, kwargs))
        return tree_map_only(Tensor, _point, op(line, *args, **kwargs))

    return decomposed


def _line(x: Tensor) -> Tensor:
    return x if x.dim() else x.reshape(1)


def _point(x: Tensor) -> Tensor:
    return x.reshape(())
