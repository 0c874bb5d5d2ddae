"""Products of matrices."""

from __future__ import annotations

import torch

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


@op("MatMul")
def matmul(call: NodeCall, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As NumPy's."""
    return torch.matmul(a, b)


@op("Gemm")
def gemm(call: NodeCall, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    """alpha a b + beta c, a linear layer where both are 1 and b is transposed."""
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    a = a.t() if call.get("transA") else a
    b = b.t() if call.get("transB") else b
    product = torch.mm(a, b)
    product = product if alpha == 1 else (product * alpha).to(product.dtype)
    if c is None:
        return product
    return product + (c if beta == 1 else (c * beta).to(c.dtype))


@op("Einsum")
def einsum(call: NodeCall, *tensors: torch.Tensor) -> torch.Tensor:
    """By an equation."""
    return torch.einsum(call.get("equation").replace(" ", ""), *tensors)
