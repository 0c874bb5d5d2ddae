"""Ops on lists of tensors, which optimizers consist of, as one op for each tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

Function = Callable[..., Any]

#: What torch's function of the name without `_foreach_` does not do: by overload, else by name.
_OTHERS: dict[Any, Function] = {
    aten._foreach_clamp_max.List: torch.minimum,
    aten._foreach_clamp_min.List: torch.maximum,
    aten._foreach_maximum.Scalar: torch.clamp_min,
    aten._foreach_maximum.ScalarList: torch.clamp_min,
    aten._foreach_minimum.Scalar: torch.clamp_max,
    aten._foreach_minimum.ScalarList: torch.clamp_max,
    aten._foreach_addcmul.Tensor: lambda x, a, b, value: x + value * (a * b),
    aten._foreach_addcdiv.Tensor: lambda x, a, b, value: x + value * (a / b),
    "addcmul": lambda x, a, b, value=1: torch.addcmul(x, a, b, value=value),
    "addcdiv": lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value),
    "copy": lambda x, source, non_blocking=False: source.to(x.dtype).expand(x.shape).clone(),
    "max": torch.amax,
    "norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
    "zero": torch.zeros_like,
}

_PREFIX = "aten::_foreach_"


def for_each() -> dict[OpOverload, Function]:
    """The decompositions of torch's ops on lists that write to none of them."""
    return {op: _one_by_one(op, function) for op, function in _functions()}


def fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """prims.fma(a, b, c) → a * b + c."""
    return a * b + c


def _functions() -> Iterator[tuple[OpOverload, Function]]:
    """The functions that ops on lists apply to each tensor, by op."""
    for full_name in torch._C._dispatch_get_all_op_names():
        if not full_name.startswith(_PREFIX):
            continue
        name, _, overload = full_name.removeprefix(_PREFIX).partition(".")
        op = getattr(getattr(aten, f"_foreach_{name}"), overload or "default")
        function = _OTHERS.get(op) or _OTHERS.get(name) or getattr(torch, name, None)
        if function is not None and not op._schema.is_mutable:
            yield op, function


def _one_by_one(op: OpOverload, function: Function) -> Function:
    """_foreach_f([x, y], [a, b], n) → [f(x, a, n), f(y, b, n)]; a tensor of numbers is one for each."""
    kinds = {argument.name: str(argument.type) for argument in op._schema.arguments}
    lists = {name for name, kind in kinds.items() if kind.startswith("List") or name == "scalars"}
    names = list(kinds)

    def decomposed(*args: Any, **kwargs: Any) -> list[Any]:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        given = {name: value.unbind() if _is_line(name, value) else value for name, value in given.items()}
        count = len(next(given[name] for name in names if name in lists))
        rows = [{name: value[n] if name in lists else value for name, value in given.items()} for n in range(count)]
        positional = names[: len(args)]
        return [
            function(
                *(row[name] for name in positional),
                **{name: value for name, value in row.items() if name not in positional},
            )
            for row in rows
        ]

    return decomposed


def _is_line(name: str, value: Any) -> bool:
    """Whether an argument is a tensor with a number for each tensor."""
    return name == "scalars" and isinstance(value, Tensor)
