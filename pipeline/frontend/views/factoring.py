"""How a view gets from one shape to another: runs of dims that become one, and dims that become several.

Only what is proved is a run of its own: sizes are compared as polynomials, which are equal for any values of symbols.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv, Mod

#: A shape whose sizes are polynomials in symbols.
Shape = tuple[sympy.Expr, ...]


@dataclass(frozen=True)
class ReshapeStep:
    """One reshape of row-major data.

    Attributes:
        kind: `collapse`, where each run of dims becomes one, or `expand`, where each dim becomes a run.
        lengths: of the runs.
        shape: what it gives.
        proved: whether the sizes of each run are proved to multiply to the size of its dim.
    """

    kind: Literal["collapse", "expand"]
    lengths: tuple[int, ...]
    shape: Shape
    proved: bool = True


@dataclass(frozen=True)
class _Run:
    """Some dims of two shapes that hold the same elements, and the way from the one to the other.

    Attributes:
        collapsed, shape_collapsed: the lengths of what becomes one dim first, and the sizes after that.
        expanded, shape_expanded: the number of dims that each of those becomes then.
        merged, shape: the lengths of what becomes one dim at last, and the sizes in the end.
    """

    collapsed: tuple[int, ...]
    shape_collapsed: Shape
    expanded: tuple[int, ...]
    shape_expanded: Shape
    merged: tuple[int, ...]
    shape: Shape


def polynomial(size: int | torch.SymInt) -> sympy.Expr:
    """A size as a polynomial in its symbols; quotients that torch knows to leave no remainder are ratios in it."""
    if isinstance(size, int):
        return sympy.Integer(size)
    environment = size.node.shape_env
    exact = {
        quotient: quotient.args[0] / quotient.args[1]
        for quotient in size.node.expr.atoms(FloorDiv)
        if environment.replace(Mod(*quotient.args)) in environment.divisible
    }
    return sympy.expand(size.node.expr.xreplace(exact).replace(FloorDiv, _whole_or_floored))


def _whole_or_floored(dividend: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
    """A quotient, which may have become a whole number: c // (2 * (c / 4)) = 2."""
    ratio = sympy.cancel(dividend / divisor)
    return ratio if ratio.is_Integer else FloorDiv(dividend, divisor)


def factor(before: Sequence[Any], after: Sequence[Any]) -> list[ReshapeStep]:
    """The steps from one shape to another of as many elements; none where the shapes are equal.

    [a, b, 6] → [a * b, 2, 3]: expand to [a, b, 2, 3], collapse the first two
    [a, 2 * b] → [2 * a, b]: expand to [a, 2, b], collapse the first two
    [a, b] → [b, a]: collapse to [a * b], expand
    """
    first, last = (tuple(map(polynomial, shape)) for shape in (before, after))
    if first == last:
        return []
    cuts = _cuts(first, last)
    runs = [_flat(first, last)] if cuts is None else [_run(first[i:m], last[j:n]) for (i, j), (m, n) in cuts]
    steps = [
        ReshapeStep("collapse", _joined(runs, "collapsed"), _joined(runs, "shape_collapsed")),
        ReshapeStep("expand", _joined(runs, "expanded"), _joined(runs, "shape_expanded"), proved=cuts is not None),
        ReshapeStep("collapse", _joined(runs, "merged"), _joined(runs, "shape")),
    ]
    return [step for step in steps if set(step.lengths) != {1}]


def _joined(runs: list[_Run], field: str) -> tuple[Any, ...]:
    return tuple(itertools.chain.from_iterable(getattr(run, field) for run in runs))


def _cuts(first: Shape, last: Shape) -> Iterable[tuple[tuple[int, int], tuple[int, int]]] | None:
    """Where the shortest runs of both shapes with the same elements begin and end; None if there are none, or none."""
    products, wanted = _products(first), _products(last)
    if products[-1] != wanted[-1] or products[-1] == 0:
        return None
    cuts, j = [(0, 0)], 0
    for i in range(1, len(first)):
        if products[i] in wanted[j + 1 : -1]:
            j = wanted.index(products[i], j + 1)
            cuts.append((i, j))
    return itertools.pairwise([*cuts, (len(first), len(last))])


def _products(shape: Shape) -> list[sympy.Expr]:
    """The number of elements of the first 0, 1, .. dims."""
    one: sympy.Expr = sympy.Integer(1)
    return list(itertools.accumulate(shape, lambda product, size: sympy.expand(product * size), initial=one))


def _run(first: Shape, last: Shape) -> _Run:
    pieces = None if len(first) == 1 else _pieces(first, last)
    if pieces is None:
        return _flat(first, last)
    sizes, sources, targets = zip(*pieces, strict=True)
    expanded = tuple(map(sources.count, range(len(first))))
    merged = tuple(map(targets.count, range(len(last))))
    return _Run((1,) * len(first), first, expanded, sizes, merged, last)


def _flat(first: Shape, last: Shape) -> _Run:
    """Through a single dim, which is right whatever the sizes are."""
    return _Run((len(first),), (_products(first)[-1],), (len(last),), last, (1,) * len(last), last)


def _pieces(first: Shape, last: Shape) -> list[tuple[sympy.Expr, int, int]] | None:
    """The dims that both shapes are made of: (size, dim of the one, dim of the other).

    None where a size of the one does not divide that of the other.
    """
    pieces = []
    i = j = 0
    left, right = first[0], last[0]
    while i < len(first) and j < len(last):
        size = _common(left, right)
        if size is None:
            return None
        pieces.append((size, i, j))
        left, right = _quotient(left, size), _quotient(right, size)
        if left == 1:
            i, left = i + 1, first[i + 1] if i + 1 < len(first) else left
        if right == 1:
            j, right = j + 1, last[j + 1] if j + 1 < len(last) else right
    pieces += [(extent, dim, len(last) - 1) for dim, extent in enumerate(first[i:], i)]
    return pieces + [(extent, len(first) - 1, dim) for dim, extent in enumerate(last[j:], j)]


def _common(left: sympy.Expr, right: sympy.Expr) -> sympy.Expr | None:
    if _quotient(left, right).as_numer_denom()[1] == 1:
        return right
    return left if _quotient(right, left).as_numer_denom()[1] == 1 else None


def _quotient(dividend: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr:
    return dividend if divisor == 1 else sympy.expand(sympy.cancel(dividend / divisor))
