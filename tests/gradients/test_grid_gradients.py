"""Gradients of samples of images and volumes at the points of a grid, by both, in every form."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch._inductor.inductor_prims  # defines prims.fma, which the table has
import torch.nn.functional as F
from torch import nn

from pipeline.frontend.decompositions import decomposition_table

#: Mode, padding, and whether corners are aligned, by the dims of an image; as torch numbers them.
FORMS = {dims: tuple(itertools.product(range(5 - dims), range(3), (False, True))) for dims in (2, 3)}

SHAPES = (
    ((2, 3, 5, 4), (3, 7)),
    ((1, 2, 1, 6), (1, 1)),
    ((2, 1, 1, 1), (2, 2)),
    ((0, 3, 4, 4), (2, 2)),
    ((2, 2, 3, 5, 4), (2, 3, 4)),
    ((1, 1, 1, 1, 2), (1, 2, 2)),
)


def drawn(shape, size, dtype=torch.float32):
    """An image and a grid that goes far over its ends, some points of which are at them."""
    x = torch.randn(shape, dtype=dtype)
    grid = torch.rand(shape[0], *size, len(size), dtype=dtype) * 5 - 2.5
    ends = torch.tensor([-1.0, 1.0, 0.0], dtype=dtype)[: math.prod(size)]
    grid.view(shape[0], math.prod(size), len(size))[:, : len(ends)] = ends[:, None]
    return x.requires_grad_(), grid.requires_grad_()


def assert_gradients_are_eagers(compiled, function, arguments, rtol, atol):
    results = compiled(*arguments), function(*arguments)
    weights = torch.randn_like(results[0])
    torch.testing.assert_close(*results, rtol=rtol, atol=atol)
    gradients = [torch.autograd.grad(result, arguments, weights) for result in results]
    torch.testing.assert_close(*gradients, rtol=rtol, atol=atol)


@pytest.mark.parametrize(("shape", "size"), SHAPES, ids=str)
def test_how_they_are_taken_apart(shape, size):
    """In every form, as eager's own kernel has them."""
    torch.manual_seed(0)
    x, grid = (one.detach() for one in drawn(shape, size, torch.float64))
    op = getattr(torch.ops.aten, f"grid_sampler_{len(size)}d_backward").default
    taken_apart = decomposition_table()[op]
    for mode, padding, corners in FORMS[len(size)]:
        gradient = torch.randn(*shape[:2], *size, dtype=torch.float64)
        arguments = (gradient, x, grid, mode, padding, corners)
        for mask in ([True, True], [True, False], [False, True]):
            results = taken_apart(*arguments, mask)
            assert [result is not None for result in results] == mask
            for result, expected in zip(results, op(*arguments, mask), strict=True):
                if result is not None:
                    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("form", "shape", "size"),
    [
        (("bilinear", "zeros", False), (2, 3, 5, 4), (3, 7)),
        (("bilinear", "border", True), (1, 2, 1, 6), (1, 1)),
        (("nearest", "zeros", True), (2, 3, 5, 4), (3, 7)),
        (("bicubic", "reflection", False), (2, 2, 5, 4), (2, 3)),
        (("bilinear", "reflection", True), (2, 2, 3, 5, 4), (2, 3, 4)),
    ],
    ids=str,
)
def test_compiled(form, shape, size):
    torch.manual_seed(0)
    mode, padding, corners = form

    def sampled(x, grid):
        return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)

    compiled = torch.compile(sampled, backend="pipeline")
    assert_gradients_are_eagers(compiled, sampled, drawn(shape, size), 1e-4, 1e-4)


@pytest.mark.parametrize("of", [0, 1])
def test_one_of_both(of):
    """The gradient by the image, or by the grid, alone."""
    torch.manual_seed(0)
    x, grid = drawn((2, 3, 5, 4), (3, 7))
    (grid if of == 0 else x).requires_grad_(False)

    def sampled(x, grid):
        return F.grid_sample(x, grid, align_corners=False)

    results = [function(x, grid) for function in (torch.compile(sampled, backend="pipeline"), sampled)]
    torch.testing.assert_close(*(torch.autograd.grad(result.cos().sum(), (x, grid)[of])[0] for result in results))


def test_sizes_that_change():
    torch.manual_seed(0)

    def sampled(x, grid):
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)

    compiled = torch.compile(sampled, backend="pipeline", dynamic=True)
    for batch, height, points in ((2, 5, 3), (3, 9, 4), (1, 2, 1)):
        assert_gradients_are_eagers(compiled, sampled, drawn((batch, 3, height, 6), (points, 5)), 1e-4, 1e-4)


class SpatialTransformer(nn.Module):
    """A network that turns its images before it looks at them."""

    def __init__(self):
        super().__init__()
        self.locate = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(6))
        self.head = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))

    def forward(self, x):
        grid = F.affine_grid(self.locate(x).view(-1, 2, 3), x.size(), align_corners=False)
        return self.head(F.grid_sample(x, grid, align_corners=False))


def test_a_spatial_transformer(count):
    torch.manual_seed(0)
    model, images, labels = SpatialTransformer(), torch.randn(4, 1, 16, 16), torch.randint(0, 10, (4,))
    model(images)
    gradients = []
    for function in (torch.compile(model, backend="pipeline"), model):
        F.cross_entropy(function(images), labels).backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
        model.zero_grad(set_to_none=True)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
    assert count["backward"] == 1
    assert "backward in eager" not in count
