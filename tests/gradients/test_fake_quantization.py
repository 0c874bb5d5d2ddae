"""What training that is aware of quantization computes: eager's numbers and gradients.

Sizes are known: with symbolic ones dynamo leaves these ops to eager mode.
"""

from __future__ import annotations

import pytest
import torch

RANGES = [(0, 255), (-128, 127), (-8, 7)]
SHAPES = [(), (1,), (0, 4), (5, 4), (3, 4, 7)]


def numbers(shape, dtype, scale):
    """Some inside and some outside of the range, halves of a step among them."""
    count = torch.Size(shape).numel()
    steps = torch.linspace(-300, 300, max(count, 2), dtype=dtype)[:count].reshape(shape)
    return ((steps * 2).round() / 2) * scale


def compared(function, *arguments):
    results = []
    for call in (function, torch.compile(function, backend="pipeline", fullgraph=True)):
        inputs = [a.clone().requires_grad_(a.is_floating_point() and k == 0) for k, a in enumerate(arguments)]
        result = call(*inputs)
        result.sin().sum().backward()
        results.append((result.detach(), inputs[0].grad))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_per_tensor(shape, dtype, limits, count):
    x, zero = numbers(shape, dtype, 0.1), sum(limits) // 2
    compared(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, zero, *limits), x)
    assert not count["backward in eager"]


@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tensors_of_parameters(shape, dtype, limits, count):
    x, scale, zero = numbers(shape, dtype, 0.1), torch.tensor([0.1]), torch.tensor([sum(limits) // 2]).int()
    compared(lambda x, scale, zero: torch.fake_quantize_per_tensor_affine(x, scale, zero, *limits), x, scale, zero)
    assert not count["backward in eager"]


@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 4), 0), ((5, 4), 1), ((3, 4, 7), 1), ((0, 4), 1), ((4, 1), 0)], ids=str
)
def test_per_channel(shape, axis, dtype, limits, count):
    x, scales = numbers(shape, dtype, 0.1), torch.linspace(0.05, 0.2, shape[axis])
    zeros = torch.full((shape[axis],), sum(limits) // 2, dtype=torch.int32)
    compared(lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, axis, *limits), x, scales, zeros)
    assert not count["backward in eager"]


@pytest.mark.parametrize("enabled", [0, 1])
def test_switches(enabled):
    x = numbers((5, 4), torch.float32, 0.1)
    x[0, 0] = torch.nan

    def function(x, scale, zero, on):
        op = torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return op(x, scale, zero, on, -128, 127)

    arguments = x, torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32), torch.tensor([enabled])
    result = torch.compile(function, backend="pipeline")(*arguments)
    torch.testing.assert_close(result, function(*arguments), equal_nan=True)
