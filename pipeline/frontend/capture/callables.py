"""Functions, lambdas, partials, methods and other callables → modules that torch.export can trace."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.fx.proxy import _register_stack_trace_anchor  # else torch keeps lines of forward methods alone

from pipeline.errors import PipelineError


def without_compile(model: Any) -> Any:
    """What torch.compile was given to make `model`; `model` itself if it was not made by that."""
    dynamo = sys.modules.get("torch._dynamo")  # it is loaded where something was compiled
    if dynamo is not None and isinstance(model, dynamo.OptimizedModule):
        return without_compile(model._orig_mod)
    inner = getattr(model, "_torchdynamo_orig_callable", None) if inspect.isfunction(model) else None
    return model if inner is None else without_compile(inner)


def module_of_function(function: Callable[..., Any], count: int) -> nn.Module:
    """A module whose forward is `function`, with its parameters, for a call of `count` positional arguments.

    The modules that the function belongs to, closes over or names are parts of it: their weights are the model's.
    """
    if inspect.isclass(function):
        name = function.__name__
        raise PipelineError(f"model: {name} is a class, not a model; make one first: {name}(...)")
    return _Function(function, count)


class _Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], count: int):
        super().__init__()
        _register_stack_trace_anchor(inspect.unwrap(_innermost(function)))
        for number, part in enumerate(_modules_of(function)):
            self.add_module(f"module{number}" if number else "module", part)
        self.training = False

        def forward(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        forward.__signature__ = _signature(function, count)  # type: ignore[attr-defined]
        self.forward = forward


def name_of(model: Any) -> str:
    """What messages call a model."""
    if isinstance(model, nn.Module):
        return str(getattr(model, "original_name", type(model).__name__))  # a ScriptModule has that of its class
    return getattr(_innermost(model), "__qualname__", None) or type(model).__name__


def _innermost(function: Any) -> Any:
    """The function that partials are made of."""
    return _innermost(function.func) if isinstance(function, functools.partial) else function


def _signature(function: Callable[..., Any], count: int) -> inspect.Signature:
    """The parameters of a function; of one in C, which may not tell, those of the call."""
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(f"arg{number}", kind) for number in range(count)])


def _modules_of(function: Any) -> list[nn.Module]:
    """The modules that a function belongs to, closes over or names, each once."""
    found: dict[int, nn.Module] = {}
    for value in _values(function):
        if isinstance(value, nn.Module):
            found.setdefault(id(value), value)
    return list(found.values())


def _values(function: Any) -> Iterator[Any]:
    if isinstance(function, functools.partial):
        yield from (*function.args, *function.keywords.values())
        yield from _values(function.func)
        return
    yield getattr(function, "__self__", None)
    inner = getattr(function, "__func__", function)
    if inspect.isfunction(inner):
        names = inspect.getclosurevars(inner)
        yield from (*names.nonlocals.values(), *names.globals.values())
    elif hasattr(function, "__dict__"):
        yield from vars(function).values()
