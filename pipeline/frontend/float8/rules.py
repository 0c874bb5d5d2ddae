"""The table of rules, by op: casts, and tensors that are filled with a number.

A rule is a decomposition that is asked where an operand, or the dtype that it is told, is of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.fillers import fillers
from pipeline.frontend.float8.codes import FORMATS, decode, encode

aten = torch.ops.aten
prims = torch.ops.prims

Rule = Callable[..., Any]

#: The rules of this package, by the overload that they are for.
RULES: dict[Any, Rule] = {}


def rule(*overloads: Any) -> Callable[[Rule], Rule]:
    """Puts a function into the table, for each of the overloads."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(overloads, function))
        return function

    return register


def on_codes(table: dict[Any, Rule]) -> dict[Any, Rule]:
    """The table of decompositions, with the rules for what is of 8 bits, and otherwise what the table did."""
    return table | {op: _asked_first(function, table.get(op)) for op, function in RULES.items()}


def _asked_first(function: Rule, otherwise: Rule | None) -> Rule:
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        if has_float8(*args, *kwargs.values()):
            return function(*args, **kwargs)
        return NotImplemented if otherwise is None else otherwise(*args, **kwargs)

    return decomposed


def has_float8(*values: Any) -> bool:
    """Whether one of the values is a tensor of floats of 8 bits, or their dtype."""
    return any((value.dtype if isinstance(value, Tensor) else value) in FORMATS for value in values if _has_hash(value))


def _has_hash(value: Any) -> bool:
    return isinstance(value, (Tensor, torch.dtype))


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in another dtype; from and to 8 bits by way of float32."""
    if x.dtype == dtype:
        return x.clone()
    wide = decode(x) if x.dtype in FORMATS else x
    return encode(wide, dtype) if dtype in FORMATS else wide.to(dtype)


@rule(aten._to_copy.default)
def to_copy(x: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """_to_copy(x, dtype) -> see `cast`."""
    return cast(x, dtype or x.dtype)


@rule(prims.convert_element_type.default)
def convert_element_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    """convert_element_type(x, dtype) -> see `cast`."""
    return cast(x, dtype)


@rule(aten.copy.default)
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """copy(x, source) -> the source in x's dtype and shape."""
    return cast(source, x.dtype).expand(x.shape).clone()


@rule(aten.view.dtype)
def view_as_dtype(x: Tensor, dtype: torch.dtype) -> Any:
    """x.view(dtype) -> by way of bytes, where widths differ."""
    return NotImplemented if x.dtype.itemsize == dtype.itemsize else x.view(torch.uint8).view(dtype)


def _filled(shape: Any, value: Any, dtype: torch.dtype, device: Any) -> Tensor:
    return cast(torch.full(shape, value, dtype=torch.float32, device=device), dtype)


RULES.update(fillers(_filled))


@rule(aten.fill.Tensor)
def fill_tensor(x: Tensor, value: Tensor) -> Tensor:
    """fill(x, value) -> the number's code, everywhere."""
    return cast(value, x.dtype).expand(x.shape).clone()


@rule(aten.constant_pad_nd.default)
def constant_pad_nd(x: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """constant_pad_nd(x, pad, value) -> of decoded numbers; codes come back as they were."""
    return encode(aten.constant_pad_nd.default(decode(x), pad, value), x.dtype)
