"""The table of ops: functions by ONNX's names, each of which is given the node's `NodeCall` and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: The set of ops that ONNX itself defines.
ONNX = ""
MICROSOFT = "com.microsoft"
ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"

Function = Callable[..., Any]


@dataclass(frozen=True)
class Op:
    """An op.

    Attributes:
        function: takes a `NodeCall` and the inputs, None for those that are left out.
        as_given: the inputs that may stay known values, see `known`; the others are made tensors. None for all.
    """

    function: Function
    as_given: tuple[int, ...] | None = ()


OPS: dict[tuple[str, str], Op] = {}

#: What computes with known values: functions of arrays of objects.
ON_KNOWN: dict[str, Function] = {}


def op(*names: str, as_given: tuple[int, ...] | None = (), domain: str = ONNX) -> Callable[[Function], Function]:
    """Puts a function into the table."""

    def register(function: Function) -> Function:
        for name in names:
            OPS[domain, name] = Op(function, as_given)
        return function

    return register


def on_known(*names: str) -> Callable[[Function], Function]:
    """Puts a function of known values into its table; it may return None to leave them to tensors."""

    def register(function: Function) -> Function:
        for name in names:
            ON_KNOWN[name] = function
        return function

    return register
