"""Kernels are functions of the executable beside those of the C library that they call."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


class Pow(nn.Module):
    def __init__(self, exponent: float):
        super().__init__()
        self.exponent = exponent

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x**self.exponent


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_kernel_that_is_called_like_what_it_calls_calls_the_library(dtype: torch.dtype) -> None:
    x = torch.rand(5, 37, dtype=dtype) + 0.1
    executable = pipeline.compile(Pow(1.5), (x,))
    torch.testing.assert_close(executable(x), x**1.5)
    (kernel,) = executable.kernels
    assert "pow" in kernel.name
    assert kernel.name not in ("pow", "powf")


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 7, -1, -2, -3])
def test_whole_powers_are_products(exponent: int) -> None:
    x = torch.randn(5, 37)
    executable = pipeline.compile(Pow(exponent), (x,))
    torch.testing.assert_close(executable(x), x**exponent)
    assert not any("pow" in kernel.name for kernel in executable.kernels)
