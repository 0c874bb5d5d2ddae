"""Strides, paddings, dilations and groups of convolutions that are arguments or sizes, and so symbolic."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from torch.export import Dim
from torch.nn import functional as F

import pipeline

__all__ = ["fresh_dynamo"]

FUNCTIONS = {
    "stride": lambda x, w, n: F.conv2d(x, w, stride=n),
    "stride of one axis": lambda x, w, n: F.conv2d(x, w, stride=(1, n)),
    "padding": lambda x, w, n: F.conv2d(x, w, padding=n),
    "dilation": lambda x, w, n: F.conv2d(x, w, dilation=n),
    "groups": lambda x, w, n: F.conv2d(x.repeat(1, n, 1, 1), w.repeat(n, 1, 1, 1), groups=n),
    "transposed, with padding alone": lambda x, w, n: F.conv_transpose2d(x, w, padding=n - 1),
    "all": lambda x, w, n: F.conv2d(x, w, stride=n, padding=n - 1, dilation=n),
    "transposed": lambda x, w, n: F.conv_transpose2d(x, w, stride=n, padding=n - 1, output_padding=n - 1),
    "a window for each channel": lambda x, w, n: F.conv2d(x, w[:1, :1].expand(x.shape[1], 1, 3, 3), groups=x.shape[1]),
    "rows": lambda x, w, n: F.conv1d(x.flatten(2), w.flatten(2), stride=n, padding=n, dilation=n),
    "volumes": lambda x, w, n: F.conv3d(x.unsqueeze(2), w.unsqueeze(2), stride=(1, n, n), padding=(0, n, n)),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, torch.float32) for name in FUNCTIONS), ("all", torch.bfloat16)], ids=str
)
def test_compiled_for_each(name, dtype):
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="pipeline", dynamic=True)
    for number, height in [(2, 9), (3, 11)]:
        x, w = (torch.randn(2, 4, height, 10, dtype=dtype), torch.randn(4, 4, 3, 3, dtype=dtype))
        results = []
        for call in (function, compiled):
            leaves = [tensor.clone().requires_grad_() for tensor in (x, w)]
            result = call(*leaves, number)
            results.append((result.detach(), *torch.autograd.grad(result.sum(), leaves)))
        eager, ours = results
        places = {"rtol": 0.02, "atol": 0.1} if dtype is torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-4}
        torch.testing.assert_close(ours, eager, **places)


def test_an_executable_is_of_the_examples():
    """Groups of a size hold calls to the size of the example, and the error says which."""

    class Blur(torch.nn.Module):
        def forward(self, x):
            return F.conv2d(x, torch.ones(x.shape[1], 1, 3, 3), groups=x.shape[1])

    sizes = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC, 2: Dim.DYNAMIC}
    executable = pipeline.compile(Blur(), (torch.randn(2, 4, 9, 9),), dynamic_shapes=(sizes,))
    x = torch.randn(3, 4, 7, 9)
    torch.testing.assert_close(executable(x), Blur()(x))
    with pytest.raises(pipeline.ArgumentError, match=r"argument x: expected .*, 4, .*, got float32\[3, 5, 7, 9\]"):
        executable(torch.randn(3, 5, 7, 9))
