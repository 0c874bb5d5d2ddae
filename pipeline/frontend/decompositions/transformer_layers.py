"""torch's fused forms of attention and of transformer layers, which its modules use without gradients, step by step."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

#: What the mask of a fused attention is: [L, L] for all sequences, [N, L] for the keys, [N, H, L, L].
_FOR_ALL, _FOR_KEYS = 0, 1


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """_transformer_encoder_layer_fwd(src: [N, L, E])  →  attention and feed-forward, a norm before or after each."""

    def norm_1(x: Tensor) -> Tensor:
        return functional.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return functional.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *weights, mask, False, False, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        active = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(active, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed_forward(x))


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """_native_multi_head_attention(q, k, v: [N, L, E])  →  linear(softmax(q @ k.T) @ v), softmax(q @ k.T)."""
    weights, biases = qkv_weight.split(embed_dim), qkv_bias.split(embed_dim)
    queries, keys, values = (
        functional.linear(x, weight, bias).unflatten(-1, (num_heads, embed_dim // num_heads)).transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    scores = queries * (embed_dim // num_heads) ** -0.5 @ keys.transpose(-2, -1)
    shares = scores.softmax(-1) if mask is None else masked_softmax(scores, mask, -1, mask_type)
    heads = (shares @ values).transpose(1, 2).flatten(2)
    if need_weights and average_weights:
        shares = shares.mean(1)
    return functional.linear(heads, proj_weight, proj_bias), shares


def masked_softmax(x: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """_masked_softmax(x: [N, H, L, S], mask)  →  softmax(where(mask, -inf, x))."""
    masked = mask.bool()
    if mask_type == _FOR_KEYS:
        masked = masked[:, None, None, :]
    elif mask_type == _FOR_ALL:
        masked = masked[None, None]
    return x.masked_fill(masked, float("-inf")).softmax(-1 if dim is None else dim)
