"""Groups of matrix products, convolutions, pooling, reductions and normalization."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from groups import Group
from numerics import ALL, FLOATS, NUMBERS


def values(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    """Small values of both signs, where the dtype has one."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    low = 0 if dtype == torch.uint8 else -9
    return torch.randint(low, 10, shape, generator=generator).to(dtype)


def matrices(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """(3x5, 5x4, 2x3x5, 2x5x4, vector of 5, vector of 4, vector of 3, 2x3x4)."""
    shapes = [(3, 5), (5, 4), (2, 3, 5), (2, 5, 4), (5,), (4,), (3,), (2, 3, 4)]
    return tuple(values(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes))


MATMUL = {
    "mm": lambda a, b, p, q, u, v, w, c: a @ b,
    "bmm": lambda a, b, p, q, u, v, w, c: torch.bmm(p, q),
    "mv": lambda a, b, p, q, u, v, w, c: a @ u,
    "vm": lambda a, b, p, q, u, v, w, c: u @ b,
    "dot": lambda a, b, p, q, u, v, w, c: torch.dot(u, u),
    "batched by matrix": lambda a, b, p, q, u, v, w, c: p @ b,
    "matrix by batched": lambda a, b, p, q, u, v, w, c: a @ q,
    "broadcast batch": lambda a, b, p, q, u, v, w, c: p[:, None] @ q[None],
    "batched by vector": lambda a, b, p, q, u, v, w, c: p @ u,
    "transposed": lambda a, b, p, q, u, v, w, c: b.T @ a.T,
    "linear": lambda a, b, p, q, u, v, w, c: F.linear(a, b.T),
    "linear bias": lambda a, b, p, q, u, v, w, c: F.linear(p, b.T, v),
    "addmm": lambda a, b, p, q, u, v, w, c: torch.addmm(v, a, b),
    "addmm scaled": lambda a, b, p, q, u, v, w, c: torch.addmm(v, a, b, beta=2, alpha=3),
    "baddbmm": lambda a, b, p, q, u, v, w, c: torch.baddbmm(c, p, q, beta=2, alpha=3),
    "addmv": lambda a, b, p, q, u, v, w, c: torch.addmv(w, a, u),
    "einsum": lambda a, b, p, q, u, v, w, c: torch.einsum("bij,jk->bki", p, b),
    "outer": lambda a, b, p, q, u, v, w, c: torch.outer(u, v),
    "tensordot": lambda a, b, p, q, u, v, w, c: torch.tensordot(p, q, dims=([2], [1])),
    "kron": lambda a, b, p, q, u, v, w, c: torch.kron(a, v),
}


def lines(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """x: 2x4x11, w: 6x4x3, bias: 6, grouped w: 6x2x3, depthwise w: 8x1x3, transposed w: 4x3x3."""
    shapes = [(2, 4, 11), (6, 4, 3), (6,), (6, 2, 3), (8, 1, 3), (4, 3, 3)]
    return tuple(values(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes))


def planes(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """As `lines`, for two dimensions."""
    shapes = [(2, 4, 9, 8), (6, 4, 3, 2), (6,), (6, 2, 3, 2), (8, 1, 3, 2), (4, 3, 3, 2)]
    return tuple(values(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes))


def volumes(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """As `lines`, for three dimensions."""
    shapes = [(1, 4, 6, 5, 7), (6, 4, 3, 2, 3), (6,), (6, 2, 3, 2, 3), (8, 1, 3, 2, 3), (4, 3, 3, 2, 3)]
    return tuple(values(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes))


def convolutions(conv, transposed):
    """The variants of a convolution."""
    return {
        "plain": lambda x, w, b, g, d, t: conv(x, w),
        "bias": lambda x, w, b, g, d, t: conv(x, w, b),
        "strided": lambda x, w, b, g, d, t: conv(x, w, b, stride=2),
        "padded": lambda x, w, b, g, d, t: conv(x, w, b, padding=1),
        "same": lambda x, w, b, g, d, t: conv(x, w, b, padding="same"),
        "dilated": lambda x, w, b, g, d, t: conv(x, w, b, dilation=2),
        "grouped": lambda x, w, b, g, d, t: conv(x, g, b, groups=2),
        "depthwise": lambda x, w, b, g, d, t: conv(x, d, groups=4, padding=1),
        "grouped strided padded dilated": lambda x, w, b, g, d, t: conv(
            x, g, b, stride=2, padding=2, dilation=2, groups=2
        ),
        "depthwise strided": lambda x, w, b, g, d, t: conv(x, d, stride=2, groups=4),
        "unbatched": lambda x, w, b, g, d, t: conv(x[0], w, b),
        "transposed": lambda x, w, b, g, d, t: transposed(x, t),
        "transposed strided": lambda x, w, b, g, d, t: transposed(x, t, stride=2),
        "transposed padded": lambda x, w, b, g, d, t: transposed(x, t, b[:3], stride=2, padding=1, output_padding=1),
        "transposed dilated": lambda x, w, b, g, d, t: transposed(x, t, dilation=2),
        "transposed grouped": lambda x, w, b, g, d, t: transposed(x, t, stride=2, groups=2),
        "transposed depthwise": lambda x, w, b, g, d, t: transposed(x, d[:4], b[:4], stride=2, padding=1, groups=4),
    }


def images(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """2x3x10, 2x3x9x8, 1x2x6x5x7; sizes that windows do not divide."""
    return values(dtype, 2, 3, 10), values(dtype, 2, 3, 9, 8), values(dtype, 1, 2, 6, 5, 7)


POOLING = {
    "max 1d": lambda x, y, z: F.max_pool1d(x, 3, 2),
    "max 2d": lambda x, y, z: F.max_pool2d(y, 3),
    "max 2d padded": lambda x, y, z: F.max_pool2d(y, 3, 2, padding=1),
    "max 2d ceil": lambda x, y, z: F.max_pool2d(y, 3, 2, ceil_mode=True),
    "max 2d ceil padded": lambda x, y, z: F.max_pool2d(y, (3, 2), (2, 3), padding=1, ceil_mode=True),
    "max 2d dilated": lambda x, y, z: F.max_pool2d(y, 2, 2, dilation=2),
    "max 2d indices": lambda x, y, z: F.max_pool2d(y, 3, 2, return_indices=True),
    "max 3d": lambda x, y, z: F.max_pool3d(z, 2, 2),
    "avg 1d": lambda x, y, z: F.avg_pool1d(x, 3, 2),
    "avg 2d": lambda x, y, z: F.avg_pool2d(y, 3),
    "avg 2d padded": lambda x, y, z: F.avg_pool2d(y, 3, 2, padding=1),
    "avg 2d padded not counted": lambda x, y, z: F.avg_pool2d(y, 3, 2, padding=1, count_include_pad=False),
    "avg 2d ceil": lambda x, y, z: F.avg_pool2d(y, 3, 2, ceil_mode=True),
    "avg 2d ceil padded": lambda x, y, z: F.avg_pool2d(y, 3, 2, padding=1, ceil_mode=True),
    "avg 2d ceil padded not counted": lambda x, y, z: F.avg_pool2d(
        y, 3, 2, padding=1, ceil_mode=True, count_include_pad=False
    ),
    "avg 2d divisor": lambda x, y, z: F.avg_pool2d(y, 2, divisor_override=3),
    "avg 3d": lambda x, y, z: F.avg_pool3d(z, 2, 2),
    "adaptive avg 1d": lambda x, y, z: F.adaptive_avg_pool1d(x, 5),
    "adaptive avg 2d": lambda x, y, z: F.adaptive_avg_pool2d(y, 1),
    "adaptive avg 2d even": lambda x, y, z: F.adaptive_avg_pool2d(y, (3, 4)),
    "adaptive avg 2d uneven": lambda x, y, z: F.adaptive_avg_pool2d(y, (4, 3)),
    "adaptive avg 3d": lambda x, y, z: F.adaptive_avg_pool3d(z, 1),
    "adaptive max 1d": lambda x, y, z: F.adaptive_max_pool1d(x, 5),
    "adaptive max 2d": lambda x, y, z: F.adaptive_max_pool2d(y, 1),
    "adaptive max 2d uneven": lambda x, y, z: F.adaptive_max_pool2d(y, (4, 3)),
    "lp": lambda x, y, z: F.lp_pool2d(y, 2, 3),
    "interpolate nearest": lambda x, y, z: F.interpolate(y, scale_factor=2),
    "interpolate bilinear": lambda x, y, z: F.interpolate(y, size=(5, 11), mode="bilinear"),
    "interpolate corners": lambda x, y, z: F.interpolate(y, size=(5, 11), mode="bilinear", align_corners=True),
    "pixel_shuffle": lambda x, y, z: F.pixel_shuffle(y.permute(0, 3, 1, 2), 2),
    "unfold": lambda x, y, z: F.unfold(y, 3),
}

MAX_POOLING = {key: function for key, function in POOLING.items() if key.startswith("max")}


def table(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """2x3x4 with ties, limits and, in floats, infinity; the same with a NaN in floats; 3x1x4."""
    x = values(dtype, 2, 3, 4)
    if dtype != torch.bool and not dtype.is_floating_point:
        x[0, 0, 0], x[1, 2, 3] = torch.iinfo(dtype).max, torch.iinfo(dtype).min
        x[0, 1] = 5
    y = x.clone()
    if dtype.is_floating_point:
        x[0, 0, 0] = float("inf")
        x[0, 1] = 5
        y[1, 1, 2] = float("nan")
    return x, y, values(dtype, 3, 1, 4, seed=7)


REDUCTIONS = {
    "sum": lambda x, y, z: x.sum(),
    "sum dim": lambda x, y, z: x.sum(1),
    "sum dims keep": lambda x, y, z: x.sum((0, -1), keepdim=True),
    "sum dtype": lambda x, y, z: x.sum(0, dtype=torch.float32),
    "mean": lambda x, y, z: x.mean(),
    "mean dim": lambda x, y, z: x.mean(-1, keepdim=True),
    "mean dtype": lambda x, y, z: x.mean(-1, dtype=torch.float64),
    "prod": lambda x, y, z: x.prod(),
    "prod dim": lambda x, y, z: x.prod(1),
    "max": lambda x, y, z: x.max(),
    "min": lambda x, y, z: x.min(),
    "max nan": lambda x, y, z: y.max(),
    "min nan": lambda x, y, z: y.min(),
    "max dim": lambda x, y, z: tuple(x.max(-1)),
    "min dim": lambda x, y, z: tuple(x.min(0)),
    "max dim nan": lambda x, y, z: tuple(y.max(-1)),
    "min dim nan": lambda x, y, z: tuple(y.min(-1)),
    "amax": lambda x, y, z: x.amax((0, 1)),
    "amin": lambda x, y, z: x.amin(-1, keepdim=True),
    "amax nan": lambda x, y, z: y.amax(-1),
    "aminmax": lambda x, y, z: tuple(x.aminmax(dim=0)),
    "argmax": lambda x, y, z: x.argmax(),
    "argmin": lambda x, y, z: x.argmin(),
    "argmax dim": lambda x, y, z: x.argmax(1),
    "argmin dim keep": lambda x, y, z: x.argmin(-1, keepdim=True),
    "argmax nan": lambda x, y, z: y.argmax(-1),
    "any": lambda x, y, z: x.any(),
    "all": lambda x, y, z: x.all(),
    "any dim": lambda x, y, z: x.any(1),
    "all dim": lambda x, y, z: x.all(-1, keepdim=True),
    "all dims": lambda x, y, z: (x.all((0, -1)), (x > y).all((1,), keepdim=True), z.all(())),
    "all nan": lambda x, y, z: y.all(-1),
    "var": lambda x, y, z: z.var(),
    "var dim": lambda x, y, z: z.var(0),
    "var population": lambda x, y, z: z.var((0, 2), unbiased=False),
    "std": lambda x, y, z: z.std(-1, keepdim=True),
    "var_mean": lambda x, y, z: torch.var_mean(z, -1),
    "norm": lambda x, y, z: z.norm(),
    "norm dim": lambda x, y, z: z.norm(dim=-1),
    "norm 1": lambda x, y, z: z.norm(1, dim=0),
    "norm 3": lambda x, y, z: z.norm(3, dim=-1),
    "norm inf": lambda x, y, z: z.norm(float("inf"), dim=-1),
    "vector_norm": lambda x, y, z: torch.linalg.vector_norm(z, dim=(0, 2)),
    "vector_norm dtype": lambda x, y, z: torch.linalg.vector_norm(z, 2, keepdim=True, dtype=torch.float64),
    "matrix_norm": lambda x, y, z: torch.linalg.matrix_norm(z),
    "logsumexp": lambda x, y, z: x.logsumexp(-1),
    "count_nonzero": lambda x, y, z: x.count_nonzero(0),
    "cumsum": lambda x, y, z: x.cumsum(1),
    "cumprod": lambda x, y, z: x.cumprod(-1),
    "cummax": lambda x, y, z: tuple(x.cummax(-1)),
    "cummin": lambda x, y, z: tuple(x.cummin(0)),
    "logcumsumexp": lambda x, y, z: z.logcumsumexp(-1),
    "nansum": lambda x, y, z: y.nansum(-1),
    "trace": lambda x, y, z: x[0].trace(),
    "median": lambda x, y, z: x.flatten()[:5].median(),
    "mode of one": lambda x, y, z: z.amax(1),
    "diff": lambda x, y, z: x.diff(dim=-1),
    "cdist": lambda x, y, z: torch.cdist(z[:, 0], z[:, 0]),
    "cosine_similarity": lambda x, y, z: F.cosine_similarity(z[:, 0], z[0], dim=-1),
    "mse_loss": lambda x, y, z: F.mse_loss(z, z.flip(0)),
    "l1_loss": lambda x, y, z: F.l1_loss(z, z.flip(0)),
    "smooth_l1_loss": lambda x, y, z: F.smooth_l1_loss(z, z.flip(0)),
}


def features(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """x: 2x6x4x3, weight and bias and mean and (positive) variance of 6, one of 3 for the last dimension."""
    parts = [values(dtype, 6, seed=seed) for seed in (1, 2, 3, 4)]
    parts[3] = parts[3].abs() + 1
    return values(dtype, 2, 6, 4, 3), *parts, values(dtype, 3, seed=5)


NORMALIZATION = {
    "softmax": lambda x, w, b, m, v, k: x.softmax(-1),
    "softmax channel": lambda x, w, b, m, v, k: x.softmax(1),
    "softmax wide": lambda x, w, b, m, v, k: x.softmax(-1, dtype=torch.float64),
    "softmax with -inf": lambda x, w, b, m, v, k: x.masked_fill(x > 1, -float("inf")).softmax(-1),
    "log_softmax": lambda x, w, b, m, v, k: x.log_softmax(-1),
    "softmin": lambda x, w, b, m, v, k: F.softmin(x, 1),
    "layer_norm": lambda x, w, b, m, v, k: F.layer_norm(x, (3,), k, k),
    "layer_norm dims": lambda x, w, b, m, v, k: F.layer_norm(x, (4, 3)),
    "rms_norm": lambda x, w, b, m, v, k: F.rms_norm(x, (3,), k),
    "group_norm": lambda x, w, b, m, v, k: F.group_norm(x, 3, w, b),
    "instance_norm": lambda x, w, b, m, v, k: F.instance_norm(x, weight=w, bias=b),
    "batch_norm": lambda x, w, b, m, v, k: F.batch_norm(x, m, v, w, b),
    "batch_norm plain": lambda x, w, b, m, v, k: F.batch_norm(x, m, v),
    "batch_norm training": lambda x, w, b, m, v, k: F.batch_norm(x, None, None, w, b, training=True),
    "local_response_norm": lambda x, w, b, m, v, k: F.local_response_norm(x, 3),
    "normalize": lambda x, w, b, m, v, k: F.normalize(x, dim=1),
    "attention": lambda x, w, b, m, v, k: F.scaled_dot_product_attention(x, x, x),
    "attention causal": lambda x, w, b, m, v, k: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "attention mask": lambda x, w, b, m, v, k: F.scaled_dot_product_attention(x, x, x, attn_mask=x[0, 0, :, :1] > -9),
    "cross_entropy": lambda x, w, b, m, v, k: F.cross_entropy(x[:, :, 0, 0], torch.tensor([1, 4])),
    "nll_loss": lambda x, w, b, m, v, k: F.nll_loss(x[:, :, 0, 0], torch.tensor([1, 4])),
    "kl_div": lambda x, w, b, m, v, k: F.kl_div(x, x.softmax(-1), reduction="sum"),
    "bce": lambda x, w, b, m, v, k: F.binary_cross_entropy_with_logits(x, x.sigmoid()),
}

STRUCTURED = {
    "matmul": Group(matrices, MATMUL, NUMBERS),
    "conv1d": Group(lines, convolutions(F.conv1d, F.conv_transpose1d), NUMBERS),
    "conv2d": Group(planes, convolutions(F.conv2d, F.conv_transpose2d), NUMBERS),
    "conv3d": Group(volumes, convolutions(F.conv3d, F.conv_transpose3d), NUMBERS),
    "pooling": Group(images, POOLING, FLOATS),
    "pooling of integers": Group(images, MAX_POOLING, (torch.uint8, torch.int8, torch.int16, torch.int32)),
    "reductions": Group(table, REDUCTIONS, ALL),
    "normalization": Group(features, NORMALIZATION, FLOATS),
}
