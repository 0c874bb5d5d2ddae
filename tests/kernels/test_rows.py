"""Kernels over rows (softmax, norms, sums of what is computed) against float64: lengths, dtypes, NaN and infinities."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pipeline

LENGTHS = (0, 1, 2, 15, 16, 17, 63, 64, 65, 130, 1000)


class Rows(nn.Module):
    """What is computed of the rows of several matrices."""

    def forward(self, *matrices):
        return [
            (
                F.softmax(x, -1),
                F.log_softmax(x, -1),
                F.layer_norm(x, x.shape[-1:]) if x.shape[-1] else x,
                F.rms_norm(x, x.shape[-1:], eps=1e-6) if x.shape[-1] else x,
                (x * x).sum(-1),
                torch.exp(-x).sum(-1),
                x / (1 + x.abs()).sum(-1, keepdim=True),
            )
            for x in matrices
        ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_lengths(dtype):
    torch.manual_seed(0)
    matrices = tuple(torch.randn(3, length).to(dtype) for length in LENGTHS)
    results = pipeline.compile(Rows(), matrices)(*matrices)
    exact = Rows()(*(x.double() for x in matrices))
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 3e-2}[dtype]
    for mine, theirs in zip(results, exact, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one.dtype == dtype
            torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("eps", [None, 1e-5])
def test_rms_norm_of_small_numbers(eps, dtype):
    """What is added to the mean square counts there, given or not, and squares do not underflow."""
    x, weight = torch.randn(4, 19) * torch.tensor([1.0, 1e-3, 1e-6, 1e-9])[:, None], torch.randn(19)
    x, weight = x.to(dtype), weight.to(dtype)

    class Norm(nn.Module):
        def forward(self, x, weight):
            return F.rms_norm(x, (19,), weight, eps), F.rms_norm(x, (4, 19), eps=eps)

    for mine, theirs in zip(pipeline.compile(Norm(), (x, weight))(x, weight), Norm()(x, weight), strict=True):
        close = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(mine, theirs, rtol=close, atol=torch.finfo(dtype).tiny)


def test_special_values():
    """NaN makes its row NaN, wherever it is; minus infinity counts for nothing; large numbers do not overflow."""
    rows = torch.randn(40, 67)
    for place in range(20):
        rows[place, 3 * place] = float("nan")
        rows[20 + place, 3 * place :] = float("-inf") if place else 88.0
    rows[25] *= 1e4
    model = Rows()
    for mine, theirs in zip(
        pipeline.compile(model, (rows,))(rows)[0][:2], (F.softmax(rows, -1), F.log_softmax(rows, -1)), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_maximum_of_nan_and_zeros():
    """NaN comes through the largest and the smallest; 0 and -0 are equal."""
    x = torch.randn(19, 70).clamp(max=0) * torch.tensor([1.0, 0.0]).repeat(35)
    x[3, 69] = x[5, 0] = float("nan")

    class Extremes(nn.Module):
        def forward(self, x):
            return x.amax(-1), x.amin(-1), x.amax(0), torch.maximum(x, -x), torch.relu(x)

    for mine, theirs in zip(pipeline.compile(Extremes(), (x,))(x), Extremes()(x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


def test_softmax_of_other_dims_and_dynamic_lengths():
    torch.manual_seed(0)

    class Softmaxes(nn.Module):
        def forward(self, x):
            return x.softmax(0), x.softmax(1), x.softmax(2), x.softmax(-1).sum(-1)

    length = torch.export.Dim("length")
    executable = pipeline.compile(Softmaxes(), (torch.randn(3, 5, 21),), dynamic_shapes={"x": {2: length}})
    for size in (1, 16, 33, 100):
        x = torch.randn(3, 5, size)
        for mine, theirs in zip(executable(x), Softmaxes()(x.double()), strict=True):
            torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-6)


def test_a_result_over_an_argument():
    """Rows of the result are scratch before they are results: an argument that `out` shares memory with is whole."""
    x = torch.randn(9, 100)
    expected = x.softmax(-1)

    class Softmax(nn.Module):
        def forward(self, x):
            return x.softmax(-1)

    executable = pipeline.compile(Softmax(), (x,))
    executable(x, out=x)
    torch.testing.assert_close(x, expected)
