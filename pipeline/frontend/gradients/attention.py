"""Gradients of attention, from the logarithms of the sums of its rows: scores are computed again, not kept."""

from __future__ import annotations

import torch
from torch import Tensor


def attention_scores(
    query: Tensor, key: Tensor, is_causal: bool, scale: float | None, mask: Tensor | None = None
) -> Tensor:
    """query * scale @ key.T + mask: [N, H, L, S]; with `is_causal` a row sees columns up to its own."""
    if query.size(1) != key.size(1):
        key = key.repeat_interleave(query.size(1) // key.size(1), 1)
    scores = _products(query, key.transpose(-2, -1), scale_of(query, scale))
    if is_causal:
        visible = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).tril()
        scores = torch.where(visible, scores, float("-inf"))
    if mask is None:
        return scores
    return torch.where(mask, scores, float("-inf")) if mask.dtype == torch.bool else scores + mask


def _products(query: Tensor, keys: Tensor, factor: float) -> Tensor:
    """query * factor @ keys; of 16 bits the products are exact, and neither they nor what they come to is rounded."""
    if query.dtype.itemsize == 2:
        return (query.float() @ keys.float()) * factor
    return (query * factor) @ keys


def scale_of(query: Tensor, scale: float | None) -> float:
    """The factor of the scores: 1 / sqrt(E) if none is given."""
    return query.size(-1) ** -0.5 if scale is None else scale


def log_sum_exp(scores: Tensor) -> Tensor:
    """log(sum(exp(row))) of each row: [N, H, L, S] → [N, H, L], in float32 for 16 bits; -inf for masked rows."""
    wide = scores.float() if scores.dtype.itemsize == 2 else scores
    return wide.logsumexp(-1)


def flash_attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    result: Tensor,
    logarithms: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by query, key and value, [N, H, L, E] each: p = exp(scores - logarithms), dv = p.T @ g, .."""
    dtype, wide = query.dtype, torch.float32 if query.dtype.itemsize == 2 else query.dtype
    factor = scale_of(query, scale)
    q, k, v, g, out = (tensor.to(wide) for tensor in (query, key, value, gradient, result))
    scores = attention_scores(q, k, is_causal, factor, attn_mask)
    weights = (scores - logarithms.to(wide).unsqueeze(-1)).exp()
    if attn_mask is not None:  # of a row that is masked as a whole they are none: exp(-inf + inf)
        weights = torch.where(scores == float("-inf"), 0.0, weights)
    repeats = query.size(1) // key.size(1)
    if repeats > 1:
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
    by_value = weights.transpose(-2, -1) @ g
    by_scores = weights * (g @ v.transpose(-2, -1) - (g * out).sum(-1, keepdim=True))
    by_query = (by_scores @ k) * factor
    by_key = by_scores.transpose(-2, -1) @ (q * factor)
    if repeats > 1:
        by_key, by_value = (by_head.unflatten(1, (-1, repeats)).sum(2) for by_head in (by_key, by_value))
    return by_query.to(dtype), by_key.to(dtype), by_value.to(dtype)
