"""The table of rules, by op, and what rules are written with: the parts of a complex tensor or number.

A rule is a decomposition that is asked where an op has to do with complex numbers: an operand is complex, or the dtype
that it is told. It sees what the op sees, and returns a complex tensor made by `join`, or a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

aten = torch.ops.aten
prims = torch.ops.prims

Rule = Callable[..., Any]

#: The rules of this package, by the overload that they are for.
RULES: dict[Any, Rule] = {}

#: Ops that are complex whatever they are given, such as Fourier transforms of real numbers.
ALWAYS: dict[Any, Rule] = {}


#: The decompositions of torch's own that are right about complex numbers; of others, many drop imaginary parts.
_TRUSTED = {
    aten._unsafe_index.Tensor,
    aten.block_diag.default,
    aten.dist.default,
    aten.linalg_cross.default,
    aten.linspace.default,
    aten.logaddexp.default,
    aten.logspace.default,
    aten.reflection_pad3d.default,
    aten.replication_pad3d.default,
    aten.silu.default,
    aten.sinc.default,
    aten.split_with_sizes_copy.default,
    aten.unsafe_split.Tensor,
}


class Parts(NamedTuple):
    """The real and the imaginary parts of a tensor or a number."""

    re: Any
    im: Any


def rule(*overloads: Any) -> Callable[[Rule], Rule]:
    """Puts a function into the table, for each of the overloads."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(overloads, function))
        return function

    return register


def always(*overloads: Any) -> Callable[[Rule], Rule]:
    """Like `rule`, for ops that are complex whatever they are given."""

    def register(function: Rule) -> Rule:
        ALWAYS.update(dict.fromkeys(overloads, function))
        return function

    return register


def on_parts(table: dict[Any, Rule]) -> dict[Any, Rule]:
    """The table of decompositions, with the rules for what is complex, and otherwise what the table did.

    An op on complex tensors that has no rule stays as it is, for `pairs` to refuse.
    """
    asked = {op: _asked_first(function, table.get(op)) for op, function in RULES.items()}
    kept = {op: _for_reals(function) for op, function in table.items() if op not in _TRUSTED and not _is_composite(op)}
    return table | kept | asked | ALWAYS


def _is_composite(op: Any) -> bool:
    """Whether torch itself computes the op by others."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")


def _for_reals(function: Rule) -> Rule:
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        return NotImplemented if is_complex(*args, *kwargs.values()) else function(*args, **kwargs)

    return decomposed


def _asked_first(function: Rule, otherwise: Rule | None) -> Rule:
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        if is_complex(*args, *kwargs.values()):
            return function(*args, **kwargs)
        return NotImplemented if otherwise is None else otherwise(*args, **kwargs)

    return decomposed


def is_complex(*values: Any) -> bool:
    """Whether one of the values is a complex tensor, number or dtype, or a list with one."""
    return any(
        value.is_complex
        if isinstance(value, torch.dtype)
        else value.is_complex()
        if isinstance(value, Tensor)
        else is_complex(*value)
        if isinstance(value, (list, tuple))
        else isinstance(value, complex)
        for value in values
    )


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the parts: `complex64` -> `float32`; a real dtype is its own."""
    return dtype.to_real() if dtype.is_complex else dtype


def split(value: Any) -> Parts:
    """The parts of a tensor or number; those of a real one are itself and zero.

    Tensors come by value; only for torch's eyes a conjugated view has to be copied before its parts are looked at.
    """
    if not isinstance(value, Tensor):
        return Parts(value.real, value.imag) if isinstance(value, complex) else Parts(value, 0)
    if not value.is_complex():
        return Parts(value, torch.zeros_like(value))
    pairs = torch.view_as_real(value.clone() if value.is_conj() else value)
    return Parts(pairs.select(-1, 0), pairs.select(-1, 1))


def join(re: Tensor, im: Tensor) -> Tensor:
    """re + im i, of parts of one shape and dtype."""
    return aten.complex.default(re, im)


def promoted(*values: Any) -> list[Parts]:
    """The parts of operands in the dtype that torch computes an op on them in."""
    dtype = real_dtype(common_dtype(values))
    return [
        Parts(*(part.to(dtype) for part in split(value))) if isinstance(value, Tensor) else _of_number(value)
        for value in values
    ]


def common_dtype(values: Iterable[Any]) -> torch.dtype:
    """The dtype that torch promotes the operands to, numbers among them."""
    first, *others = values
    if not others:
        return first.dtype if isinstance(first, Tensor) else torch.result_type(first, first)
    if len(others) == 1:
        return torch.result_type(first, others[0])
    return torch.promote_types(torch.result_type(first, others[0]), common_dtype(others))


def _of_number(value: Any) -> Parts:
    re, im = split(value)
    return Parts(float(re), float(im)) if isinstance(value, (complex, float, int)) else Parts(re, im)
