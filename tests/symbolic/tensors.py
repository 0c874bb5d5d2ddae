"""Gathers, scatters, sorts, sums, and tensors put together and taken apart, along symbolic dims."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from case import cases
from torch import Tensor


def scatter_add(x: Tensor, ids: Tensor) -> Tensor:
    return torch.zeros(x.shape[0], 7).scatter_add(1, ids, x)


def graph_sum(x: Tensor, ids: Tensor) -> Tensor:
    return torch.zeros(7, x.shape[1]).index_add(0, ids, x)


def scatter_in(x: Tensor, y: Tensor) -> Tensor:
    order = y.argsort(1)
    return torch.zeros_like(x).scatter(1, order, x)


def gather_sorted(x: Tensor) -> Tensor:
    values, order = x.sort(1)
    return values + x.gather(1, order)


def put(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 0] = 1.0
    y[..., -1] += 2
    return y


def put_slice(x: Tensor) -> Tensor:
    y = torch.zeros(x.shape[0], x.shape[1] + 2, 4)
    y[:, 1:-1] = x
    return y


def halves(x: Tensor) -> Tensor:
    first, second = x.split(x.shape[1] // 2, 1)
    return first * second


def chunks(x: Tensor) -> Tensor:
    first, second = x.chunk(2, 1)
    return torch.cat([second, first], 1)


def from_before_the_start(x: Tensor) -> Tensor:
    return x[:, -100:] + 1


def last_two(x: Tensor) -> Tensor:
    return x[:, -2:].sum(1)


def windows_of_index(x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1])
    return x[:, (places[:, None] + torch.arange(3)[None]).clamp(max=x.shape[1] - 1)]


def pairs(x: Tensor) -> Tensor:
    b, t, c = x.shape
    left = x.unsqueeze(2).expand(b, t, t, c)
    return torch.cat([left, left.transpose(1, 2)], -1).reshape(b, t * t, 2 * c)


def mesh(x: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij")
    return torch.stack([rows, columns], -1).reshape(-1, 2) * x.reshape(-1, 1)


def nested_arange(x: Tensor) -> Tensor:
    b, t = x.shape
    return torch.arange(b * t).view(b, t) + x


def distance_matrix(x: Tensor) -> Tensor:
    return ((x[:, :, None] - x[:, None]) ** 2).sum(-1).sqrt()


def running_product(x: Tensor) -> Tensor:
    return x.logcumsumexp(1) + x.cumprod(1)


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x, 0).sum(1) / mask.sum(1).clamp(min=1)


def repeat_each(x: Tensor) -> Tensor:
    return x.repeat_interleave(3, dim=1)


def variances(x: Tensor) -> tuple[Tensor, ...]:
    """Of fewer numbers than what is taken off, too."""
    return tuple(x.var(-1, correction=correction) for correction in (0, 1.3, 3, 10))


CASES = [
    *cases(
        {
            "scatter add": (scatter_add, "b t", "int:b t"),
            "index add": (graph_sum, "t u", "int:t"),
            "scatter": (scatter_in, "b t", "b t"),
            "gather": (gather_sorted, "b t"),
            "gather along": (lambda x, i: x.gather(1, i % x.shape[1]), "b t", "int:b u"),
            "index select": (lambda x, i: x.index_select(1, i % x.shape[1]), "b t 4", "int:u"),
            "indices": (lambda x, i: x[i % x.shape[0]], "b t", "int:u"),
            "two indices": (lambda x, i, j: x[i % x.shape[0], :, j % x.shape[2]], "b t u", "int:t 1", "int:u"),
            "neighbouring indices": (lambda x, i: x[:, i % x.shape[1], -1 - i % x.shape[2]], "b t u", "int:b"),
            "topk": (lambda x: torch.topk(x, 2, 1)[0], "b t+1"),
            "argmax": (lambda x: (x.argmax(1), x.argmin(0)), "b t"),
            "cumsum": (lambda x: x.cumsum(1) + x.cumsum(0), "b t"),
            "running extremes": (lambda x: (x.cummax(1), x.cummin(0)), "b t"),
            "running sum of exponentials": (lambda x: (100 * x).logcumsumexp(1), "b t"),
            "median": (lambda x: (x.median(), x.median(1)), "b t"),
            "running product": (running_product, "b t"),
            "logsumexp": (lambda x: x.logsumexp((0, 1)), "b t 4"),
            "var": (lambda x: x.var((1, 2), unbiased=False), "b t u"),
            "prod": (lambda x: x.prod(1), "b t"),
            "put": (put, "b t 4"),
            "put slice": (put_slice, "b t 4"),
            "where": (lambda x, y: torch.where(x > y, x, y), "b t", "b t"),
            "masked mean": (masked_mean, "b t", "bool:b t"),
            "pairs": (pairs, "b t 4"),
            "mesh": (mesh, "b t"),
            "nested arange": (nested_arange, "b t"),
            "distances of pairs": (distance_matrix, "b t 4"),
        }
    ),
    *cases(
        {
            "cat": (lambda x, y: torch.cat([x, y, x], 1), "b t 4", "b u 4"),
            "cat of dims of the batch": (lambda x, y: torch.cat([x, y]), "b t", "u t"),
            "stack": (lambda x, y: torch.stack([x, y], 1).flatten(1, 2), "b t", "b t"),
            "split": (lambda x: torch.cat(x.split([1, 3], -1)[::-1], -1), "b t 4"),
            "halves": (halves, "b 2*t 4"),
            "chunks": (chunks, "b 2*t 4"),
            "variances": (variances, "b t"),
            "roll": (lambda x: x.roll(1, 1) + x.roll((1, -1), (0, 1)), "b t"),
            "rot90": (lambda x: torch.rot90(x, 1, (0, 1)) * 2, "b t"),
            "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), "b t"),
            "tile": (lambda x: x.tile(2, 3), "b t"),
            "repeat": (lambda x: x.repeat(2, 1, 3), "b t 4"),
            "repeat by a size": (lambda x, y: x.repeat(1, y.shape[0]), "b t", "u 2"),
            "repeat each": (repeat_each, "b t"),
            "slice": (lambda x: x[1:, ::2], "b+1 t"),
            "slice from before the start": (from_before_the_start, "b t"),
            "last two": (last_two, "b t+1"),
            "last": (lambda x: x[:, -1] + x[:, 0], "b t 4"),
            "windows of index": (windows_of_index, "b t"),
            "narrow": (lambda x: x.narrow(1, 1, x.shape[1] - 1), "b t+1"),
            "tril and triu": (lambda x: x.tril(-1) + x.triu(1), "b t t"),
            "diagonal": (lambda x: x.diagonal(dim1=1, dim2=2), "b t t"),
            "trace": (lambda x: torch.einsum("bii->b", x), "b t t"),
            "eye": (lambda x: x + torch.eye(x.shape[1]), "b t t"),
            "matmul": (torch.matmul, "b t 4", "4 u"),
            "broadcast matmul": (torch.matmul, "b 1 t 4", "u 4 3"),
            "matrix times vector": (torch.matmul, "b t 4", "4"),
            "einsum of outer": (lambda x, y: torch.einsum("bi,bj->bij", x, y), "b t", "b u"),
            "einsum transposed": (lambda x, y: torch.einsum("bijc,jkc->kib", x, y), "b t u 2", "u 3 2"),
            "tensordot": (lambda x, y: torch.tensordot(x, y, 2), "b t 4", "t 4 3"),
            "broadcast": (lambda x, y: x[:, None] + y[None, :, None], "b t", "u"),
            "unfold of a line": (lambda x: x.unfold(0, 2, 1).sum(1), "t+1"),
            "bytes": (lambda x: x.flip(1).reshape(-1).float() / 255, "bytes:b t"),
            "double": (lambda x: x.reshape(-1, 2).softmax(0), "f64:b t 4"),
        }
    ),
]
