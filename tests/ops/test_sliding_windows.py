"""Tensor.unfold and nn.functional.unfold: copies that read where the windows lie, without tables of indices."""

import numpy as np
import pytest
import torch
from function_model import Function
from numerics import check
from torch.export import Dim
from torch.nn.functional import unfold

import pipeline

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64], ids=str)
def test_those_of_every_dtype(dtype):
    check(Function(lambda x: (x.unfold(-1, 5, 2), x.unfold(0, 1, 3))), (9 * torch.randn(2, 17)).to(dtype))


@pytest.mark.parametrize(
    ("dim", "size", "step"), [(0, 3, 1), (1, 1, 1), (1, 7, 7), (2, 4, 5), (-1, 2, 9), (0, 5, 1), (1, 0, 2)]
)
def test_those_along_any_dim(dim, size, step):
    check(Function(lambda x: x.unfold(dim, size, step) * 2), torch.randn(5, 7, 9))


def test_those_of_windows_views_and_nothing():
    check(Function(lambda x: x.unfold(2, 3, 2).unfold(3, 2, 1).sum(-1)), torch.randn(2, 3, 9, 8))
    check(Function(lambda x: x.t().unfold(0, 3, 2)), torch.randn(6, 9))
    check(Function(lambda x: x.unfold(1, 3, 1)[:, ::2]), torch.randn(3, 8))
    check(Function(lambda x: x.unfold(1, 3, 1)), torch.randn(0, 8))
    check(Function(lambda x: x.unfold(0, 1, 1)), torch.tensor(2.0))


def test_what_is_written_to_them():
    def program(x):
        y = x.clone()
        y.unfold(0, 2, 2)[1].mul_(3)
        return y, x.clone().unfold(0, 2, 2).add_(1)

    check(Function(program), torch.randn(8))


KERNELS = [
    ((3, 3), 1, 1, 1),
    ((2, 3), 1, 0, 2),
    ((3, 2), 2, 1, 1),
    (1, 1, 0, 1),
    ((2, 2), 1, (1, 2), (3, 1)),
    ((3, 3), (1, 2), (2, 1), (1, 2)),
]


@pytest.mark.parametrize(("kernel", "dilation", "padding", "stride"), KERNELS)
def test_patches_of_images(kernel, dilation, padding, stride):
    patches = Function(lambda x: unfold(x, kernel, dilation, padding, stride))
    check(patches, torch.randn(2, 3, 9, 8))
    check(patches, torch.randn(3, 9, 8))


def test_those_of_symbolic_sizes():
    def program(x):
        return x.unfold(1, 5, 2) + 1

    n = Dim("n", min=7, max=64)
    executable = pipeline.compile(program, (torch.randn(3, 17),), dynamic_shapes=({0: Dim("b", max=8), 1: n},))
    for rows, length in ((1, 7), (2, 8), (3, 33), (8, 64)):
        x = torch.randn(rows, length)
        assert torch.equal(executable(x), program(x))


def test_patches_of_symbolic_sizes():
    def program(x):
        return unfold(x, 3, padding=1, stride=2)

    sizes = {2: Dim("h", min=4, max=40), 3: Dim("w", min=4, max=40)}
    executable = pipeline.compile(program, (torch.randn(2, 3, 9, 8),), dynamic_shapes=(sizes,))
    for height, width in ((4, 4), (9, 8), (17, 5), (40, 33)):
        x = torch.randn(2, 3, height, width)
        assert torch.equal(executable(x), program(x))


def test_frames_times_a_window_are_one_kernel():
    window = torch.from_numpy(np.hanning(16).astype("float32"))
    executable = pipeline.compile(lambda x: x.unfold(-1, 16, 4) * window, (torch.randn(2, 64),))
    assert len(executable.kernels) == 1
    assert "x16xi64" not in executable.ir("linalg"), "the frames are cut by a table of indices"
