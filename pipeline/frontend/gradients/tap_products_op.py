"""`pipeline.tap_products`: the gradient of a convolution by its weight, as one sum of products for each tap.

pipeline.tap_products(x, g, taps, stride, dilation): [N, sizes.., (G), I], [N, places.., (G), O] → [(G), O, taps.., I],
where element [o, t, i] is the sum over n and p of x[n, p * stride + t * dilation, i] * g[n, p, o]; in float32 for 16
bits. With `depthwise` the channels are the groups, and there is neither I nor O: [N, sizes.., G], .. → [G, taps..].
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_SCHEMA = "(Tensor x, Tensor g, int[] taps, int[] stride, int[] dilation, bool depthwise) -> Tensor"


@torch.library.custom_op("pipeline::tap_products", mutates_args=(), schema=_SCHEMA)
def tap_products(
    x: Tensor, g: Tensor, taps: Sequence[int], stride: Sequence[int], dilation: Sequence[int], depthwise: bool
) -> Tensor:
    """See the module's docstring."""
    rank = len(taps)
    for dim, (count, step, distance) in enumerate(zip(taps, stride, dilation, strict=True), 1):
        reach = (count - 1) * distance + 1
        x = x.unfold(dim, reach, step)[..., ::distance].narrow(dim, 0, g.size(dim))
    x, g = (tensor.to(_dtype(tensor)) for tensor in (x, g))
    places, kernel, rest = "abc"[:rank], "xyz"[:rank], "" if x.dim() == 2 * rank + 2 else "g"
    i, o = ("", "") if depthwise else ("i", "o")
    rest = "g" if depthwise else rest
    return torch.einsum(f"n{places}{rest}{i}{kernel},n{places}{rest}{o}->{rest}{o}{kernel}{i}", x, g)


@tap_products.register_fake
def _(
    x: Tensor, g: Tensor, taps: Sequence[int], stride: Sequence[int], dilation: Sequence[int], depthwise: bool
) -> Tensor:
    return x.new_empty([*g.shape[len(taps) + 1 :], *taps, *([] if depthwise else x.shape[-1:])], dtype=_dtype(x))


def _dtype(x: Tensor) -> torch.dtype:
    return torch.float32 if x.dtype.itemsize == 2 else x.dtype
