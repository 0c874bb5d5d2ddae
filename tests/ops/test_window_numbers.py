"""Lists of one number where windows have several axes: each axis has it, as in eager mode."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function
from numerics import check
from torch.nn import functional as F

__all__ = ["fresh_dynamo"]

IMAGE, VOLUME = (2, 3, 9, 8), (1, 3, 6, 7, 5)

FORMS = {
    "maximum": (lambda x: F.max_pool2d(x, [3]), IMAGE),
    "maximum, spread": (lambda x: F.max_pool2d(x, [3], [2], [1], [2]), IMAGE),
    "maximum, some": (lambda x: F.max_pool2d(x, [3, 2], [2], [1]), IMAGE),
    "maximum 3d": (lambda x: F.max_pool3d(x, [3], [2], [1]), VOLUME),
    "average": (lambda x: F.avg_pool2d(x, [3], [2], [1]), IMAGE),
    "average 3d": (lambda x: F.avg_pool3d(x, (2,)), VOLUME),
    "convolution": (lambda x: F.conv2d(x, _weight(2), None, [2], [1], [1, 2]), IMAGE),
    "convolution 3d": (lambda x: F.conv3d(x, _weight(3), None, [1], [1], [2]), VOLUME),
    "transposed": (lambda x: F.conv_transpose2d(x, _weight(2), None, [2], [3], [1]), IMAGE),
    "transposed 3d": (lambda x: F.conv_transpose3d(x, _weight(3), None, [2], [1], [1]), VOLUME),
    "of one axis": (lambda x: F.conv1d(F.avg_pool1d(x, [2]), _weight(1), None, [2], [1]), (2, 3, 9)),
}


def _weight(axes):
    return torch.linspace(-1, 1, 9 * 3**axes).reshape(3, 3, *[3] * axes)


@pytest.mark.parametrize("name", FORMS)
def test_each_axis_has_it(name):
    form, shape = FORMS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    check(Function(form), x)
    x.requires_grad_()
    results = torch.compile(form, backend="pipeline")(x), form(x)
    gradient, expected = (torch.autograd.grad(y.square().sum(), x)[0] for y in results)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-4)
