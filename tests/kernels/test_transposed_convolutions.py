"""Transposed convolutions in steps, which become convolutions without the zeros between the elements."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from torch import nn

import pipeline


def is_split(exe):
    found = [one for one in exe.remarks if one.pass_name == "split-transposed-convs"]
    return any(one.kind == "passed" for one in found)


def check(function, *args, split=True, tolerance=1e-4):
    exe = pipeline.compile(Function(function), args)
    torch.testing.assert_close(exe(*args), function(*args), rtol=tolerance, atol=tolerance)
    assert is_split(exe) == split


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_lines(kernel, step, padding):
    if kernel == 1 and padding:
        padding = 0
    x, w = torch.randn(2, 3, 7), torch.randn(3, 5, kernel)
    for output_padding in range(step):
        check(lambda x, w, o=output_padding: F.conv_transpose1d(x, w, None, step, padding, o), x, w)


@pytest.mark.parametrize(
    "arguments",
    [
        {"stride": 2},
        {"stride": 2, "padding": 1},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": (2, 1)},
        {"stride": (1, 3), "padding": (0, 1)},
        {"stride": (3, 2), "padding": (2, 1), "output_padding": (1, 0)},
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [(1, 1), (5, 6)], ids=str)
def test_planes(arguments, size):
    x, w, b = torch.randn(2, 3, *size), torch.randn(3, 4, 4, 3), torch.randn(4)
    check(lambda x, w, b: F.conv_transpose2d(x, w, b, **arguments).relu(), x, w, b)


def test_volumes():
    x, w = torch.randn(1, 3, 3, 4, 2), torch.randn(3, 2, 2, 3, 3)
    check(lambda x, w: F.conv_transpose3d(x, w, stride=(2, 2, 1), padding=(0, 1, 1)), x, w)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    x, w = torch.randn(1, 4, 5, 5, dtype=dtype), torch.randn(4, 4, 4, 4, dtype=dtype)
    tolerance = 1e-9 if dtype == torch.float64 else 3e-2
    check(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), x, w, tolerance=tolerance)


def test_zeros_between_meet_no_infinity():
    x, w = torch.randn(1, 2, 4, 4), torch.randn(2, 2, 2, 2)
    w[0, 0, 0, 0] = float("inf")
    check(lambda x, w: F.conv_transpose2d(x, w, stride=2), x, w)


def test_must_not_split():
    """Steps of one, gaps in the kernel, so many phases, and sizes that change; the results are the same."""
    x, w = torch.randn(1, 3, 5, 5), torch.randn(3, 4, 3, 3)
    check(lambda x, w: F.conv_transpose2d(x, w, padding=1), x, w, split=False)
    check(lambda x, w: F.conv_transpose2d(x, w, stride=2, dilation=2), x, w, split=False)
    check(lambda x, w: F.conv_transpose2d(x, w, stride=5), x, w, split=False)
    batch = torch.export.Dim("batch", min=1, max=8)
    model = Function(lambda x, w: F.conv_transpose2d(x, w, stride=2))
    exe = pipeline.compile(model, (torch.randn(3, 3, 5, 5), w), dynamic_shapes=(({0: batch}, None),))
    torch.testing.assert_close(exe(x, w), F.conv_transpose2d(x, w, stride=2), rtol=1e-4, atol=1e-4)
    assert not is_split(exe)


def test_norms_are_folded_before():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(8, 6, 2, 2), nn.BatchNorm2d(6), nn.ReLU()
    ).eval()
    model[3].running_mean.uniform_(-1, 1)
    model[3].running_var.uniform_(0.5, 2)
    x = torch.randn(2, 3, 9, 7)
    exe = pipeline.compile(model, (x,))
    torch.testing.assert_close(exe(x), model(x), rtol=1e-4, atol=1e-4)
    assert is_split(exe)
    assert any(one.pass_name == "fold-batch-norm" and one.kind == "passed" for one in exe.remarks)
