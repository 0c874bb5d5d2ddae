"""What a module has of its own, besides modules and weights, in words."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch
from torch import nn

#: Values that are told by their text.
PLAIN = (bool, int, float, str, type(None))

#: The names under which torch's modules keep hooks.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


class Untold(Exception):
    """Text does not tell what a module computes."""


def by_class(value: Any) -> str:
    """An object by the name of its class."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def own_attributes(module: nn.Module, told: Callable[[Any], str] = by_class) -> dict[str, str]:
    """The attributes of a module and what they are; `told` says it of objects.

    Raises:
        Untold: it has hooks, methods of its own, or tensors that it does not know as weights.
    """
    if any(module.__dict__.get(hooks) for hooks in _HOOKS):
        raise Untold
    found = {}
    for name, value in sorted(module.__dict__.items()):
        if name in ("_parameters", "_buffers", "_modules", *_HOOKS) or name.startswith("_non_persistent"):
            continue
        if isinstance(value, torch.Tensor) or (callable(value) and hasattr(type(module), name)):
            raise Untold
        found[name] = _said(value, told)
    return found


def _said(value: Any, told: Callable[[Any], str]) -> str:
    """A value that isn't plain by its name."""
    if isinstance(value, (set, frozenset)):
        return f"({', '.join(sorted(_said(item, told) for item in value))})"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_said(item, told) for item in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_said(item, told)}' for key, item in value.items())}}}"
    if isinstance(value, (*PLAIN, torch.dtype, torch.device)):
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, functools.partial):
        return f"partial {_said(value.func, told)} {_said(value.args, told)} {_said(value.keywords, told)}"
    if isinstance(value, torch.Tensor) or inspect.ismethod(value) or (inspect.isfunction(value) and is_local(value)):
        raise Untold
    if inspect.isfunction(value) or inspect.isbuiltin(value) or isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return told(value)


def is_local(function: FunctionType) -> bool:
    """Whether a function is told by more than its name: one of several that a function has made."""
    return "<" in function.__qualname__
