"""Attention in all forms, on a symbolic batch and length."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from case import cases
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """nn.MultiheadAttention of one tensor."""

    def __init__(self, weights: bool = True, first: bool = True, causal: bool = False, average: bool = True, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=first, **options)
        self.options = {"need_weights": weights, "average_attn_weights": average}
        self.causal = causal

    def forward(self, x):
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1) if self.causal else None
        return self.attention(x, x, x, attn_mask=mask, **self.options)


class CrossAttention(nn.Module):
    """nn.MultiheadAttention between two tensors, with a mask of keys."""

    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True, **options)

    def forward(self, x, y, padding=None):
        return self.attention(x, y, y, key_padding_mask=padding)


class Causal(nn.Module):
    """Attention written out, with heads of 8."""

    def __init__(self, groups: int = 1, bias: str = "tril"):
        super().__init__()
        self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 32 // groups)
        self.groups, self.bias = groups, bias

    def forward(self, x):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, 2, 8).transpose(1, 2)
        k, v = self.kv(x).chunk(2, -1)
        k, v = (one.view(b, t, 2 // self.groups, 8).transpose(1, 2) for one in (k, v))
        if self.groups > 1:
            k, v = k.repeat_interleave(self.groups, 1), v.repeat_interleave(self.groups, 1)
        scores = q @ k.transpose(-2, -1) / 8**0.5
        if self.bias == "tril":
            scores = scores.masked_fill(torch.tril(torch.ones(t, t)) == 0, float("-inf"))
        else:
            places = torch.arange(t)
            slopes = torch.tensor([0.5, 0.25]).view(2, 1, 1)
            scores = scores + slopes * (places[None, :] - places[:, None]).abs().neg()
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 16)


def rotary(x: Tensor) -> Tensor:
    """Rotates halves of heads by their place."""
    b, t, _ = x.shape
    q = x.view(b, t, 2, 8).transpose(1, 2)
    angles = torch.arange(t)[:, None] * (1.0 / 100 ** (torch.arange(0, 8, 2) / 8))
    angles = torch.cat([angles, angles], -1)
    turned = torch.cat([-q[..., 4:], q[..., :4]], -1)
    return (q * angles.cos() + turned * angles.sin()).transpose(1, 2).flatten(2)


def interleaved_rotary(x: Tensor) -> Tensor:
    """Rotates pairs of neighbours."""
    b, t, _ = x.shape
    pairs = x.view(b, t, 2, 4, 2)
    angles = torch.arange(t)[:, None, None] * (1.0 / 100 ** (torch.arange(4) / 4))
    even, odd = pairs.unbind(-1)
    turned = [even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()]
    return torch.stack(turned, -1).reshape(b, t, 16)


def sdpa(x: Tensor) -> Tensor:
    q = x.unflatten(-1, (2, 8)).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(2)


def causal_sdpa(x: Tensor) -> Tensor:
    q = x.unflatten(-1, (2, 8)).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).flatten(2)


def grouped_sdpa(x: Tensor) -> Tensor:
    q = x.unflatten(-1, (4, 4)).transpose(1, 2)
    k = q[:, :2]
    return F.scaled_dot_product_attention(q, k, k, enable_gqa=True).transpose(1, 2).flatten(2)


def multi_query(x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k = x.view(b, t, 2, 8).permute(0, 2, 1, 3), x[..., :8].unsqueeze(1)
    return (torch.softmax(q @ k.mT, -1) @ k.expand(b, 2, t, 8)).permute(0, 2, 1, 3).reshape(b, t, 16)


def linear_attention(x: Tensor) -> Tensor:
    q = F.elu(x.unflatten(-1, (2, 8))) + 1
    state = torch.einsum("bthd,bthe->bhde", q, q)
    return torch.einsum("bthd,bhde->bthe", q, state).flatten(2)


def local_window(x: Tensor) -> Tensor:
    b, t, _ = x.shape
    places = torch.arange(t)
    near = (places[:, None] - places[None, :]).abs() < 3
    scores = (x @ x.mT).masked_fill(~near, float("-inf"))
    return scores.softmax(-1) @ x


class MaskedTransformer(nn.Module):
    """nn.Transformer as its documentation calls it, with masks, whose values it looks at."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(16, 2, 1, 1, 24, batch_first=True)

    def forward(self, x, y):
        source, target = (self.transformer.generate_square_subsequent_mask(z.shape[1]) for z in (x, y))
        return self.transformer(x, y, src_mask=source, tgt_mask=target)


def decoder(**options):
    return nn.TransformerDecoderLayer(16, 2, 24, batch_first=True, **options)


CASES = [
    *cases(
        {
            "mha": (SelfAttention(), "b t 16"),
            "mha without weights": (SelfAttention(weights=False), "b t 16"),
            "mha causal": (SelfAttention(causal=True), "b t 16"),
            "mha with bias of keys": (SelfAttention(add_bias_kv=True, add_zero_attn=True), "b t 16"),
            "cross": (CrossAttention(), "b t 16", "b u 16"),
            "cross with padding": (CrossAttention(), "b t 16", "b u 16", "bool:b u"),
            "encoder": (nn.TransformerEncoderLayer(16, 2, 24, batch_first=True), "b t 16"),
            "encoder, norm first": (
                nn.TransformerEncoderLayer(16, 2, 24, norm_first=True, activation="gelu", batch_first=True),
                "b t 16",
            ),
            "decoder": (decoder(), "b t 16", "b u 16"),
            "masks of a transformer": (MaskedTransformer(), "b t 16", "b u 16"),
            "causal": (Causal(), "b t 16"),
            "grouped query": (Causal(groups=2), "b t 16"),
            "alibi": (Causal(bias="alibi"), "b t 16"),
            "rotary": (rotary, "b t 16"),
            "interleaved rotary": (interleaved_rotary, "b t 16"),
            "sdpa": (sdpa, "b t 16"),
            "causal sdpa": (causal_sdpa, "b t 16"),
            "grouped sdpa": (grouped_sdpa, "b t 16"),
            "multi query": (multi_query, "b t 16"),
            "linear attention": (linear_attention, "b t 16"),
            "local window": (local_window, "b t 16"),
        }
    )
]
