"""What torch takes for granted about sizes of 0 and 1 as it captures a model: it knows that no symbolic size is one.

So `if x.shape[0] > 1` leaves no guard, though the program is run with such sizes.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import sympy
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, uninteresting_files

from pipeline.errors import PipelineError
from pipeline.frontend.numbers.askers import place_in_model
from pipeline.runtime.symbols import evaluate

#: The sizes that torch takes no symbol for.
_LEAST = (0, 1)

#: A condition on more symbols than these is not tried out: it may break.
_MOST_SYMBOLS = 4

_ASSUMED: weakref.WeakKeyDictionary[ShapeEnv, dict[Any, str]] = weakref.WeakKeyDictionary()


def assumptions_of(environment: ShapeEnv) -> dict[Any, str]:
    """The conditions that the model asked about and torch took for granted, and where: `file:line`."""
    return _ASSUMED.get(environment, {})


@contextlib.contextmanager
def assumptions_noted() -> Iterator[None]:
    """Has torch note, in the `with` block, each condition that it answers without a guard and that 0 or 1 may break."""
    original = SymNode.guard_bool
    uninteresting_files().add(__file__)  # the frame here is not the one that asks

    def guard_bool(self: SymNode, file: str, line: int) -> bool:
        guards = len(self.shape_env.guards)
        answer = bool(original(self, file, line))
        is_asked_in_python = not file  # C++ asks about layouts, and names its file
        if is_asked_in_python and len(self.shape_env.guards) == guards and _is_open(self.expr):
            _note(self.shape_env, self.expr if answer else sympy.Not(self.expr))
        return answer

    SymNode.guard_bool = guard_bool
    try:
        yield
    finally:
        SymNode.guard_bool = original


def _is_open(expression: Any) -> bool:
    return isinstance(expression, sympy.logic.boolalg.Boolean) and bool(expression.free_symbols)


def _note(environment: ShapeEnv, condition: Any) -> None:
    assumed = _ASSUMED.setdefault(environment, {})
    if condition in assumed or not _may_break(environment, condition):
        return
    place = place_in_model(environment._get_sloc())
    if place is not None:
        assumed[condition] = place


def _may_break(environment: ShapeEnv, condition: Any) -> bool:
    """Whether the condition does not hold where some of its sizes are 0 or 1, and the others as in the example."""
    examples = {symbol: environment.backed_var_to_val.get(symbol) for symbol in condition.free_symbols}
    if None in examples.values():
        return False
    if len(examples) > _MOST_SYMBOLS:
        return True
    choices = itertools.product(*((*_LEAST, int(example)) for example in examples.values()))
    names = [str(symbol) for symbol in examples]
    return any(_breaks(str(condition), dict(zip(names, sizes, strict=True))) for sizes in choices)


def _breaks(condition: str, sizes: dict[str, int]) -> bool:
    try:
        return not evaluate(condition, sizes)
    except (ArithmeticError, PipelineError):
        return True


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
