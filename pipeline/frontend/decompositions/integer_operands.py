"""Operands of two integer types are computed in a common one, which torch-mlir finds wrong: it has no unsigned tensors.

A tensor of no dimension takes the type of one that has dimensions: -9 of int16 beside tensors of uint8 is 247.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.table import promoted

aten = torch.ops.aten

#: What depends on more than the lowest bits of its operands.
_OPS = (
    aten.eq.Tensor,
    aten.ge.Tensor,
    aten.gt.Tensor,
    aten.le.Tensor,
    aten.lt.Tensor,
    aten.ne.Tensor,
    aten.maximum.default,
    aten.minimum.default,
    aten.remainder.Tensor,
)


def in_their_common_type(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions, with operands of two integer types cast first."""
    return table | {op: _on_common_type(op, table.get(op)) for op in _OPS}


def _on_common_type(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """lt(x: i16, y: bool) → lt(x, y as i16)."""

    def decomposed(a: Tensor, b: Tensor) -> Any:
        if a.dtype != b.dtype and _are_integers(a, b):
            return op(*promoted(a, b))
        return NotImplemented if otherwise is None else otherwise(a, b)

    return decomposed


def _are_integers(*tensors: Tensor) -> bool:
    return not any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)
