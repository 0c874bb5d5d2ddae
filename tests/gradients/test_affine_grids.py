"""Gradients of grids that affine maps make, of images of all sizes, known or not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid behavior")
@pytest.mark.parametrize("size", [(3, 1, 8, 5), (2, 4, 1, 7), (1, 2, 1, 1), (2, 1, 3, 1, 5)])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("align_corners", [False, True])
def test_gradients(align_corners, dynamic, size):
    torch.manual_seed(0)
    theta = torch.randn(size[0], len(size) - 2, len(size) - 1, requires_grad=True)
    images = torch.randn(size)

    def grid(theta, images):
        return F.affine_grid(theta, images.size(), align_corners=align_corners)

    compiled = torch.compile(grid, backend="pipeline", dynamic=dynamic)
    results = [function(theta, images) for function in (compiled, grid)]
    torch.testing.assert_close(*results)
    weight = torch.randn_like(results[0])
    torch.testing.assert_close(*(torch.autograd.grad(result, theta, weight)[0] for result in results))


def test_batches_that_change():
    torch.manual_seed(0)
    weight = torch.randn(6, 64, requires_grad=True)

    def grids(images):
        theta = (images.flatten(1) @ weight.T).view(-1, 2, 3)
        return F.affine_grid(theta, images.size(), align_corners=False)

    compiled = torch.compile(grids, backend="pipeline")
    for batch in (2, 3, 1, 5):
        images = torch.randn(batch, 1, 8, 8)
        results = [function(images) for function in (compiled, grids)]
        torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(
            *(torch.autograd.grad(result.sin().sum(), weight)[0] for result in results), rtol=1e-3, atol=1e-3
        )
