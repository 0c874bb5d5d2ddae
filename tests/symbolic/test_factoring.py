"""How views get from one shape to another, on random shapes, and for random values of the symbols."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pipeline.frontend.views.factoring import ReshapeStep, factor

ENVIRONMENT = ShapeEnv()
A, B, C = (
    ENVIRONMENT.create_symintnode(sympy.Symbol(name, integer=True, positive=True), hint=hint)
    for name, hint in (("a", 3), ("b", 5), ("c", 7))
)


def number(size, values: dict[str, int]) -> int:
    """A size, for some values of the symbols."""
    expression = sympy.sympify(getattr(getattr(size, "node", None), "expr", size))
    return int(expression.subs({symbol: values[symbol.name] for symbol in expression.free_symbols}))


def follow(before, steps: list[ReshapeStep], values: dict[str, int]) -> tuple[int, ...]:
    """Takes the steps on a shape, and checks that each run holds as many elements as its dim."""
    shape = [number(size, values) for size in before]
    for step in steps:
        wanted = [number(size, values) for size in step.shape]
        one, many = (wanted, shape) if step.kind == "collapse" else (shape, wanted)
        runs = iter(many)
        for size, length in zip(one, step.lengths, strict=True):
            assert size == math.prod(itertools.islice(runs, length))
        assert next(runs, None) is None
        shape = wanted
    return tuple(shape)


def merged(factors: list, rng: random.Random) -> list:
    """A shape whose dims are products of neighbouring factors."""
    shape: list = []
    for one in factors:
        if shape and rng.random() < 0.5:
            shape[-1] = shape[-1] * one
        else:
            shape.append(one)
    return shape


@pytest.mark.parametrize("seed", range(40))
def test_random_views(seed: int) -> None:
    """Shapes of the same factors, in the same order or another, some with dims of size 1."""
    rng = random.Random(seed)
    factors = rng.choices([A, B, C, 2, 3], k=rng.randint(2, 6)) + [A]
    others = list(factors)
    in_order = seed % 2 == 0
    if not in_order:
        rng.shuffle(others)
    before, after = merged(factors, rng), merged(others, rng)
    for shape in (before, after):
        for _ in range(rng.randint(0, 2)):
            shape.insert(rng.randint(0, len(shape)), 1)
    steps = factor(before, after)
    assert len(steps) <= 3
    assert all(step.proved for step in steps)
    if in_order:  # then every dim of one step is one of both shapes, or divides one
        assert all(len(step.shape) >= min(len(before), len(after)) for step in steps)
    for values in ({"a": 3, "b": 5, "c": 7}, {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 0, "c": 4}):
        expected = tuple(number(size, values) for size in after)
        assert follow(before, steps, values) == expected


def test_equal_shapes_take_no_step() -> None:
    """A view to the same shape is no step."""
    assert factor([A, 2 * B], [A, B * 2]) == []


def test_common_dims() -> None:
    """[a, 2 * b] → [2 * a, b] goes through [a, 2, b]."""
    steps = factor([A, 2 * B], [2 * A, B])
    assert [(step.kind, step.lengths) for step in steps] == [("expand", (1, 2)), ("collapse", (2, 1))]


def test_nothing_in_common() -> None:
    """[a, b] → [b, a] goes through one dim."""
    steps = factor([A, B], [B, A])
    assert [(step.kind, step.lengths) for step in steps] == [("collapse", (2,)), ("expand", (2,))]


def test_what_is_not_proved_says_so() -> None:
    """The elements of [a] and [b, c] may be as many or not: the step is one that the program checks."""
    (step,) = [step for step in factor([A], [B, C]) if not step.proved]
    assert step.kind == "expand"
