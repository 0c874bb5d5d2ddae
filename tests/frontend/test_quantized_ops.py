"""`quantized_decomposed.*`: bytes are eager's, elements halfway between two of them included."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the ops
from function_model import Function

import pipeline

Q = torch.ops.quantized_decomposed

BOUNDS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def halfway(*shape: int) -> torch.Tensor:
    """Multiples of half a step of 0.05, and numbers out of every range."""
    x = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    return (x - x.numel() // 2) * 0.025


def check(function: Callable[..., object], *args: torch.Tensor) -> None:
    """Compiled, a function gives what eager gives, to the bit where that is integers."""
    got, expected = pipeline.compile(Function(function), args, fallback="error")(*args), function(*args)
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for mine, theirs in pairs:
        assert mine.dtype == theirs.dtype
        if theirs.is_floating_point():
            torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)
        else:
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize(("scale", "zero"), [(0.05, 3), (0.037, 0), (1e-8, 7)])
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_per_tensor(dtype: torch.dtype, scale: float, zero: int) -> None:
    low, high = BOUNDS[dtype]
    check(lambda x: Q.quantize_per_tensor(x, scale, zero, low, high, dtype), halfway(13, 31))
    check(lambda x: Q.quantize_per_tensor(x, scale, zero, low, high, dtype), halfway(3, 5).bfloat16())
    q = Q.quantize_per_tensor(halfway(5, 7), scale, zero, low, high, dtype)
    check(lambda q: Q.dequantize_per_tensor(q, scale, zero, low, high, dtype), q)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_per_tensor_by_tensors(dtype: torch.dtype) -> None:
    low, high = BOUNDS[dtype]

    def dynamic(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scale, zero = Q.choose_qparams.tensor(x, low, high, 1e-9, dtype)
        q = Q.quantize_per_tensor.tensor(x, scale, zero, low, high, dtype)
        return scale, zero, q, Q.dequantize_per_tensor.tensor(q, scale, zero, low, high, dtype)

    for x in (halfway(13, 31), torch.randn(7, 5) + 3, torch.zeros(2, 3), torch.full((1, 1), -2.5)):
        check(dynamic, x)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_symmetric_range(dtype: torch.dtype) -> None:
    low, high = BOUNDS[dtype]
    check(lambda x: Q.choose_qparams_symmetric.tensor(x, low, high, 1e-9, dtype), torch.randn(7, 5))


@pytest.mark.parametrize("axis", [0, 1])
def test_per_channel(axis: int) -> None:
    x = halfway(6, 8)
    scales, zeros = torch.rand(x.shape[axis]) / 10 + 0.01, torch.randint(-5, 5, (x.shape[axis],))
    check(lambda x, s, z: Q.quantize_per_channel(x, s, z, axis, -128, 127, torch.int8), x, scales, zeros)
    q = Q.quantize_per_channel(x, scales, zeros, axis, -128, 127, torch.int8)
    check(lambda q, s, z: Q.dequantize_per_channel(q, s, z, axis, -128, 127, torch.int8), q, scales, zeros)


def test_per_token() -> None:
    def dynamic(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scales, zeros = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
        q = Q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        return scales, zeros, q, Q.dequantize_per_token(q, scales, zeros, -128, 127, torch.int8, torch.float32)

    check(dynamic, torch.randn(3, 17) * 5)


def test_per_group() -> None:
    x, scales, zeros = torch.randn(4, 64), torch.rand(4, 2) / 10 + 0.01, torch.randint(-3, 3, (4, 2))
    check(
        lambda x, s, z: Q.quantize_per_channel_group(x, s, z, -8, 7, torch.int8, 32), x, scales, zeros.to(torch.int32)
    )
    q = Q.quantize_per_channel_group(x, scales, zeros.to(torch.int32), -8, 7, torch.int8, 32)
    check(
        lambda q, s, z: Q.dequantize_per_channel_group(q, s, z, -8, 7, torch.int8, 32, torch.float32), q, scales, zeros
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_products_of_packed_bytes(dtype: torch.dtype) -> None:
    weight, scales = torch.randint(-128, 128, (48, 64), dtype=torch.int8), (torch.rand(48) / 100).to(dtype)
    x = torch.randn(5, 64).to(dtype)
    executable = pipeline.compile(Function(torch.ops.aten._weight_int8pack_mm), (x, weight, scales), fallback="error")
    exact = x.double() @ weight.double().T * scales.double()
    limit = max(torch.finfo(dtype).eps, 1e-6) * exact.abs().max()
    assert (executable(x, weight, scales).double() - exact).abs().max() <= limit
