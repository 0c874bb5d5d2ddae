"""Elementwise ops that take 16 bytes at a time, also where an operand is broadcast: on the simulator, and in PTX."""

from __future__ import annotations

import re

import pytest
import torch
from gpu_models import Function
from torch.nn import functional as F

import pipeline

pytestmark = pytest.mark.usefixtures("simulator")


def _randn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _check(function, *args):
    """Compares with eager; returns whether several results are stored at a time."""
    executable = pipeline.compile(Function(function), args, target="cuda:sm_80")
    expected = function(*args)
    torch.testing.assert_close(
        executable(*args), expected, atol=1e-5, rtol=1e-5 if expected.dtype.itemsize > 2 else 2e-2
    )
    return re.search(r"st\.global\.v\d", executable.ir("ptx")) is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((6, 40), (40,)),
        ((6, 40), (6, 1)),
        ((6, 40), (1, 1)),
        ((6, 40), ()),
        ((2, 3, 5, 16), (3, 1, 1)),
        ((2, 3, 5, 16), (2, 1, 5, 16)),
        ((2, 3, 5, 16), (5, 1)),
        ((2, 3, 5, 16), (2, 3, 5, 1)),
    ],
)
def test_what_is_broadcast(shape, other, dtype):
    """Along rows, where one access has neighbours of it; across them, where all neighbours take one."""
    assert _check(lambda x, y: x * 2 + y, _randn(*shape, dtype=dtype), _randn(*other, seed=1, dtype=dtype))


def test_several_of_them():
    x, bias, scale, mask = _randn(6, 48), _randn(48, seed=1), _randn(6, 1, seed=2), _randn(6, 48, seed=3)
    assert _check(lambda x, b, s, m: F.gelu(x + b) * s - m, x, bias, scale, mask)
    assert _check(lambda x, b, s: (x + b).bfloat16() * s.bfloat16(), x, bias, scale)


def test_integers():
    x = torch.arange(6 * 32, dtype=torch.int32).reshape(6, 32)
    assert _check(lambda x, y: x * 3 + y, x, torch.arange(32, dtype=torch.int32))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, y: x + y, ((6, 7), (7,))),
        (lambda x, y: x + y, ((8, 6), (6,))),
        (lambda x, y: x + y, ((6, 7), (6, 1))),
        (lambda x, y: x + y[1:41], ((6, 40), (41,))),
    ],
)
def test_rows_that_do_not_come_out_even(function, shapes):
    """Must not fire: an access would go from one row to the next, or start in the middle of one."""
    assert not _check(function, *(_randn(*shape, seed=seed) for seed, shape in enumerate(shapes)))
