"""Arithmetic of tensors that are one number everywhere: done at compile time, with what eager gives."""

from __future__ import annotations

import operator

import pytest
import torch

import pipeline

OPS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "remainder": operator.mod,
    "fmod": torch.fmod,
    "pow": operator.pow,
    "gt": operator.gt,
    "eq": operator.eq,
    "add alpha": lambda a, b: torch.add(a, b, alpha=-2),
    "sub alpha": lambda a, b: torch.sub(a, b, alpha=-3),
    "rsub": torch.rsub,
    "clamp": lambda a, b: torch.clamp(a, max=b),
    "where": lambda a, b: torch.where(a < 0, a * b, a),
    "sum": lambda a, b: (a * b).sum(),
}

LEFT = {
    "f32": lambda: torch.full((3,), 2.0),
    "negative bf16": lambda: torch.full((2, 1), -2.5, dtype=torch.bfloat16),
    "negative i32": lambda: torch.full((3,), -7, dtype=torch.int32),
    "u8": lambda: torch.full((3,), 200, dtype=torch.uint8),
    "0-dim f64": lambda: torch.full((), 1.0, dtype=torch.float64),
}

RIGHT = {
    "negative integer": lambda: -3,
    "float": lambda: -2.5,
    "bool": lambda: True,
    "i64": lambda: torch.full((3,), -3),
    "f32": lambda: torch.full((3,), -3.0),
    "constant": lambda: torch.tensor(-3),
    "expanded": lambda: torch.ones(1, dtype=torch.int8).expand(3),
}


@pytest.mark.parametrize("name", LEFT)
def test_as_eager(name):
    cases, expected = [], []
    for right in RIGHT.values():
        for op in OPS.values():
            try:
                expected.append(op(LEFT[name](), right()))
            except (RuntimeError, TypeError):  # eager knows no such thing
                continue
            cases.append((op, right))

    def program(x):
        return *(op(LEFT[name](), right()) for op, right in cases), x + 1

    x = torch.ones(3)
    assert len(cases) > 60
    for found, wanted in zip(pipeline.compile(program, (x,), cache=False)(x), expected, strict=False):
        torch.testing.assert_close(found, wanted, equal_nan=True)


def test_what_was_filled_in_place():
    def program(x):
        x.fill_(2)
        return x * -1, x % -3

    for x in (torch.ones(()), torch.ones(2, 3)):
        found = pipeline.compile(program, (x.clone(),), cache=False)(x.clone())
        torch.testing.assert_close(found, program(x.clone()))


def test_symbolic_sizes():
    def program(x):
        return torch.full_like(x, 2.0) * -3, x.new_full((x.size(0), 2), -2.0) % 3

    sizes = ({0: torch.export.Dim("n", max=9)},)
    executable = pipeline.compile(program, (torch.ones(3),), dynamic_shapes=sizes, cache=False)
    for n in (0, 1, 5):
        torch.testing.assert_close(executable(torch.ones(n)), program(torch.ones(n)))


EQUAL = {
    "operands": lambda x: x == x,
    "sums": lambda x: (x + 1) == (x + 1),
    "copies": lambda x: x == x.clone(),
    "views": lambda x: x.view(-1) == x.view(3),
    "parts": lambda x: x[:2] == x[:2],
}


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int64])
@pytest.mark.parametrize("equal", EQUAL.values(), ids=EQUAL)
def test_what_is_equal_to_itself(equal, dtype):
    def program(x):
        same = equal(x)
        number = same.to(torch.int32)
        return same, same + same, same.eq(True), number % -2, -number, same + 1.5, same * 2

    x = torch.tensor([1, 0, 3]).to(dtype)
    for got, expected in zip(pipeline.compile(program, (x,), cache=False)(x), program(x), strict=True):
        assert got.dtype == expected.dtype and torch.equal(got, expected)
