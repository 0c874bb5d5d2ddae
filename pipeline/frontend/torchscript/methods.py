"""Which method of a script is its forward method: one of several where Python's is overloaded, as that of nn.LSTM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from pipeline.errors import CaptureError


def forward_of(script: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The forward method of a ScriptModule for some arguments, or a ScriptFunction itself.

    forward__0(input: Tensor), forward__1(input: PackedSequence)  →  the one whose types the arguments have.

    Raises:
        CaptureError: the script has no forward method, or none for these arguments.
    """
    if isinstance(script, torch.jit.ScriptFunction):
        return script
    if hasattr(script, "forward"):
        return script.forward
    names = script._c._method_names()
    overloads = [script._c._get_method(name) for name in names if re.fullmatch(r"forward__\d+", name)]
    if not overloads:
        raise CaptureError(f"the script has no forward method; its methods are {', '.join(names) or 'none'}")
    for method in overloads:
        if _takes(method.schema.arguments[1:], args, kwargs):
            return method
    kinds = " or ".join(str(method.schema) for method in overloads)
    raise CaptureError(f"the script has no forward method for these arguments, only {kinds}")


def _takes(parameters: list[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    named = {parameter.name: parameter for parameter in parameters}
    if len(args) > len(parameters) or not set(kwargs) <= set(named):
        return False
    given = [*zip(parameters, args, strict=False), *((named[name], value) for name, value in kwargs.items())]
    return all(_fits(parameter.type, value) for parameter, value in given)


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value has a type: tensors and tuples are told apart, also in Optional."""
    if kind.kind() == "OptionalType":
        return value is None or _fits(kind.getElementType(), value)
    if kind.kind() == "TensorType":
        return isinstance(value, torch.Tensor)
    if kind.kind() == "TupleType":
        return isinstance(value, tuple) and len(value) == len(kind.elements())
    return not isinstance(value, (torch.Tensor, tuple))
