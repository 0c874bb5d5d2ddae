"""Pools whose rows are folded before they are folded along rows: as eager's, with all pads, strides and sizes."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline

CHOSEN = "rows that are folded before"


def was_chosen(executable):
    return any(CHOSEN in remark.reason for remark in executable.remarks)


def check(function, *args, **options):
    executable = pipeline.compile(Function(function), args, **options)
    torch.testing.assert_close(executable(*args), function(*args), equal_nan=True)
    return was_chosen(executable)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [(9, 7), (16, 16), (23, 33), (40, 131), (5, 300)], ids=str)
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 2, 1), (3, 1, 1), (5, 3, 1), (5, 4, 2), (4, 2, 0)])
def test_images(kernel, stride, pad, size, dtype):
    """Rows that fill vectors, that leave a rest, and that are shorter than one; the largest and the mean."""
    torch.manual_seed(0)
    image = torch.randn(2, 3, *size, dtype=dtype)
    if min(size) + 2 * pad < kernel:
        return
    assert check(lambda x: F.max_pool2d(x, kernel, stride, pad), image)
    assert check(lambda x: F.avg_pool2d(x, kernel, stride, pad), image)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: F.max_pool2d(x, 3, 2, 1, dilation=2), id="dilated"),
        pytest.param(lambda x: F.max_pool2d(x, (3, 5), (1, 2), (1, 2), dilation=(3, 1)), id="rows-dilated-alone"),
        pytest.param(lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), id="ceil"),
        pytest.param(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), id="counts"),
        pytest.param(lambda x: F.avg_pool2d(x, (2, 7), (2, 3), divisor_override=5), id="divisor"),
        pytest.param(lambda x: F.max_pool2d(F.pad(x, (1, 4, 0, 2), value=2.5), 3, 2), id="pad-that-counts"),
        pytest.param(lambda x: F.max_pool2d(F.pad(x, (3, 0, 5, 0), value=-math.inf), 3, 2), id="whole-windows-of-pad"),
        pytest.param(lambda x: F.max_pool2d(F.pad(x, (-2, -1, -1, 0)), 3, 2), id="cropped"),
        pytest.param(lambda x: -F.max_pool2d(-x, 3, 2, 1), id="smallest"),
        pytest.param(lambda x: torch.relu(F.max_pool2d(x, 3, 2, 1) - 0.5) * 2, id="epilogues"),
        pytest.param(lambda x: F.max_pool2d(x[0, 0][None, None], 3, 2, 1), id="one-plane"),
        pytest.param(lambda x: F.max_pool2d(x.transpose(2, 3), 3, 2, 1), id="transposed"),
        pytest.param(lambda x: F.max_pool2d(x[:, :, ::2, 1:], 3, 2, 1), id="sliced"),
        pytest.param(lambda x: F.max_pool3d(x[None], 3, 2, 1), id="volumes"),
        pytest.param(lambda x: F.avg_pool3d(x[None], (2, 3, 3), 1, (1, 1, 0)), id="means-of-volumes"),
    ],
)
def test_forms(function):
    torch.manual_seed(0)
    check(function, torch.randn(2, 6, 21, 37))


def test_numbers_that_are_none():
    """NaN wins in every window that has it; a window of -inf stays -inf."""
    image = torch.randn(1, 2, 20, 40)
    image[0, 0, 3, 5], image[0, 1, 19, 39], image[0, 1, 4:10, 4:12] = math.nan, math.inf, -math.inf
    for stride in (1, 2, 3):
        assert check(lambda x, stride=stride: F.max_pool2d(x, 3, stride, 1), image)


def test_threads_have_rows_of_their_own():
    """Planes are shared: each folds rows to one that no other reads."""
    torch.manual_seed(0)
    image = torch.randn(1, 64, 60, 60)
    executable = pipeline.compile(Function(lambda x: F.max_pool2d(x, 3, 2, 1)), (image,), num_threads=2)
    assert was_chosen(executable)
    assert any("shared by threads" in remark.reason for remark in executable.remarks)
    expected = F.max_pool2d(image, 3, 2, 1)
    assert all(torch.equal(executable(image), expected) for _ in range(200))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        pytest.param(lambda x: F.max_pool2d(x, 2, 2), (1, 4, 20, 20), id="small windows"),
        pytest.param(lambda x: F.max_pool1d(x, 3, 2), (1, 4, 200), id="lines"),
        pytest.param(lambda x: F.max_pool2d(x, 7, 6), (1, 4, 60, 60), id="large steps"),
        pytest.param(lambda x: F.avg_pool2d(x, 20), (1, 4, 20, 20), id="whole planes"),
    ],
)
def test_must_not_fire(function, shape):
    assert not check(function, torch.randn(shape))


def test_a_size_that_is_not_known():
    """Stays with the other way of pooling."""
    shapes = (({2: torch.export.Dim("rows", min=8, max=64)},),)
    image = torch.randn(1, 4, 20, 30)
    assert not check(lambda x: F.max_pool2d(x, 3, 2), image, dynamic_shapes=shapes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_largest_of_sixteen_bits(dtype):
    """Compared in f32, by vectors: eager's numbers and places, to the bit."""
    torch.manual_seed(0)
    image = torch.randn(2, 3, 23, 33).to(dtype)
    assert check(lambda x: F.max_pool2d(x, 5, 3, 1), image)
    image[0, 0, 3, 4], image[1, 2, 7, 7:9], image[0, 1] = float("nan"), float("inf"), float("-inf")

    def pools(x):
        return (
            F.max_pool2d(x, 3, 2, 1),
            F.max_pool2d(x[1:], 3, 2, 1, return_indices=True),
            F.max_pool1d(x[0], 4, 2, ceil_mode=True),
            F.max_pool3d(x, 2),
            F.adaptive_max_pool2d(x[1:], (5, 7)),
        )

    mine, theirs = pipeline.compile(Function(pools), (image,))(image), pools(image)
    torch.testing.assert_close(mine, theirs, rtol=0.0, atol=0.0, equal_nan=True)
