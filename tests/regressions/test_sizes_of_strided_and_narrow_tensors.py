"""Symbolic sizes of strided arguments, whose strides torch has symbols for, and of integers that are widened."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

import pipeline


def strided(rows, columns):
    return torch.randn(2 * rows, 2 * columns)[::2, ::2]


@pytest.mark.parametrize("view", [torch.flatten, lambda y: y.reshape(-1, 2), lambda y: y.contiguous().view(-1)])
def test_a_reshaped_strided_argument(view):
    def program(x, y):
        x[:, 3:-1]  # what is asked for it is asked of the model
        return view(y)

    dynamic = {0: Dim.AUTO, 1: Dim.AUTO}
    executable = pipeline.compile(program, (torch.randn(5, 5), strided(5, 4)), dynamic_shapes=(dynamic, dynamic))
    for rows, columns in ((5, 4), (3, 6), (7, 8)):
        for y in (strided(rows, columns), torch.randn(rows, columns)):
            x = torch.randn(4, 5)
            torch.testing.assert_close(executable(x, y), program(x, y))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.float32])
@pytest.mark.parametrize("write", [lambda part: part.add_(1), lambda part: part.mul_(part), torch.relu_])
def test_writes_to_a_part(write, dtype):
    def program(x):
        return write(x[:, 2:6:2])

    x = torch.arange(10).reshape(1, 5, 2).to(dtype)
    executable = pipeline.compile(program, (x.clone(),), dynamic_shapes=({1: Dim.AUTO, 2: Dim.AUTO},))
    for size in (2, 3, 4, 5):
        mine, theirs = (torch.arange(2 * size).reshape(1, size, 2).to(dtype) for _ in range(2))
        assert torch.equal(executable(mine), program(theirs)) and torch.equal(mine, theirs)
