"""Random numbers, from torch's generator; `seed` attributes have no meaning for it."""

from __future__ import annotations

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


@op("RandomNormal", "RandomUniform")
def drawn(call: NodeCall) -> torch.Tensor:
    """Of a shape."""
    return _drawn(call, call.get("shape"), call.dtype("dtype"))


@op("RandomNormalLike", "RandomUniformLike")
def drawn_like(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Of another tensor's shape."""
    return _drawn(call, list(x.shape), call.dtype("dtype", x.dtype))


def _drawn(call: NodeCall, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    if call.node.op_type.startswith("RandomNormal"):
        return torch.randn(shape, dtype=dtype) * call.get("scale", 1.0) + call.get("mean", 0.0)
    low, high = call.get("low", 0.0), call.get("high", 1.0)
    return torch.rand(shape, dtype=dtype) * (high - low) + low


@op("Bernoulli")
def bernoulli(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """1 with the probability that x says."""
    return (torch.rand(x.shape, dtype=x.dtype) < x).to(call.dtype("dtype", x.dtype))


@op("Multinomial")
def multinomial(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """Places by the logarithms of their probabilities."""
    chosen = torch.multinomial(torch.softmax(x, 1), call.get("sample_size", 1), replacement=True)
    return chosen.to(call.dtype("dtype", torch.int32))
