"""Functions of numbers and conditions that are not known: torch.export would take the example's numbers, or refuse."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten

_SYMBOLIC = (torch.SymInt, torch.SymFloat)


def _by(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    """A function of a number by one of tensors: torch.export takes no other functions of numbers into graphs."""
    return lambda x: function(torch.full([], torch.sym_float(x), dtype=torch.float64)).item()


def _log(x: Any, *base: float) -> Any:
    return _by(torch.log)(x) / math.log(*base) if base else _by(torch.log)(x)


#: What computes a function of `math` on a symbolic number.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: _by(getattr(torch, name))
        for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2", "log10", "log1p")
    },
    **{name: _by(getattr(torch, name)) for name in ("exp", "expm1", "erf", "asinh", "acosh", "atanh")},
    "sqrt": torch.sym_sqrt,
    "log": _log,
    "pow": lambda x, y: torch.sym_float(x) ** y,
    "fabs": lambda x: abs(torch.sym_float(x)),
    "degrees": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
}


#: What eager mode says of a check without a message.
UNNAMED_CHECK = "Expected Tensor with single nonzero value, but got zero"


@contextlib.contextmanager
def symbolic_math() -> Iterator[None]:
    """Has `math`, `torch.linspace` and `torch._assert` take what is not known in the `with` block."""
    importlib.import_module("torch._dynamo")  # has tables of functions, made as it is imported
    originals = {name: getattr(math, name) for name in _FUNCTIONS}
    try:
        for name, original in originals.items():
            setattr(math, name, _either(original, _FUNCTIONS[name]))
        with _Functions():
            yield
    finally:
        for name, original in originals.items():
            setattr(math, name, original)


def _either(original: Callable[..., Any], symbolic: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        is_symbolic = any(isinstance(arg, _SYMBOLIC) for arg in args)
        return symbolic(*args) if is_symbolic else original(*args)

    return function


class _Functions(TorchFunctionMode):
    """Functions as torch.export is right about them.

    linspace of a symbolic number of steps, as torch computes it; _assert(c: Tensor)  →  _assert_async(c, message), as
    it drops checks without a message; masked_select(x, mask)  →  x[mask], both broadcast, of which it thinks that
    there are no more elements than x has.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.linspace and isinstance(_steps(*args, **kwargs), torch.SymInt):
            return _linspace(*args, **kwargs)
        if func is torch._assert and isinstance(args[0], torch.Tensor):
            return torch._assert_async(*args, **kwargs)
        if func is torch._assert_async and len(args) == 1 and not kwargs:
            return torch._assert_async(args[0], UNNAMED_CHECK)
        if func in _MASKED_SELECTS and "out" not in kwargs:
            return _masked_select(*args, **kwargs)
        return func(*args, **kwargs)


_MASKED_SELECTS = (torch.masked_select, torch.Tensor.masked_select)


def _masked_select(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if mask.dtype != torch.bool:
        return aten.masked_select.default(input, mask)
    x, flags = torch.broadcast_tensors(input, mask)
    return x[flags] if x.dim() else x.reshape(1)[flags.reshape(1)]


def _steps(start: Any = None, end: Any = None, steps: Any = None, **kwargs: Any) -> Any:
    return steps


def _linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
    """From both ends to the middle."""
    wanted = dtype or torch.get_default_dtype()
    wide = torch.float64 if wanted == torch.float64 or not wanted.is_floating_point else torch.float32
    line = torch.arange(steps, dtype=wide, device=device)
    step = (end - start) / torch.full([], torch.sym_max(steps - 1, 1), dtype=wide, device=device)
    up, down = start + step * line, end - step * (steps - 1 - line)
    return torch.where(line < torch.sym_max(steps // 2, 1), up, down).to(wanted)
