"""multinomial and randperm: the same for the same seed, distributed as they should be, checked as torch checks."""

from __future__ import annotations

import math

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

WEIGHTS = torch.tensor([[0.1, 0.0, 0.4, 0.5], [3.0, 1.0, 0.0, 0.0]])


def seeded(executable, *args, seed=0):
    torch.manual_seed(seed)
    return executable(*args)


def is_distributed_as(counts, probabilities):
    """Whether counts are within five standard deviations of what is expected."""
    total = counts.sum()
    deviation = (total * probabilities * (1 - probabilities)).sqrt()
    return bool(((counts - total * probabilities).abs() <= 5 * deviation).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_with_replacement(dtype):
    weights = WEIGHTS.to(dtype)
    executable = pipeline.compile(Function(lambda w: w.multinomial(4000, replacement=True)), (weights,))
    drawn = seeded(executable, weights)
    assert drawn.shape == (2, 4000) and drawn.dtype == torch.int64
    for row, line in zip(drawn, weights.double(), strict=True):
        assert is_distributed_as(row.bincount(minlength=4).double(), line / line.sum())
    assert torch.equal(drawn, seeded(executable, weights))
    assert not torch.equal(drawn, seeded(executable, weights, seed=1))


@pytest.mark.parametrize("k", [1, 2])
def test_without_replacement(k):
    weights = WEIGHTS.repeat_interleave(3000, 0)
    executable = pipeline.compile(Function(lambda w: w.multinomial(k)), (weights,))
    drawn = seeded(executable, weights)
    assert drawn.shape == (6000, k)
    for row, line in zip(drawn.view(2, 3000, k), WEIGHTS.double(), strict=True):
        assert is_distributed_as(row[:, 0].bincount(minlength=4).double(), line / line.sum())
        assert (row.sort(1)[0].diff() > 0).all(), "distinct"
        assert (line[row] > 0).all()
    assert torch.equal(drawn, seeded(executable, weights))


def test_one_line_and_symbolic_sizes():
    shapes = (({0: Dim("rows"), 1: Dim("columns", min=2)},),)
    executable = pipeline.compile(
        Function(lambda w: (w.multinomial(2), w[0].multinomial(3, True))), (torch.rand(3, 5),), dynamic_shapes=shapes
    )
    for rows, columns in ((3, 5), (1, 2), (4, 40)):
        lines, line = executable(torch.rand(rows, columns))
        assert lines.shape == (rows, 2) and line.shape == (3,)
        assert lines.max() < columns and lines.min() >= 0 and (lines[:, 0] != lines[:, 1]).all()


@pytest.mark.parametrize("replacement", [False, True])
def test_checks(replacement):
    executable = pipeline.compile(Function(lambda w: w.multinomial(2, replacement)), (torch.ones(2, 3),))
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(pipeline.PipelineError, match="contains either `inf`, `nan` or element < 0"):
            executable(torch.tensor([[1, 1, 1], [1, bad, 1]]))
    with pytest.raises(pipeline.PipelineError, match="sum of probabilities <= 0"):
        executable(torch.tensor([[1.0, 1, 1], [0, 0, 0]]))


def test_the_last_place_is_not_passed():
    executable = pipeline.compile(Function(lambda w: w.multinomial(1000, True)), (torch.ones(5),))
    drawn = executable(torch.tensor([0.0, 1e-30, 0, 1e30, 0]))
    assert (drawn == 3).all()


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_randperm(n):
    executable = pipeline.compile(Function(lambda x: x[torch.randperm(n)]), (torch.arange(n),))
    drawn = seeded(executable, torch.arange(n))
    assert torch.equal(drawn.sort()[0], torch.arange(n))
    assert torch.equal(drawn, seeded(executable, torch.arange(n)))
    if n > 10:
        assert not torch.equal(drawn, seeded(executable, torch.arange(n), seed=1))


def test_permutations_are_equally_likely():
    def function(x):
        return torch.stack([torch.randperm(3, dtype=torch.int32) for _ in range(4)]) + x

    executable = pipeline.compile(Function(function), (torch.zeros(3, dtype=torch.int32),))
    torch.manual_seed(0)
    drawn = torch.cat([executable(torch.zeros(3, dtype=torch.int32)) for _ in range(1500)]).long()
    assert drawn.shape == (6000, 3)
    numbers = (drawn * torch.tensor([9, 3, 1])).sum(1).unique(return_counts=True)[1].double()
    assert numbers.numel() == 6 and is_distributed_as(numbers, torch.full((6,), 1 / 6))


def test_randperm_of_a_symbolic_size():
    executable = pipeline.compile(
        Function(lambda x: x[torch.randperm(x.shape[0])]), (torch.arange(5),), dynamic_shapes=(({0: Dim("n")},),)
    )
    for n in (5, 1, 64):
        assert torch.equal(executable(torch.arange(n)).sort()[0], torch.arange(n))


def test_integers_of_a_range():
    executable = pipeline.compile(
        Function(lambda x: (x.clone().random_(-3, 4), x.clone().random_(5), torch.poisson(x + 2))),
        (torch.zeros(20000),),
        fallback="torch",
    )
    first, second, third = seeded(executable, torch.zeros(20000))
    assert set(first.tolist()) == set(range(-3, 4)) and set(second.tolist()) == set(range(5))
    assert abs(third.mean() - 2) < 0.1 and abs(third.var() - 2) < 0.2
    assert [fallback.op for fallback in executable.fallbacks] == ["aten.poisson"]
