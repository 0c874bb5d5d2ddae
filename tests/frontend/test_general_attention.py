"""Attention that torch has no kernel for: its own way multiplies queries and keys by the root of the scale each."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import pipeline
from pipeline.frontend.decompositions import decomposition_table

aten = torch.ops.aten


def operands(query, key, value, dtype=torch.float64):
    torch.manual_seed(0)
    return tuple(torch.randn(shape, dtype=dtype) for shape in (query, key, value))


_HALF = torch.arange(7) % 2 == 0
_NOTHING_LEFT = torch.arange(3)[:, None] + torch.zeros(7) > 0

#: Shapes of queries, keys and values, and what else attention is given.
_CASES = {
    "wide values": ((2, 4, 3, 8), (2, 4, 7, 8), (2, 4, 7, 5), {}),
    "a query": ((1, 2, 1, 8), (1, 2, 301, 8), (1, 2, 301, 4), {}),
    "three dims": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {}),
    "two dims": ((3, 8), (7, 8), (7, 8), {}),
    "a key": ((2, 4, 3, 8), (2, 4, 1, 8), (2, 4, 1, 1), {}),
    "width 1": ((4, 3, 1), (4, 7, 1), (4, 7, 2), {}),
    "causal": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {"is_causal": True}),
    "causal, more queries": ((4, 7, 8), (4, 3, 8), (4, 3, 8), {"is_causal": True}),
    "mask": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {"attn_mask": _HALF}),
    "a row without keys": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {"attn_mask": _NOTHING_LEFT}),
    "added mask": ((2, 4, 3, 8), (2, 4, 7, 8), (2, 4, 7, 5), {"attn_mask": _HALF[None].double() * -3}),
    "added mask of one dim": ((4, 3, 8), (4, 7, 8), (4, 7, 5), {"attn_mask": _HALF.double() * -3}),
    "added number": ((3, 8), (7, 8), (7, 8), {"attn_mask": torch.tensor(0.5)}),
    "shared": ((2, 4, 3, 8), (2, 2, 7, 8), (2, 2, 7, 5), {"enable_gqa": True}),
    "scale": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {"scale": 0.3}),
    "negative scale": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {"scale": -0.3}),
    "scale 0": ((4, 3, 8), (4, 7, 8), (4, 7, 8), {"scale": 0.0}),
}


def attention_of(given):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **given)


@pytest.mark.parametrize("case", _CASES)
def test_it_is_that_of_eager_mode(case):
    *shapes, given = _CASES[case]
    args = operands(*shapes)
    attention = attention_of(given)
    torch.testing.assert_close(pipeline.compile(attention, args)(*args), attention(*args))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_types_of_16_bits_are_computed_wider(dtype):
    args = operands((4, 3, 8), (4, 7, 8), (4, 7, 5), dtype)
    attention = attention_of({"attn_mask": _HALF})
    got, expected = pipeline.compile(attention, args)(*args), attention(*(x.double() for x in args))
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), expected, rtol=2 * torch.finfo(dtype).eps, atol=2 * torch.finfo(dtype).eps)


def test_the_scale_multiplies_the_queries_alone():
    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v)

    args = operands((1, 2, 1, 8), (1, 2, 301, 8), (1, 2, 301, 4))
    graph = torch.export.export(Attention(), args).run_decompositions(dict(decomposition_table())).graph
    products = [node for node in graph.nodes if node.target in (aten.mul.Tensor, aten.mul.Scalar)]
    assert [tuple(node.meta["val"].shape) for node in products] == [(1, 2, 1, 8)]


def test_what_dropout_leaves_is_scaled():
    q, k, _ = operands((40, 8), (30, 8), (30, 30), torch.float32)
    attention = attention_of({"dropout_p": 0.5})
    got = pipeline.compile(attention, (q, k, torch.eye(30)))(q, k, torch.eye(30))
    whole = 2 * attention_of({})(q, k, torch.eye(30))
    dropped = got == 0
    assert 0.4 < dropped.float().mean() < 0.6
    torch.testing.assert_close(got[~dropped], whole[~dropped])


def test_its_gradients_are_those_of_eager_mode():
    args = [x.requires_grad_() for x in operands((2, 4, 3, 8), (2, 4, 7, 8), (2, 4, 7, 5))]
    attention = attention_of({"is_causal": True, "scale": -0.5})
    expected = torch.autograd.grad(attention(*args).square().sum(), args)
    compiled = torch.compile(attention, backend="pipeline")
    torch.testing.assert_close(torch.autograd.grad(compiled(*args).square().sum(), args), expected)
