"""Groups of ops that index, move and repeat elements."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from groups import Group
from numerics import ALL
from structured import values


def indexed(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """x: 4x5, s: 4x5 of other values, i: indices below 4, n: indices from -4 to 3, g: 2x5 indices below 4."""
    return (
        values(dtype, 4, 5),
        values(dtype, 4, 5, seed=1),
        torch.tensor([2, 0, 2, 3]),
        torch.tensor([-1, 3, -4, 0]),
        torch.tensor([[0, 1, 3, 3, 2], [2, 1, 0, 3, 1]]),
    )


INDEXING = {
    "embedding": lambda x, s, i, n, g: F.embedding(g, x),
    "gather": lambda x, s, i, n, g: x.gather(0, g),
    "gather 1": lambda x, s, i, n, g: x.gather(1, g[:, :3].T[:2]),
    "take_along_dim": lambda x, s, i, n, g: x.take_along_dim(g, 0),
    "index_select": lambda x, s, i, n, g: x.index_select(0, i),
    "index_select 1": lambda x, s, i, n, g: x.index_select(-1, i),
    "index": lambda x, s, i, n, g: x[i],
    "index negative": lambda x, s, i, n, g: x[n],
    "index second": lambda x, s, i, n, g: x[:, n],
    "index pair": lambda x, s, i, n, g: x[i, n],
    "index broadcast": lambda x, s, i, n, g: x[i[:, None], n],
    "index separated": lambda x, s, i, n, g: x[None][:, i, :, None][..., i * 0],
    "index int32": lambda x, s, i, n, g: x[i.int()],
    "select": lambda x, s, i, n, g: x[-1],
    "slice": lambda x, s, i, n, g: x[1:3, ::2],
    "slice negative": lambda x, s, i, n, g: x[-3:-1, -9:],
    "slice empty": lambda x, s, i, n, g: x[3:1],
    "take": lambda x, s, i, n, g: x.take(g),
    "index_put": lambda x, s, i, n, g: x.index_put((i[:2],), s[:2]),
    "index_put negative": lambda x, s, i, n, g: x.index_put((n[:2],), s[:2]),
    "index_put accumulate": lambda x, s, i, n, g: x.index_put((i,), s, accumulate=True),
    "index_put pair": lambda x, s, i, n, g: x.index_put((i[1:], n[1:]), s[0, :3]),
    "index_put scalar": lambda x, s, i, n, g: x.index_put((i,), s[0, 0]),
    "index_add": lambda x, s, i, n, g: x.index_add(0, i, s),
    "index_copy": lambda x, s, i, n, g: x.index_copy(0, i[1:], s[1:]),
    "index_fill": lambda x, s, i, n, g: x.index_fill(1, i, 1),
    "scatter": lambda x, s, i, n, g: x.scatter(0, g[:1], s[:1]),
    "scatter 1": lambda x, s, i, n, g: x.scatter(1, g[:, [0, 1, 2]], s[:2]),
    "scatter value": lambda x, s, i, n, g: x.scatter(0, g, 1),
    "scatter_add": lambda x, s, i, n, g: x.scatter_add(0, g, s[:2]),
    "scatter_add 1": lambda x, s, i, n, g: x.scatter_add(1, g, s[:2]),
    "scatter_reduce amax": lambda x, s, i, n, g: x.scatter_reduce(0, g, s[:2], "amax"),
    "scatter_reduce prod": lambda x, s, i, n, g: x.scatter_reduce(0, g, s[:2], "prod"),
    "scatter_reduce mean": lambda x, s, i, n, g: x.scatter_reduce(0, g, s[:2], "mean", include_self=False),
    "slice_scatter": lambda x, s, i, n, g: x.slice_scatter(s[:2], 0, 1, 3),
    "select_scatter": lambda x, s, i, n, g: x.select_scatter(s[0], 0, 2),
    "diagonal_scatter": lambda x, s, i, n, g: x.diagonal_scatter(s[:, 0]),
    "masked_fill": lambda x, s, i, n, g: x.masked_fill(i[:, None] > 2, 1),
    "masked_scatter": lambda x, s, i, n, g: x.masked_scatter(i[:, None] > 2, s),
    "where": lambda x, s, i, n, g: torch.where(i[:, None] > 0, x, s),
    "topk": lambda x, s, i, n, g: x.topk(3)[0],
    "topk smallest": lambda x, s, i, n, g: x.topk(2, 0, largest=False)[0],
    "sort": lambda x, s, i, n, g: x.sort(stable=True),
    "sort descending": lambda x, s, i, n, g: x.sort(0, descending=True, stable=True),
    "argsort": lambda x, s, i, n, g: x.argsort(1, stable=True),
    "kthvalue": lambda x, s, i, n, g: x.kthvalue(2)[0],
    "searchsorted": lambda x, s, i, n, g: torch.searchsorted(x.sort()[0], s),
    "bucketize": lambda x, s, i, n, g: torch.bucketize(s, x[0].sort()[0]),
    "one_hot": lambda x, s, i, n, g: F.one_hot(i, 4),
    "cumsum": lambda x, s, i, n, g: x.cumsum(0),
    "isin": lambda x, s, i, n, g: torch.isin(x, s[0]),
}


def shaped(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """2x3x4, 2x3x4, 4x4."""
    return values(dtype, 2, 3, 4), values(dtype, 2, 3, 4, seed=1), values(dtype, 4, 4, seed=2)


SHAPES = {
    "cat": lambda x, y, z: torch.cat([x, y, x], 1),
    "cat last": lambda x, y, z: torch.cat([x, y], -1),
    "stack": lambda x, y, z: torch.stack([x, y], 1),
    "hstack": lambda x, y, z: torch.hstack([x, y]),
    "split": lambda x, y, z: x.split(3, -1),
    "split sizes": lambda x, y, z: x.split([1, 0, 3], -1),
    "chunk": lambda x, y, z: x.chunk(2, 1),
    "unbind": lambda x, y, z: x.unbind(1),
    "tensor_split": lambda x, y, z: x.tensor_split(3, -1),
    "pad": lambda x, y, z: F.pad(x, (1, 2, 0, 1)),
    "pad value": lambda x, y, z: F.pad(x, (1, 2), value=1),
    "pad negative": lambda x, y, z: F.pad(x, (-1, 2)),
    "pad reflect": lambda x, y, z: F.pad(x, (2, 1), mode="reflect"),
    "pad reflect 2d": lambda x, y, z: F.pad(x, (2, 1, 1, 2), mode="reflect"),
    "pad replicate": lambda x, y, z: F.pad(x, (2, 1), mode="replicate"),
    "pad replicate 2d": lambda x, y, z: F.pad(x, (2, 1, 1, 2), mode="replicate"),
    "pad circular": lambda x, y, z: F.pad(x, (2, 1), mode="circular"),
    "repeat": lambda x, y, z: x.repeat(2, 1, 3),
    "repeat_interleave": lambda x, y, z: x.repeat_interleave(2, 1),
    "tile": lambda x, y, z: x.tile(2),
    "expand": lambda x, y, z: x[:, :1].expand(2, 5, 4),
    "unfold": lambda x, y, z: x.unfold(-1, 2, 1),
    "as_strided": lambda x, y, z: x.as_strided((2, 3), (12, 2), 1),
    "as_strided overlapping": lambda x, y, z: z.as_strided((3, 3), (2, 1)),
    "flip": lambda x, y, z: x.flip(0, -1),
    "roll": lambda x, y, z: x.roll((1, -2), (0, -1)),
    "roll flat": lambda x, y, z: x.roll(5),
    "rot90": lambda x, y, z: z.rot90(),
    "tril": lambda x, y, z: z.tril(),
    "triu": lambda x, y, z: x.triu(1),
    "tril below": lambda x, y, z: z.tril(-1),
    "diagonal": lambda x, y, z: x.diagonal(1, -2, -1),
    "diag": lambda x, y, z: z[0].diag(),
    "diag_embed": lambda x, y, z: x.diag_embed(),
    "permute": lambda x, y, z: x.permute(2, 0, 1),
    "transpose": lambda x, y, z: x.transpose(0, -1),
    "reshape": lambda x, y, z: x.permute(2, 0, 1).reshape(3, 8),
    "flatten": lambda x, y, z: x.flatten(1),
    "unflatten": lambda x, y, z: x.unflatten(-1, (2, 2)),
    "view": lambda x, y, z: x.view(4, 6),
    "squeeze": lambda x, y, z: x[:1].squeeze(),
    "unsqueeze": lambda x, y, z: x.unsqueeze(-1),
    "movedim": lambda x, y, z: x.movedim(0, -1),
    "meshgrid": lambda x, y, z: torch.meshgrid(z[0], z[1], indexing="ij"),
    "broadcast_to": lambda x, y, z: z[0].broadcast_to(2, 4),
    "full_like": lambda x, y, z: torch.full_like(x, 3),
    "zeros_like": lambda x, y, z: torch.zeros_like(x),
    "new_full": lambda x, y, z: x.new_full((2, 2), 1),
    "arange": lambda x, y, z: torch.arange(7, dtype=x.dtype) if x.dtype != torch.bool else x,
    "linspace": lambda x, y, z: torch.linspace(0, 1, 5, dtype=x.dtype) if x.is_floating_point() else x,
    "eye": lambda x, y, z: torch.eye(3, 4, dtype=x.dtype),
    "clone": lambda x, y, z: x.clone(),
    "contiguous": lambda x, y, z: x.mT.contiguous(),
    "block_diag": lambda x, y, z: torch.block_diag(z, x[0]),
    "cartesian_prod": lambda x, y, z: torch.cartesian_prod(z[0], z[1]),
    "tril_indices": lambda x, y, z: torch.tril_indices(3, 3),
}

MOVEMENT = {"indexing": Group(indexed, INDEXING, ALL), "shapes": Group(shaped, SHAPES, ALL)}
