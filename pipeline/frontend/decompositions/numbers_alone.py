"""Arithmetic whose first operand is a Python number, or both are: tensors of no dimension.

As in torch.div(x.size(1), 2, rounding_mode="trunc"), or in 2 * np.arange(9), which dynamo has torch compute. torch's
own decompositions of these ops ask their operands for what only tensors have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: What torch lets be called without a tensor.
_OPS = (
    aten.add.Tensor,
    aten.div.Tensor,
    aten.div.Tensor_mode,
    aten.floor_divide.default,
    aten.mul.Tensor,
    aten.sub.Tensor,
)

_DTYPES = {bool: torch.bool, torch.SymBool: torch.bool, int: torch.int64, torch.SymInt: torch.int64}


def tensors_of_numbers_alone(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions, with operands that are numbers made tensors where torch has tensors only."""
    return table | {op: _on_tensors(op, table.get(op)) for op in _OPS}


def _on_tensors(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """div(7, 2) → div(scalar_tensor(7), scalar_tensor(2)); div(7, x) → div(scalar_tensor(7, the result's dtype), x)."""

    def decomposed(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            return op(_tensor(a), _tensor(b), *args, **kwargs)
        if not isinstance(a, Tensor):
            return op(torch.scalar_tensor(a, dtype=torch.result_type(a, b)), b, *args, **kwargs)
        return NotImplemented if otherwise is None else otherwise(a, b, *args, **kwargs)

    return decomposed


def _tensor(number: Any) -> Tensor:
    """The tensor that torch makes of a number."""
    default = torch.get_default_dtype()
    floating = default.to_complex() if isinstance(number, complex) else default
    return torch.scalar_tensor(number, dtype=_DTYPES.get(type(number), floating))
