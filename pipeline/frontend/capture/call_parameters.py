"""The names and defaults of a model's parameters: what calls by name are read by."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from pipeline.frontend.torchscript.methods import forward_of


@dataclass(frozen=True)
class Parameters:
    """Of a forward method, as far as they can be known.

    Attributes:
        names: of the positional ones.
        defaults: (name, value) of each one that has a plain default: None, a bool, a number or a string.
    """

    names: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()


def parameters_of(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], exported: ExportedProgram
) -> Parameters:
    """The parameters of `model`, which was captured on `args` and `kwargs` as `exported`.

    Of a ScriptModule those that were given: it is captured by position, without the others.
    """
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        schema = script_parameters(forward_of(model, args, kwargs))
        given = [number < len(args) or argument.name in kwargs for number, argument in enumerate(schema)]
        return _parameters(
            [
                (argument.name, argument.has_default_value(), argument.default_value, was)
                for argument, was in zip(schema, given, strict=True)
            ]
        )
    if not isinstance(model, ExportedProgram):
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        try:
            signature = inspect.signature(getattr(model, "forward", model)).parameters.values()
        except (ValueError, TypeError):  # a function in C, which may not tell
            return Parameters()
        return _parameters([(p.name, p.default is not p.empty, p.default, p.kind in positional) for p in signature])
    names = exported.module_call_graph[0].signature.forward_arg_names if exported.module_call_graph else None
    positional_count = len(exported.call_spec.in_spec.child(0).children())
    return Parameters(tuple(names[:positional_count]) if names else ())


def script_parameters(method: Any) -> list[Any]:
    """The parameters of a script's method, or of a function, as its schema has them, without self."""
    return list(method.schema.arguments[0 if isinstance(method, torch.jit.ScriptFunction) else 1 :])


def _parameters(found: list[tuple[str, bool, Any, bool]]) -> Parameters:
    """From (name, has a default, default, is positional) of each parameter."""
    plain = (type(None), bool, int, float, str)
    return Parameters(
        tuple(name for name, _, _, positional in found if positional),
        tuple((name, default) for name, has, default, _ in found if has and type(default) in plain),
    )
