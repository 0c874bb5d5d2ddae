"""Gradients of attention, whose scores backward computes again."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

ROWS, COLUMNS = 7, 5

MASK = torch.rand(ROWS, COLUMNS, generator=torch.Generator().manual_seed(3)) > 0.4
MASK[2] = False  # as a whole

FORMS = {
    "plain": {},
    "scale": {"scale": 0.7},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": MASK},
    "numbers": {"attn_mask": torch.randn(2, 1, ROWS, COLUMNS, generator=torch.Generator().manual_seed(4))},
    "infinite numbers": {"attn_mask": torch.zeros(ROWS, COLUMNS).masked_fill(~MASK, float("-inf"))},
    "groups of queries": {"enable_gqa": True},
    "groups, causal": {"enable_gqa": True, "is_causal": True},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_gradients(options, dtype):
    heads = 2 if "enable_gqa" in options else 4
    q, k, v = torch.randn(2, 4, ROWS, 6), torch.randn(2, heads, COLUMNS, 6), torch.randn(2, heads, COLUMNS, 6)
    g = torch.randn(2, 4, ROWS, 6)
    mask = options.get("attn_mask")
    with_mask = options if mask is None or mask.dtype == torch.bool else {**options, "attn_mask": mask.to(dtype)}

    def attention(q, k, v):  # in the layout that models have
        q, k, v = (tensor.transpose(1, 2).contiguous().transpose(1, 2) for tensor in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, **with_mask)

    def run(function, dtype):
        leaves = [tensor.to(dtype, copy=True).requires_grad_() for tensor in (q, k, v)]
        result = function(*leaves)
        return [result.detach(), *torch.autograd.grad(result, leaves, g.to(dtype))]

    compiled = torch.compile(attention, backend="pipeline")
    ours = run(compiled, dtype)
    exact = run(lambda *qkv: F.scaled_dot_product_attention(*qkv, **_in_float64(options)), torch.float64)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.05}[dtype]
    assert all(tensor.dtype == dtype for tensor in ours)
    torch.testing.assert_close([tensor.double() for tensor in ours], exact, rtol=tolerance, atol=tolerance)


def _in_float64(options):
    mask = options.get("attn_mask")
    return options if mask is None or mask.dtype == torch.bool else {**options, "attn_mask": mask.double()}
