"""What eager mode refuses for its values is refused in each call, also where torch traces no check."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from dynamo_state import fresh_dynamo
from function_model import Function

import pipeline

__all__ = ["fresh_dynamo"]

HALF, BEYOND, BELOW = torch.full((4,), 0.5), torch.full((4,), 1.5), torch.full((4,), -0.5)
NOT_A_NUMBER = torch.tensor([0.5, torch.nan, 0.5, 0.5])


def cross_entropy(x, y):
    return F.binary_cross_entropy(x, y)


def asserted(x):
    torch._assert_async((x > 0).all())
    return x + 1


def asserted_between(x):
    y = x * 2
    torch._assert_async(y.sum() > 0)
    return y.sin(), y.sum()


def asserted_by_keyword(x):
    torch._assert_async(x.sum() > 0, assert_msg="a sum above 0")
    return x + 1


#: A function, arguments that it takes, and some that it does not.
FUNCTIONS = {
    "one_hot": (lambda i: F.one_hot(i, 3), (torch.tensor([0, 2]),), (torch.tensor([0, 3]),)),
    "one_hot below 0": (lambda i: F.one_hot(i, 3) * 2, (torch.tensor([0, 2]),), (torch.tensor([0, -1]),)),
    "bernoulli": (lambda p: torch.bernoulli(p) * 0, (HALF,), (BEYOND,)),
    "bernoulli below 0": (lambda p: torch.bernoulli(p) * 0, (HALF,), (BELOW,)),
    "bernoulli of nan": (lambda p: torch.bernoulli(p) * 0, (HALF,), (NOT_A_NUMBER,)),
    "normal": (lambda std: torch.normal(0.0, std) * 0, (HALF,), (BELOW,)),
    "normal of two": (lambda mean, std: torch.normal(mean, std) * 0, (HALF, HALF), (HALF, BELOW)),
    "binary_cross_entropy": (cross_entropy, (HALF, HALF), (BEYOND, HALF)),
    "binary_cross_entropy below 0": (cross_entropy, (HALF, HALF), (BELOW, HALF)),
    "binary_cross_entropy of nan": (cross_entropy, (HALF, HALF), (NOT_A_NUMBER, HALF)),
    "binary_cross_entropy's targets": (cross_entropy, (HALF, HALF), (HALF, BEYOND)),
    "an assertion without a message": (asserted, (HALF,), (BELOW,)),
    "an assertion with a message": (asserted_by_keyword, (HALF,), (BELOW,)),
    "an assertion in between": (asserted_between, (HALF,), (BELOW,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", ["compile", "torch.compile", "dynamic", "training"])
def test_values_that_eager_refuses(name, way):
    function, good, bad = FUNCTIONS[name]
    if way == "compile":
        called = pipeline.compile(Function(function), good)
    else:
        called = torch.compile(function, backend="pipeline", dynamic=way == "dynamic" or None)
    if way == "training":
        good, bad = (
            [value.requires_grad_(value.is_floating_point()) for value in map(torch.clone, part)]
            for part in (good, bad)
        )
    torch.testing.assert_close(called(*good), function(*good))
    with pytest.raises(RuntimeError):
        function(*bad)
    with pytest.raises(pipeline.PipelineError, match=r" \(at .*\.py:\d+\)$"):
        called(*bad)
    torch.testing.assert_close(called(*good), function(*good))


@pytest.mark.parametrize("message", [None, lambda: "numbers above 0"])
def test_checks_of_all_elements(message):
    """As transformers has them; under torch.compile dynamo leaves them to eager mode."""

    def checked(x):
        torch._check_tensor_all_with(ValueError, x > 0, message)
        torch._check_tensor_all(x < 1)
        return x + 1

    exe = pipeline.compile(Function(checked), (HALF,), fallback="error")
    assert torch.equal(exe(HALF), HALF + 1)
    with pytest.raises(pipeline.PipelineError, match="numbers above 0" if message else "a check of the model"):
        exe(BELOW)
    with pytest.raises(pipeline.PipelineError, match="a check of the model does not hold"):
        exe(BEYOND)


@pytest.mark.parametrize("flags", [[True, False], [True, True], [False, False], []])
def test_whether_all_or_any_is_true(flags):
    flags = torch.tensor(flags, dtype=torch.bool)

    def both(flags):
        return torch.ops.aten._is_all_true(flags), torch.ops.aten._is_any_true(flags)

    exe = pipeline.compile(Function(both), (flags,), fallback="error")
    assert [bool(found) for found in exe(flags)] == [bool(flags.all()), bool(flags.any())]
