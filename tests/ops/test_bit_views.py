"""Tensor.view(dtype): the same bits read as another dtype, beside arithmetic in both."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from numerics import FLOATS, INTEGERS, check, name
from torch.export import Dim

import pipeline


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS], ids=name)
def test_each_dtype_as_each(source):
    def program(x):
        views = [x.view(target) for target in (*INTEGERS, *FLOATS)]
        return [view + 1 for view in views], [(x + 1).view(target) for target in (*INTEGERS, *FLOATS)], views[-1].abs()

    check(Function(program), (20 * torch.randn(3, 40, generator=torch.Generator().manual_seed(0))).to(source))


@pytest.mark.parametrize("source", [torch.bool, torch.complex64, torch.complex128], ids=name)
def test_truth_values_and_complex_numbers(source):
    targets = (torch.uint8, torch.int64, torch.float32, torch.float64, torch.complex64, torch.complex128)
    x = (3 * torch.randn(2, 32, generator=torch.Generator().manual_seed(0))).to(source)
    check(Function(lambda x: [x.view(target) + 1 for target in (source, *targets)]), x)
    check(Function(lambda x: [x.view(target).view(source) for target in targets]), x)


def test_tensors_of_no_dim_and_of_nothing():
    program = Function(lambda x, y: (x.view(torch.int32), y.view(torch.uint8), y.view(torch.float64)))
    check(program, torch.tensor(2.5), torch.randn(0, 4))


def test_what_is_written_through_them():
    def program(x):
        own = x.clone()
        own.view(torch.uint8)[:, 3::4] &= 0x7F
        x.view(torch.int16)[0] = 3
        return own

    check(Function(program), torch.randn(3, 8))


def test_symbolic_sizes():
    def program(x, y):
        return x.view(torch.uint8), x.view(torch.int16), y.view(torch.float32)

    sizes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    x, y = torch.randn(5, 9), torch.randint(0, 256, (7, 12), dtype=torch.uint8)
    executable = pipeline.compile(Function(program), (x, y), dynamic_shapes=(sizes,), fallback="error")
    for rows in (1, 2, 6):
        x, y = torch.randn(rows, rows + 3), torch.randint(0, 256, (rows, 12), dtype=torch.uint8)
        torch.testing.assert_close(list(executable(x, y)), list(program(x, y)), equal_nan=True)


@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16, torch.int16], ids=name)
def test_products_of_what_is_seen(source):
    def program(x, y):
        seen = [(x.view(target) @ (y.view(target) + 1)) for target in (torch.float16, torch.bfloat16, torch.int16)]
        return seen, (y.view(torch.bfloat16) + 1) @ y.view(torch.bfloat16)

    x, y = (torch.randint(0x3C00, 0x3F00, (4, 4)).to(torch.int16).view(source) for _ in range(2))
    check(Function(program), x, y)
