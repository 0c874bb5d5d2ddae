"""What torch decides about sizes by the example's, or because it takes no symbolic one for 0 or 1, without a check.

`if x.shape[0] == 1` is false for torch.export whatever the example is, and a call with one row would get what the model
does for many; a part of x that has one element in the example is repeated beside y, and would be for any other size.
`recorded` notes such answers while a model is traced; `numbers.guards` makes guards of them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import sympy
from sympy.logic.boolalg import Boolean
from torch import SymInt
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols, uninteresting_files
from torch.utils._sympy.functions import Max, Min
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from pipeline.frontend.numbers import askers
from pipeline.frontend.numbers.askers import is_broadcast, is_deciding_op, is_extent, line_of_frame, place_of_frame

#: (condition, place): what holds, and the `file:line` that asked.
Assumption = tuple[sympy.Basic, str]

#: The file whose functions C++ calls.
_NODES = inspect.getfile(SymNode)

#: By what was captured while answers were noted.
_FOUND: WeakKeyDictionary[ShapeEnv, list[Assumption]] = WeakKeyDictionary()

#: Answers are noted where there is an entry, one for each `recorded` block: the ranges that calls are held to.
_RECORDING: list[Mapping[str, ValueRanges]] = []

#: The functions that run now in which nothing is required.
_REQUIRES_NOTHING: list[Callable[..., Any]] = []

_COMPARISONS = {
    "eq": sympy.Eq,
    "ne": sympy.Ne,
    "lt": sympy.Lt,
    "le": sympy.Le,
    "gt": sympy.Gt,
    "ge": sympy.Ge,
}

_EXTREMES = {"sym_min": Min, "sym_max": Max}

#: Where a SymBool keeps the comparison that sympy has already answered.
_ASKED = "pipeline_comparison"


def assumed(environment: ShapeEnv) -> list[Assumption]:
    """The conditions on sizes that torch took for granted since no size is 0 or 1, in symbols that may be."""
    known = {may_be_zero(symbol): may_be_zero(environment.replace(symbol)) for symbol in environment.var_to_range}
    return [(condition.xreplace(known), place) for condition, place in _FOUND.get(environment, [])]


def equalities(environment: ShapeEnv) -> list[sympy.Eq]:
    """What calls are held to of the form `expression == other`: by guards of ours, or by those of dynamo's."""
    if environment in _FOUND:
        conditions = [condition for condition, _ in assumed(environment)]
    else:
        conditions = [may_be_zero(environment.replace(guard.expr)) for guard in environment.guards]
    return [condition for condition in conditions if isinstance(condition, sympy.Eq)]


def require(least: int | SymInt, most: int | SymInt, op: str) -> None:
    """Has each call check that `least <= most`, which `op` needs, where that depends on sizes of arguments.

    Where nothing is `recorded` dynamo captures, and compiles anew for sizes for which it is not so.

    Raises:
        RuntimeError: it is not so for any sizes, or to dynamo for those of the example.
    """
    if _REQUIRES_NOTHING or _known_to_hold(least, most):
        return
    symbolic = next((size for size in (least, most) if isinstance(size, SymInt)), None)
    if symbolic is not None and _RECORDING:
        condition = sympy.Ge(sympy.expand(_any_size(most) - _any_size(least)), 0)
        _keep(symbolic.node.shape_env, condition, op)
    elif symbolic is None or not least <= most:
        raise RuntimeError(f"{op} of a size of {most}, where it takes {least} or more")


def _known_to_hold(least: int | SymInt, most: int | SymInt) -> bool:
    """Whether `least <= most` for all sizes, 0 and 1 among them; numbers read from tensors are trusted."""
    symbolic = next((size for size in (least, most) if isinstance(size, SymInt)), None)
    if symbolic is None:
        return least <= most
    return _is_at_most(symbolic.node.shape_env, _any_size(least), _any_size(most))


def _is_at_most(environment: ShapeEnv, least: sympy.Expr, most: sympy.Expr) -> bool:
    difference = sympy.expand(most - least)
    if free_unbacked_symbols(difference):
        return True
    return bool(bounds(environment, difference).lower >= 0)


def bounds(environment: ShapeEnv, expression: sympy.Basic) -> ValueRanges:
    """What an expression may be, with sizes from 0 on."""
    expression = may_be_zero(expression)
    return bound_sympy(expression, _relaxed(_torch_ranges(environment, expression)))


def _any_size(size: int | SymInt) -> sympy.Expr:
    return may_be_zero(size.node.expr) if isinstance(size, SymInt) else sympy.Integer(size)


def nothing_is_required(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, in which `require` does nothing; one thread at a time."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _REQUIRES_NOTHING.append(function)
        try:
            return function(*args, **kwargs)
        finally:
            _REQUIRES_NOTHING.pop()

    return wrapped


@contextlib.contextmanager
def recorded(ranges: Mapping[Any, ValueRanges] | None = None) -> Iterator[None]:
    """Notes answers that depend on sizes being 2 or more in the `with` block; one thread at a time.

    `ranges` are those that calls hold symbols to. Torch finds out narrower ones as it takes ops apart, partly since no
    size is 0 or 1 to it, and nobody checks those; without `ranges` what it finds out is checked.
    """
    uninteresting_files().update((__file__, askers.__file__))  # torch's record of who asked looks through these frames
    originals = {name: getattr(SymNode, name) for name in (*_COMPARISONS, *_EXTREMES)}
    evaluate = ShapeEnv.evaluate_sym_node

    def evaluated(environment: ShapeEnv, node: SymNode, *args: Any, **kwargs: Any) -> sympy.Basic:
        answer = evaluate(environment, node, *args, **kwargs)
        _FOUND.setdefault(environment, [])
        asked = getattr(node, _ASKED, None)
        asked = may_be_zero(node.expr) if asked is None else asked
        if isinstance(asked, Boolean):
            _note(environment, asked if answer else sympy.Not(asked))
        return answer

    try:
        _RECORDING.append({str(symbol): bounds for symbol, bounds in (ranges or {}).items()})
        ShapeEnv.evaluate_sym_node = evaluated
        for name in _COMPARISONS:
            setattr(SymNode, name, _remembering(name, originals[name]))
        for name in _EXTREMES:
            setattr(SymNode, name, _noting_extreme(name, originals[name]))
        yield
    finally:
        _RECORDING.pop()
        ShapeEnv.evaluate_sym_node = evaluate
        for name, original in originals.items():
            setattr(SymNode, name, original)


def _note(environment: ShapeEnv, condition: Boolean) -> None:
    frame = _asking()
    if frame is None:
        return
    if isinstance(condition, sympy.Eq) and is_broadcast(frame):
        _keep(environment, condition, line_of_frame(frame))
        return
    place = place_of_frame(frame, environment)
    if place is not None and (is_deciding_op(frame) or _depends_on_sizes(environment, condition)):
        _keep(environment, condition, place)


def _keep(environment: ShapeEnv, condition: Boolean, place: str) -> None:
    _FOUND.setdefault(environment, []).append((condition, place))


def _remembering(name: str, original: Any) -> Any:
    """A comparison whose result knows what was compared, where sympy answers at once: symbols are positive to it."""

    def compare(one: SymNode, other: SymNode) -> SymNode:
        result = original(one, other)
        answer = result.expr
        if answer is sympy.true or answer is sympy.false or isinstance(answer, bool):
            sides = one.expr, other.expr
            if any(side.free_symbols for side in sides):
                setattr(result, _ASKED, _COMPARISONS[name](*map(may_be_zero, sides)))
        return result

    return compare


def _noting_extreme(name: str, original: Any) -> Any:
    """The least or largest of two sizes of an op; notes that it is the one of both that it is from sizes of 2 on."""
    function = _EXTREMES[name]

    def extreme(one: SymNode, other: SymNode) -> SymNode:
        result = original(one, other)
        found, *sides = (may_be_zero(node.expr) for node in (result, one, other))
        if found in sides and found != function(*sides):
            other_side = sides[1 - sides.index(found)]
            least, most = (found, other_side) if function is Min else (other_side, found)
            frame = None if _is_at_most(one.shape_env, least, most) else _asking()
            if frame is not None and is_extent(frame):
                _keep(one.shape_env, sympy.Le(least, most), line_of_frame(frame))
        return result

    return extreme


def may_be_zero(expression: Any) -> Any:
    """An expression in symbols of the same names that are not positive to sympy."""
    return _in_other_symbols(expression) if getattr(expression, "free_symbols", ()) else expression


@functools.lru_cache(4096)  # torch asks the same things of each op
def _in_other_symbols(expression: Any) -> Any:
    return expression.xreplace({symbol: sympy.Symbol(symbol.name, integer=True) for symbol in expression.free_symbols})


def _depends_on_sizes(environment: ShapeEnv, condition: Boolean) -> bool:
    """Whether sizes from 0 on decide over a condition."""
    if not condition.free_symbols or free_unbacked_symbols(condition):
        return False
    return not bounds(environment, condition).is_singleton()


def _torch_ranges(environment: ShapeEnv, expression: sympy.Basic) -> dict[sympy.Symbol, ValueRanges]:
    """What the symbols of an expression may be to torch."""
    names = {symbol.name for symbol in expression.free_symbols}
    known = environment.var_to_range.items()
    return {may_be_zero(symbol): bounds for symbol, bounds in known if symbol.name in names}


def _relaxed(torch_ranges: Mapping[sympy.Symbol, ValueRanges]) -> dict[sympy.Symbol, ValueRanges]:
    """What symbols may be, where torch's own ranges begin with 2 since it takes nothing less."""
    held_to = _RECORDING[-1] if _RECORDING else {}
    ranges = {symbol: held_to.get(symbol.name, bounds) for symbol, bounds in torch_ranges.items()}
    return {symbol: ValueRanges(0, bounds.upper) if bounds.lower == 2 else bounds for symbol, bounds in ranges.items()}


def _asking() -> FrameType | None:
    """The frame of the Python code, or of the op, that wants a truth value; None if a kernel of torch's in C++ does.

    Those ask for the sake of layouts: which dims of one element a stride does not matter for.
    """
    inner = frame = sys._getframe(1)
    while frame.f_code.co_filename in uninteresting_files() and frame.f_back is not None:
        inner, frame = frame, frame.f_back
    return None if inner.f_code.co_filename == _NODES and not is_deciding_op(frame) else frame
