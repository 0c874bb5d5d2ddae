"""Recurrences over a text as loops in the graph, in the places of those that transformers' models unroll.

The functions take what mamba_ssm and flash-linear-attention call by these names, which models are written for, and
compute what transformers' own do, for lengths that are not known: https://arxiv.org/abs/2312.00752 (selective scan),
https://arxiv.org/abs/2405.21060 (Mamba 2), https://arxiv.org/abs/2412.06464 (gated delta rule),
https://arxiv.org/abs/2510.26692 (Kimi delta attention).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.scan import scan_op
from torch.fx.experimental import _config as shape_config
from torch.nn import functional

#: How many tokens are in a chunk.
_CHUNK = 64

#: What is added to sums of squares, as transformers does.
_EPSILON = 1e-6


def selective_scan(
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor | None = None,
    z: torch.Tensor | None = None,
    delta_bias: torch.Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    **_: Any,
) -> Any:
    """h[t] = exp(A * dt[t]) * h[t - 1] + dt[t] * x[t] * B[t]; y[t] = sum(h[t] * C[t]), from zeros.

    Args:
        hidden_states: x, [batch, width, length].
        dt: [batch, width, length], to which `delta_bias`, [width], is added.
        A: [width, states].
        B, C: [batch, states, length].
        D: [width]; y has x * D, too.
        z: [batch, width, length]; y is multiplied with its SiLU.

    Returns:
        y, [batch, width, length]; with `return_last_state` the last h, f32[batch, width, states], too.
    """
    if delta_bias is not None:
        dt = dt + delta_bias.to(dt.dtype)[:, None]
    if delta_softplus:
        dt = functional.softplus(dt)

    def step(h: torch.Tensor, *rest: torch.Tensor) -> list[torch.Tensor]:
        dt, scaled, B, C, A = rest
        h = torch.exp(A * dt[..., None]) * h + scaled[..., None] * B[:, None]
        return [h, (h * C[:, None]).sum(-1)]

    start = torch.zeros(*dt.shape[:2], A.shape[1], dtype=torch.float32)
    steps = [part.float().movedim(-1, 0) for part in (dt, dt * hidden_states, B, C)]
    last, found = scan_op(step, [start], steps, [A.float()])
    found = found.movedim(0, -1).to(hidden_states.dtype)
    if D is not None:
        found = found + hidden_states * D[:, None]
    if z is not None:
        found = found * functional.silu(z)
    return (found, last) if return_last_state else found


def chunk_scan(
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    chunk_size: int,
    D: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    initial_states: torch.Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    return_final_states: bool = False,
    **_: Any,
) -> Any:
    """h[t] = exp(A * dt[t]) * h[t - 1] + dt[t] * x[t] outer B[t]; y[t] = h[t] C[t] + D * x[t].

    Args:
        hidden_states: x, [batch, length, heads, width].
        dt: [batch, length, heads], to which `dt_bias`, [heads], is added, and which `dt_limit` bounds.
        A, D: [heads].
        B, C: [batch, length, groups, states]: several heads in a row share them.
        chunk_size: what the model was trained with; results do not depend on it.
        initial_states: h[-1], [batch, heads, width, states]; zeros if it is None.

    Returns:
        y, f32[batch, length, heads, width]; with `return_final_states` the last h, f32, too.
    """
    if dt_bias is not None:
        dt = dt + dt_bias.to(dt.dtype)
    if dt_softplus:
        dt = functional.softplus(dt)
    dt = torch.clamp(dt, *dt_limit).float()
    x, shared = hidden_states.float(), hidden_states.shape[2] // B.shape[2]
    keys, queries = (part.float().repeat_interleave(shared, 2) for part in (B, C))
    parts = [part.transpose(1, 2) for part in (queries, keys, x * dt[..., None], A.float() * dt)]
    state = None if initial_states is None else initial_states.float().transpose(2, 3)
    found, state = _over_chunks(state, parts)
    found = found if D is None else found + x * D[:, None]
    return (found, state.transpose(2, 3)) if return_final_states else found


def chunk_gated_delta_rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    chunk_size: int = 64,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """S[t] = S' + k[t] outer beta[t] * (v[t] - k[t] S') for S' = exp(g[t]) * S[t - 1]; o[t] = q[t] S[t] / sqrt(width).

    Args:
        query, key: [batch, length, heads, width].
        value: [batch, length, value heads, value width]: several of them in a row share a query and a key.
        g: the logarithms of decays, [batch, length, value heads], or of each element of a key, [.., width].
        beta: [batch, length, value heads].
        chunk_size: what the model was trained with; results do not depend on it.
        initial_state: S[-1], [batch, value heads, width, value width]; zeros if it is None.
        use_qk_l2norm_in_kernel: whether queries and keys are divided by their lengths first.

    Returns:
        o, [batch, length, value heads, value width], and the last S, f32, or None.
    """
    shared = value.shape[2] // key.shape[2]
    if shared > 1:
        query, key = query.repeat_interleave(shared, 2), key.repeat_interleave(shared, 2)
    queries, keys, *others = (part.transpose(1, 2).float() for part in (query, key, value, g, beta))
    if use_qk_l2norm_in_kernel:
        queries, keys = _of_length_one(queries), _of_length_one(keys)
    state = None if initial_state is None else initial_state.float()
    found, state = _over_chunks(state, [queries * keys.shape[3] ** -0.5, keys, *others])
    return found.to(query.dtype), state if output_final_state else None


def _over_chunks(state: torch.Tensor | None, parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Chunks of tokens one after the other, inside of which products of matrices take the place of the recurrence.

    Args:
        state: what it begins with, f32[batch, heads, width, value width], or None for zeros.
        parts: queries, keys and values, [batch, heads, length, ..]; the logarithms of decays, [batch, heads, length] or
            [.., width]; and for the delta rule how much of a value is new, [batch, heads, length].

    Returns:
        What the queries find, f32[batch, length, heads, value width], and the last state.
    """
    _, keys, values, *_ = parts
    batch, heads, length, width = keys.shape
    start = torch.zeros(batch, heads, width, values.shape[3]) if state is None else state
    last, found = scan_op(_chunk, [start], [_in_chunks(part) for part in parts], [])
    return found.movedim(0, 2).flatten(2, 3)[:, :, :length].transpose(1, 2).contiguous(), last


def _chunk(state: torch.Tensor, *parts: torch.Tensor) -> list[torch.Tensor]:
    """The state after a chunk, and what its queries find, [batch, heads, tokens, value width]."""
    queries, keys, values, decays, *news = parts
    sums = decays.cumsum(2)
    by_elements = sums if sums.ndim == 4 else sums[..., None]
    from_start, to_end = by_elements.exp(), (by_elements[:, :, -1:] - by_elements).exp()
    for share in news:
        weighted = keys * share[..., None]
        known = (weighted * from_start) @ state
        corrections = _decayed_products(weighted, keys, sums)
        values = torch.linalg.solve_triangular(
            corrections, values * share[..., None] - known, upper=False, unitriangular=True
        )
    found = (queries * from_start) @ state + _decayed_products(queries, keys, sums) @ values
    return [state * from_start[:, :, -1, :, None] + (keys * to_end).transpose(2, 3) @ values, found]


def _decayed_products(left: torch.Tensor, right: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """The product of each token with each that is not behind it, as decayed since then: [batch, heads, tokens, tokens].

    Args:
        sums: of the logarithms of decays from the start of the chunk, see `_over_chunks`.
    """
    tokens = torch.arange(_CHUNK)
    is_behind = (tokens[:, None] < tokens).view(_CHUNK, _CHUNK, *[1] * (sums.ndim - 3))
    decay = (sums.unsqueeze(3) - sums.unsqueeze(2)).masked_fill(is_behind, -torch.inf).exp()
    if sums.ndim == 3:
        return (left @ right.transpose(2, 3)) * decay
    return (left.unsqueeze(3) * right.unsqueeze(2) * decay).sum(-1)


def _of_length_one(vectors: torch.Tensor) -> torch.Tensor:
    return vectors * torch.rsqrt((vectors * vectors).sum(-1, keepdim=True) + _EPSILON)


def _in_chunks(part: torch.Tensor) -> torch.Tensor:
    """[chunks, batch, heads, tokens, ..] from [batch, heads, length, ..], with zeros behind."""
    batch, heads, length, *others = part.shape
    count = (length + _CHUNK - 1) // _CHUNK
    padded = functional.pad(part, (*[0, 0] * len(others), 0, count * _CHUNK - length))
    return padded.reshape(batch, heads, count, _CHUNK, *others).movedim(2, 0)


#: The names of transformers' functions, and what stands for them.
_FUNCTIONS = {
    "mamba_selective_scan": selective_scan,
    "mamba2_chunk_scan": chunk_scan,
    "torch_chunk_gated_delta_rule": chunk_gated_delta_rule,
    "chunk_kimi_delta_attention": chunk_gated_delta_rule,
}


@contextlib.contextmanager
def recurrences_as_loops(model: nn.Module) -> Iterator[None]:
    """Has the modules of a model call the functions of this file meanwhile.

    Then torch.export does not hold the number of chunks to be more than one, as it is in its example.
    """
    modules = [sys.modules[name] for name in sorted({type(part).__module__ for part in model.modules()})]
    before = [
        (module, name, getattr(module, name)) for module in modules for name in _FUNCTIONS if hasattr(module, name)
    ]
    try:
        for module, name, _ in before:
            setattr(module, name, _FUNCTIONS[name])
        with shape_config.patch(backed_size_oblivious=True) if before else contextlib.nullcontext():
            yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)
