"""The shapes of results that torch promises, compared with those that the lowered program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from pipeline import remarks
from pipeline.errors import CompileError
from pipeline.frontend.shapes.computed_sizes import ComputedSizes
from pipeline.frontend.shapes.expressions import Expressions
from pipeline.frontend.shapes.held_casts import assert_sizes
from pipeline.ir.constants import as_index
from pipeline.ir.rewriting import before, size_of
from pipeline.mlir import arith, ir, terminator, walk

_SIZES = "pipeline.sizes"

_UNKNOWN = ir.ShapedType.get_dynamic_size()


def ask_for_sizes(function: ir.Operation) -> None:
    """Puts an op in front of the return that takes the sizes of the results, as computed."""
    end = terminator(function.regions[0].blocks[0])
    with before(end):
        sizes = [size_of(result, dim) for result in end.operands for dim in _unknown_dims(result)]
        ir.Operation.create(_SIZES, [], sizes)


def _unknown_dims(value: ir.Value) -> list[int]:
    if not isinstance(value.type, ir.RankedTensorType):
        return []
    shape = ir.RankedTensorType(value.type).shape
    return [dim for dim, size in enumerate(shape) if size == _UNKNOWN]


def check_results(function: ir.Operation, promised: Sequence[Sequence[Any] | None], expressions: Expressions) -> None:
    """Compares the sizes; those that are not proved to be as promised are checked as the program runs.

    Args:
        promised: the sizes of each result, None for a number.

    Raises:
        CompileError: a size is another one than promised whatever the arguments are.
    """
    (asked,) = walk(function, _SIZES)
    end = terminator(function.regions[0].blocks[0])
    wanted = [
        (number, dim, expressions.promised(sizes[dim]))
        for number, (result, sizes) in enumerate(zip(end.operands, promised, strict=True))
        if sizes is not None
        for dim in _unknown_dims(result)
    ]
    for (number, dim, promise), size in zip(wanted, list(asked.operands), strict=True):
        difference = expressions.number(size) - promise
        if expressions.is_never_zero(difference):
            computed = expressions.number(size)
            raise CompileError(f"result {number}: dimension {dim} is computed as {computed}, and is to be {promise}")
        if not expressions.is_zero(difference):
            _check(asked, size, promise, expressions)
    asked.erase()


def _check(place: ir.Operation, size: ir.Value, promise: sympy.Expr, expressions: Expressions) -> None:
    """Checks one size; what torch takes for fewer elements than none, as s - 1 of x[1:] with s = 0, are none."""
    with before(place):
        wanted = ComputedSizes(expressions).size(promise)
        if wanted is None:
            remarks.note("shapes", "missed", "func.return", f"a size of a result is not checked to be {promise}")
        else:
            nothing = as_index(0)
            assert_sizes(arith.cmpi(arith.CmpIPredicate.eq, size, arith.maxsi(wanted, nothing)))
