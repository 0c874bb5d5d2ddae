"""Norms as statistics of data, then one multiply and one add of weights.

For group norm and instance norm, torch-mlir gathers scale and shift element by element, at indices that it computes.
Apart like this they are numbers of weights along the dim of the channels, which the passes that fold affines know. For
RMS norm it adds nothing to the mean square where eps is left out, and computes in 16 bits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

aten = torch.ops.aten


def native_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, spatial: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """group_norm(x: [N, C, ..]) → (x - mean) * rstd * weight + bias, with mean and rstd: [N, groups].

    Both statistics in two passes over each group; 16 bits are computed in float32 and rounded once, as torch does.
    """
    wide = x.float() if x.dtype.itemsize == 2 else x
    members = wide.reshape(n, groups, c // groups * spatial)
    mean = members.mean(2)
    deviation = members - mean.unsqueeze(2)
    rstd = ((deviation * deviation).mean(2) + eps).rsqrt()
    ones = [1] * (x.dim() - 2)

    def of_channels(statistic: Tensor) -> Tensor:
        return statistic.unsqueeze(2).expand(n, groups, c // groups).reshape(n, c, *ones)

    result = (wide - of_channels(mean)) * of_channels(rstd)
    if weight is not None:
        result = result * weight.to(wide.dtype).view(c, *ones)
    if bias is not None:
        result = result + bias.to(wide.dtype).view(c, *ones)
    return result.to(x.dtype), mean.to(x.dtype), rstd.to(x.dtype)


def instance_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """instance_norm(x: [N, C, ..]) → group_norm(x, groups=C); with statistics that are given, batch_norm(x)."""
    if not use_input_stats:
        return aten.batch_norm.default(x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled)
    n, c, *spatial = x.shape
    count = math.prod(spatial)
    if running_mean is not None and running_var is not None:
        wide = x.detach().to(running_mean.dtype).reshape(n, c, count)
        mean, var = wide.mean((0, 2)), wide.var(2, correction=1).mean(0)
        running_mean.copy_(running_mean * (1 - momentum) + mean * momentum)
        running_var.copy_(running_var * (1 - momentum) + var * momentum)
    return native_group_norm(x, weight, bias, n, c, count, c, eps)[0]


def rms_norm(x: Tensor, shape: list[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """rms_norm(x) → x * rsqrt(mean(x * x) + eps) * weight, the mean over the last dims, of this shape.

    16 bits are computed in float32 and rounded once; without an eps it is that of the type computed in, as in torch.
    """
    wide = x.float() if x.dtype.itemsize == 2 else x
    added = torch.finfo(wide.dtype).eps if eps is None else eps
    dims = list(range(x.dim() - len(shape), x.dim()))
    result = wide * ((wide * wide).mean(dims, keepdim=True) + added).rsqrt()
    if weight is not None:
        result = result * weight.to(wide.dtype)
    return result.to(x.dtype)
