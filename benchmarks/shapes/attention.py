"""Attention: heads, lengths of 1 to 4096, causal, with masks, with fewer heads of keys; by the op and written out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F

from shapes.case import MOST_FLOPS, Case, Made, distinct, drawn, log_uniform, of_function, sizes

#: Batch, heads, heads of keys, queries, keys, width, form.
_PUBLISHED = (
    (1, 12, 12, 128, 128, 64, "plain"),  # BERT-base
    (1, 12, 12, 512, 512, 64, "padding"),
    (4, 12, 12, 128, 128, 64, "padding"),
    (1, 12, 12, 64, 64, 64, "causal"),  # GPT-2
    (1, 12, 12, 1024, 1024, 64, "causal"),
    (1, 12, 12, 197, 197, 64, "plain"),  # ViT-B
    (8, 6, 6, 197, 197, 64, "plain"),
    (64, 3, 3, 49, 49, 32, "bias"),  # Swin
    (1, 32, 8, 1, 1024, 128, "plain"),  # Llama: a token
    (1, 32, 8, 1, 4096, 128, "plain"),
    (1, 32, 8, 256, 256, 128, "causal"),
    (1, 14, 2, 128, 128, 64, "causal"),  # Qwen2
    (1, 8, 8, 4096, 4096, 40, "plain"),  # Stable Diffusion
    (1, 8, 8, 4096, 77, 40, "plain"),
    (1, 8, 8, 1024, 1024, 80, "plain"),
    (1, 6, 6, 1500, 1500, 64, "plain"),  # Whisper
    (1, 8, 8, 100, 950, 32, "plain"),  # DETR
    (16, 8, 8, 32, 32, 64, "causal"),
)
_FORMS = ("plain", "plain", "causal", "padding", "bias", "float_mask", "written", "written_causal")


def cases() -> Iterator[Case]:
    yield from distinct(_attentions(), 56)


def _attentions() -> Iterator[Case]:
    draw = drawn("attention")
    shapes = iter(_PUBLISHED)
    while True:
        batch, heads, kv, queries, keys, width, form = next(shapes, None) or _random(draw)
        if 4 * batch * heads * queries * keys * width > 2 * MOST_FLOPS or batch * heads * queries * keys > 1 << 25:
            continue
        if batch * heads * max(queries, keys) * width > 1 << 23:
            continue
        if kv != heads and form.startswith("written"):
            form = "plain"

        def create(shape: Any = (batch, heads, kv, queries, keys, width), form: str = form) -> Made:
            return _made(*shape, form)

        yield Case("attention", f"{sizes(batch, heads, kv, queries, keys, width)}_{form}", create)


def _random(draw: Any) -> Any:
    kv = draw.choice((1, 2, 4, 8))
    form = draw.choice(_FORMS)
    queries = log_uniform(draw, 1, 4096) if draw.random() < 0.8 else 1
    keys = queries if "causal" in form or draw.random() < 0.6 else log_uniform(draw, 1, 4096)
    return (
        draw.choice((1, 1, 2, 8)),
        kv * draw.choice((1, 1, 2, 4)),
        kv,
        queries,
        keys,
        draw.choice((32, 40, 64, 80, 128)),
        form,
    )


def _made(batch: int, heads: int, kv: int, queries: int, keys: int, width: int, form: str) -> Made:
    query = torch.randn(batch, heads, queries, width)
    key, value = (torch.randn(batch, kv, keys, width) for _ in range(2))
    grouped = heads != kv
    if form == "written":
        return of_function(lambda q, k, v: torch.softmax(q @ k.mT / math.sqrt(width), -1) @ v, query, key, value)
    if form == "written_causal":
        return of_function(_written_causal, query, key, value)
    if form in ("plain", "causal"):

        def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=form == "causal", enable_gqa=grouped)

        return of_function(plain, query, key, value)
    return of_function(
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=grouped),
        *(query, key, value, _mask(form, batch, heads, queries, keys)),
    )


def _written_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~allowed, float("-inf")), -1) @ v


def _mask(form: str, batch: int, heads: int, queries: int, keys: int) -> torch.Tensor:
    if form == "bias":
        return torch.randn(1, heads, queries, keys)
    if form == "float_mask":
        return torch.zeros(queries, keys).masked_fill(torch.rand(queries, keys) > 0.8, -1e4)
    lengths = torch.randint(max(1, keys // 2), keys + 1, (batch,))
    return (torch.arange(keys) < lengths[:, None])[:, None, None, :]
