"""Small constant tensors, which are literals of the code, in the place of any operand of ops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline

SQUARE = torch.tensor([[1, 2, 3], [3, 4, 5], [5, 6, 9]])
ROW, PLACES, FLAGS = torch.tensor([2, 1, 3]), torch.tensor([2, 0, 1]), torch.tensor([True, False, True])

#: What ops take besides x and literals of its dtype: `c` [3, 3], `r` [3]. x is [3, 3].
FORMS: dict[str, Callable[..., torch.Tensor]] = {
    "cat": lambda x, c, r: torch.cat([x, c]),
    "cat of literals": lambda x, c, r: torch.cat([c, c, x], 1),
    "stack": lambda x, c, r: torch.stack([c, x], -1),
    "where": lambda x, c, r: torch.where(x > 1, x, c),
    "where of literals": lambda x, c, r: torch.where(x > 1, c, r),
    "where by a literal": lambda x, c, r: torch.where(FLAGS, x, 2),
    "slice_scatter": lambda x, c, r: x.slice_scatter(c[:1], 0, 1, 2),
    "slice_scatter into a literal": lambda x, c, r: c.slice_scatter(x[:1], 0, 1, 2),
    "select_scatter": lambda x, c, r: x.select_scatter(r, 1, -1),
    "diagonal_scatter": lambda x, c, r: c.diagonal_scatter(x[0]),
    "gather": lambda x, c, r: x.gather(-1, PLACES[:, None]),
    "gather of a literal": lambda x, c, r: c.gather(0, PLACES[None]) + x,
    "index": lambda x, c, r: x[PLACES, PLACES],
    "index of a literal": lambda x, c, r: c[PLACES] + x,
    "index_select": lambda x, c, r: c.index_select(-1, PLACES) + x,
    "index_add": lambda x, c, r: c.index_add(0, PLACES, x),
    "index_copy": lambda x, c, r: x.index_copy(-1, PLACES, c),
    "index_put": lambda x, c, r: x.index_put((PLACES,), c),
    "scatter": lambda x, c, r: x.scatter(-1, PLACES[:, None], c),
    "scatter into a literal": lambda x, c, r: c.scatter(-2, PLACES[None], x),
    "scatter_add": lambda x, c, r: c.scatter_add(-1, PLACES[:, None], x),
    "scatter_reduce": lambda x, c, r: c.scatter_reduce(-1, PLACES[None].expand(3, 3), x, "amax"),
    "masked_fill": lambda x, c, r: x.masked_fill(FLAGS, 3),
    "take": lambda x, c, r: c.take(PLACES) + x,
    "arithmetic": lambda x, c, r: (c - x) * r + c // r,
    "comparison": lambda x, c, r: (c > x) | (r == c),
    "minimum": lambda x, c, r: torch.minimum(r, x).maximum(c - 3),
    "remainder": lambda x, c, r: c % r + x,
    "matmul": lambda x, c, r: x @ c + c @ x + x @ r[:, None],
    "einsum": lambda x, c, r: torch.einsum("ij,kj,j->ik", x, c, r),
    "sum": lambda x, c, r: c.sum(-1) + x.amax(0),
    "cumsum": lambda x, c, r: c.cumsum(-1) + x,
    "sort": lambda x, c, r: c.sort(-1, descending=True)[0] + x,
    "topk": lambda x, c, r: c.topk(2, -1)[1].sum() + x,
    "flip": lambda x, c, r: c.flip(0) + x.roll(1, -1),
    "expand": lambda x, c, r: r.expand(2, 3, 3) + x,
    "repeat": lambda x, c, r: r.repeat(3, 1) + x.tile(1),
    "permute": lambda x, c, r: c.t().reshape(9)[1:] + x.view(-1)[:-1],
    "unfold": lambda x, c, r: c.unfold(0, 2, 1) + x.unfold(0, 2, 1),
    "pad": lambda x, c, r: F.pad(c, (1, 0)) + F.pad(x, (0, 1)),
    "tril": lambda x, c, r: c.tril() + x.triu(),
    "clamp": lambda x, c, r: x.clamp(max=c).clamp(min=r - 1),
    "copied and written to": lambda x, c, r: (y := c.clone(), y[0].add_(x[0]), y)[-1],
}
OF_FLOATS: dict[str, Callable[..., torch.Tensor]] = {
    "embedding": lambda x, c, r: F.embedding(PLACES, x) + F.embedding(PLACES, c),
    "linear": lambda x, c, r: F.linear(x, c, r) + F.linear(c, x),
    "convolution": lambda x, c, r: F.conv1d(x[None], c[:, :, None], r) + F.conv1d(c[None], x[:, :, None]),
    "max_pool": lambda x, c, r: F.max_pool1d(c[None], 2) + F.avg_pool1d(x[None], 2),
    "layer_norm": lambda x, c, r: F.layer_norm(x, (3,), r, r) + F.layer_norm(c, (3,)),
    "batch_norm": lambda x, c, r: F.batch_norm(x, r, r, r, r) + F.batch_norm(c, x[0], x[1].abs()),
    "softmax": lambda x, c, r: c.softmax(-1) + F.log_softmax(x, 0),
    "attention": lambda x, c, r: F.scaled_dot_product_attention(x[None], c[None], c[None]),
    "interpolate": lambda x, c, r: F.interpolate(c[None, None], scale_factor=2.0, mode="bilinear"),
    "power": lambda x, c, r: x.abs().pow(r) + c.pow(2) + 2**c,
    "functions": lambda x, c, r: c.sqrt() + r.exp() * x.atan2(c),
    "cross": lambda x, c, r: torch.linalg.cross(x, c) + torch.linalg.vector_norm(c, dim=-1),
    "lerp": lambda x, c, r: torch.lerp(c, x, r) + torch.addcmul(c, x, r),
}


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8]
)
def test_literal_operands(dtype: torch.dtype) -> None:
    c, r = SQUARE.to(dtype), ROW.to(dtype)
    forms = {**FORMS, **(OF_FLOATS if dtype.is_floating_point else {})}

    def function(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: form(x, c, r) for name, form in forms.items()}

    x = torch.tensor([[0.0, 3, 1], [2, 5, 4], [1, 7, 2]]).to(dtype)
    torch.testing.assert_close(pipeline.compile(Function(function), (x,))(x), function(x))
