"""What is accumulated in zeros and added to another tensor is accumulated there; other sums stay."""

from __future__ import annotations

import pytest
import torch

import pipeline

PLACES = torch.tensor([4, 0, 4, 2])


def put(x, values):
    return torch.zeros_like(x).index_put([PLACES], values, accumulate=True)


def scatter_added(x, values):
    return torch.zeros(5, 3).to(x.dtype).scatter_add(0, PLACES[:, None].expand(4, 3), values)


#: Sums of x [5, 3] and what is made of values [4, 3], and how many additions of floats there are.
SUMS = {
    "first": (lambda x, values: x + put(x, values), 1),
    "last": (lambda x, values: put(x, values) + x * 2, 1),
    "scatter_add": (lambda x, values: scatter_added(x, values) + x, 1),
    "index_add": (lambda x, values: torch.zeros(5, 3, dtype=x.dtype).index_add(0, PLACES, values, alpha=3) + x, 1),
    "both": (lambda x, values: put(x, values) + put(x, values * 2), 2),
    "put, not added": (lambda x, values: x + torch.zeros_like(x).index_put([PLACES[1:]], values[1:]), 1),
    "not zeros": (lambda x, values: x + torch.ones_like(x).index_put([PLACES], values, accumulate=True), 2),
    "times a number": (lambda x, values: torch.add(x, put(x, values), alpha=2), 2),
    "in a row": (lambda x, values: x[0] + put(x, values), 2),
    "read twice": (lambda x, values: (lambda made: (x + made) * made)(put(x, values)), 2),
    "of another type": (lambda x, values: x + put(x.int(), values.int()), 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16], ids=str)
def test_sums(dtype):
    def function(x, values):
        return [form(x, values) for form, _ in SUMS.values()]

    args = ((10 * torch.randn(5, 3)).to(dtype), (10 * torch.randn(4, 3)).to(dtype))
    exe = pipeline.compile(function, args)
    for name, found, expected in zip(SUMS, exe(*args), function(*args), strict=True):
        tolerance = {"rtol": 0.02, "atol": 0.2} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
        torch.testing.assert_close(found, expected, msg=lambda text, name=name: f"{name}: {text}", **tolerance)


@pytest.mark.parametrize("name", SUMS)
def test_additions(name):
    """One in each scatter, and one beside it where it is not accumulated in the summand."""
    form, additions = SUMS[name]
    exe = pipeline.compile(form, (torch.randn(5, 3), torch.randn(4, 3)))
    assert exe.ir("linalg").count("arith.addf") == additions
