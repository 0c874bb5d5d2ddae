"""Products of matrices of floats of 8 bits, in float32, with the scales that they are numbers of."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.frontend.float8.rules import aten, cast, rule


@rule(aten._scaled_mm.default)
def scaled_mm(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """_scaled_mm(a: [M, K], b: [K, N], s: [] or [M, 1], t: [] or [1, N], c: [N]) → (a @ b) * s * t + c: [M, N].

    Scales are of whole matrices, or of the rows of one and the columns of the other.
    """
    product = cast(a, torch.float32) @ cast(b, torch.float32)
    product = product * _of_rows(scale_a, a, 0) * _of_rows(scale_b, b, 1)
    if bias is not None:
        product = product + bias.to(torch.float32)
    if scale_result is not None:
        product = product * scale_result
    return cast(product, out_dtype or a.dtype)


def _of_rows(scale: Tensor, matrix: Tensor, dim: int) -> Tensor:
    """A scale as what a product is multiplied with."""
    if scale.numel() == 1:
        return scale.reshape(())
    return scale.reshape([matrix.size(dim), 1] if dim == 0 else [1, matrix.size(dim)])
