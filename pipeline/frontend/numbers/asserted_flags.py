"""Bools read from tensors that a model asserts, as it is captured by its bytecode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv


@contextlib.contextmanager
def assertions_on_flags() -> Iterator[list[str]]:
    """Gives the conditions, as torch's messages have them, that a bool read from a tensor is asserted by.

    Captured by its bytecode, a model's `assert bool(x.sum() > 0)` may be told to torch's symbols alone, and be lost.
    """
    original = ShapeEnv.guard_or_defer_runtime_assert
    found: list[str] = []

    def guard_or_defer_runtime_assert(self: ShapeEnv, expression: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(expression, sympy.Eq) and expression.rhs in (0, 1) and expression.lhs.is_Symbol:
            found.append(str(expression))
        return original(self, expression, *args, **kwargs)

    ShapeEnv.guard_or_defer_runtime_assert = guard_or_defer_runtime_assert
    try:
        yield found
    finally:
        ShapeEnv.guard_or_defer_runtime_assert = original
