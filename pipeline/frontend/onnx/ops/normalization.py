"""Norms."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


@op("BatchNormalization")
def batch_normalization(
    call: NodeCall, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """By running statistics; in training by the batch's, with new running ones."""
    epsilon = call.get("epsilon", 1e-5)
    if not call.get("training_mode"):
        if scale.dtype != x.dtype:
            wide = F.batch_norm(
                x.to(scale.dtype), mean.to(scale.dtype), variance.to(scale.dtype), scale, bias, eps=epsilon
            )
            return (wide.to(x.dtype),)
        return (F.batch_norm(x, mean.to(x.dtype), variance.to(x.dtype), scale, bias, eps=epsilon),)
    dims = [axis for axis in range(x.dim()) if axis != 1]
    momentum = call.get("momentum", 0.9)
    own_mean, own_variance = x.mean(dims), x.var(dims, unbiased=False)
    shape = [1, -1, *[1] * (x.dim() - 2)]
    y = (x - own_mean.reshape(shape)) / torch.sqrt(own_variance.reshape(shape) + epsilon)
    y = y * scale.reshape(shape) + bias.reshape(shape)
    return (
        y.to(x.dtype),
        mean * momentum + own_mean * (1 - momentum),
        variance * momentum + own_variance * (1 - momentum),
    )


@op("InstanceNormalization")
def instance_normalization(call: NodeCall, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Over each channel of each image."""
    dims = list(range(2, x.dim()))
    shape = [-1, *[1] * (x.dim() - 2)]
    y = (x - x.mean(dims, keepdim=True)) * torch.rsqrt(
        x.var(dims, unbiased=False, keepdim=True) + call.get("epsilon", 1e-5)
    )
    return y * scale.reshape(shape) + bias.reshape(shape)


@op("LayerNormalization")
def layer_normalization(
    call: NodeCall, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    """Over all dims from an axis on; with mean and reciprocal deviation if they are asked for."""
    axis, epsilon = call.get("axis", -1) % x.dim(), call.get("epsilon", 1e-5)
    sizes = list(x.shape[axis:])
    dims = list(range(axis, x.dim()))
    if len(call.node.output) == 1 and list(scale.shape) == sizes and (bias is None or list(bias.shape) == sizes):
        return (F.layer_norm(x, sizes, scale, bias, epsilon),)
    wide = x.to(torch.float32) if x.dtype.itemsize < 4 else x
    mean = wide.mean(dims, keepdim=True)
    inverse = torch.rsqrt(wide.var(dims, unbiased=False, keepdim=True) + epsilon)
    y = ((wide - mean) * inverse).to(x.dtype) * scale
    return y if bias is None else y + bias, mean, inverse


@op("RMSNormalization")
def rms_normalization(call: NodeCall, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """By the root of the mean square over all dims from an axis on."""
    dims = list(range(call.get("axis", -1) % x.dim(), x.dim()))
    wide = x.to(torch.float32) if x.dtype.itemsize < 4 else x
    y = wide * torch.rsqrt((wide * wide).mean(dims, keepdim=True) + call.get("epsilon", 1e-5))
    return y.to(x.dtype) * scale


@op("GroupNormalization")
def group_normalization(call: NodeCall, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Over groups of channels; before version 21 with a scale for each group."""
    groups, epsilon = call.get("num_groups"), call.get("epsilon", 1e-5)
    if call.version < 21:
        scale, bias = (each.repeat_interleave(x.shape[1] // groups) for each in (scale, bias))
    return F.group_norm(x, groups, scale, bias, epsilon)


@op("LRN")
def local_response_normalization(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """By the squares of the channels around."""
    size, alpha = call.get("size"), call.get("alpha", 1e-4)
    before = (size - 1) // 2
    squares = F.pad((x * x).unsqueeze(1).flatten(3), [0, 0, before, size - 1 - before])
    sums = squares.squeeze(1).unfold(1, size, 1).sum(-1).reshape(x.shape)
    return x / (call.get("bias", 1.0) + alpha / size * sums) ** call.get("beta", 0.75)


@op("MeanVarianceNormalization")
def mean_variance_normalization(call: NodeCall, x: torch.Tensor) -> torch.Tensor:
    """To a mean of 0 and a variance of 1 along axes."""
    dims = call.get("axes", [0, 2, 3])
    mean = x.mean(dims, keepdim=True)
    deviation = torch.sqrt((x * x).mean(dims, keepdim=True) - mean * mean)
    return (x - mean) / (deviation + 1e-9)
