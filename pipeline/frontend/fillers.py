"""Ops that fill a tensor with a number, as rules made of one function; for dtypes of the frontend alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Filled = Callable[[Any, Any, torch.dtype, Any], Tensor]


def fillers(filled: Filled) -> dict[Any, Callable[..., Tensor]]:
    """Decompositions, by op, of what `filled(shape, number, dtype, device)` gives."""

    def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
        return filled(shape, value, dtype or torch.result_type(value, value), device)

    def full_like(x: Tensor, value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
        return filled(x.shape, value, dtype or x.dtype, x.device)

    def new_full(x: Tensor, shape: Any, value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
        return filled(shape, value, dtype or x.dtype, x.device)

    def scalar_tensor(value: Any, **options: Any) -> Tensor:
        return full((), value, **options)

    def of_number(number: int) -> list[Callable[..., Tensor]]:
        return [
            lambda shape, **options: full(shape, number, **options),
            lambda x, **options: full_like(x, number, **options),
            lambda x, shape, **options: new_full(x, shape, number, **options),
        ]

    table: dict[Any, Callable[..., Tensor]] = {
        aten.full.default: full,
        aten.full_like.default: full_like,
        aten.new_full.default: new_full,
        aten.scalar_tensor.default: scalar_tensor,
        aten.fill.Scalar: full_like,
    }
    for name, number in (("zeros", 0), ("ones", 1), ("empty", 0)):
        plain = getattr(getattr(aten, name), "memory_format" if name == "empty" else "default")
        ops = (plain, getattr(aten, f"{name}_like").default, getattr(aten, f"new_{name}").default)
        table.update(zip(ops, of_number(number), strict=True))
    return table
