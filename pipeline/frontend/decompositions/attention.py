"""Attention as two products around a softmax, whatever torch would run it with.

The scale multiplies the queries alone: with one query, and a cache of keys, that is a row in place of all keys.
"""

from __future__ import annotations

import torch
from torch._prims_common import compute_elementwise_output_logical_to_physical_perm

from pipeline.frontend.gradients.attention import attention_scores, log_sum_exp, scale_of

aten = torch.ops.aten


def flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(query @ key.T * scale + mask) @ value: [N, H, L, E], its dims in memory in the order of the query's.

    The second result are the logarithms of the sums of its rows, [N, H, L], which backward alone reads.

    Gets round a defect of torch: its own decomposition lays the result out as [L, N, H, E] whatever the query's layout,
    so that a view of the result that was right when exported fails (GPT-2 with a batch). Remove when torch._decomp's
    `scaled_dot_product_flash_attention_for_cpu` keeps the layout that the op itself has, `empty_like(query)`.
    """
    scores = attention_scores(query, key, is_causal, scale, attn_mask)
    output = _weighted(scores, value, query.size(1) // value.size(1), attn_mask is not None)
    order, _ = compute_elementwise_output_logical_to_physical_perm(query)
    back = [order.index(dim) for dim in range(4)]
    return output.permute(order).contiguous().permute(back), log_sum_exp(scores)


def _weighted(scores: torch.Tensor, value: torch.Tensor, repeats: int, is_masked: bool) -> torch.Tensor:
    """softmax(scores) @ value, each head of which is that of `repeats` queries; scores of 16 bits are in float32.

    With a mask, a row of which it leaves nothing is 0.
    """
    if repeats != 1:
        value = value.repeat_interleave(repeats, 1)
    weights = aten._safe_softmax.default(scores, -1) if is_masked else torch.softmax(scores, -1)
    return weights.to(value.dtype) @ value


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(query @ key.T * scale + mask) @ value: [..., L, Ev], and the softmax with what dropout left, [..., L, S].

    This is what torch runs for operands that its kernels do not take: values of another width, three dims, dropout.
    Torch multiplies queries and keys by the root of the scale each. Types of 16 bits are widened, as there, and a row
    of which masks leave nothing is 0.
    """
    dtype = query.dtype
    if dtype.itemsize == 2:
        query, key, value = query.float(), key.float(), value.float()
    if enable_gqa:
        key, value = (x.repeat_interleave(query.size(-3) // x.size(-3), -3) for x in (key, value))
    scores = (query * scale_of(query, scale)) @ key.transpose(-2, -1)
    if is_causal:
        attn_mask = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None:
        is_bool = attn_mask.dtype == torch.bool
        scores = torch.where(attn_mask, scores, float("-inf")) if is_bool else scores + attn_mask
    weights = aten._safe_softmax.default(scores, -1)
    if dropout_mask is not None:
        weights = torch.where(dropout_mask, weights, 0.0)
        value = value / (1 - dropout_p)
    elif dropout_p > 0:
        weights = torch.dropout(weights, dropout_p, True)
    return (weights @ value).to(dtype), weights.to(dtype)
