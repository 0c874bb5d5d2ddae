"""The recurrences of linear attention as ops, and these as loops.

pipeline.selective_scan(x, dt, A, B, C) → y, h         h[t] = exp(A dt[t]) h[t - 1] + dt[t] x[t] B[t];  y[t] = h[t] C[t]
pipeline.linear_attention(q, k, v, g, shares, S) → o, S    S[t] = exp(g[t]) S[t - 1] + k[t] v[t];  o[t] = q[t] S[t]

With `shares` v[t] is `shares[t] * (v[t] - k[t] exp(g[t]) S[t - 1])`: what is new of it (the delta rule).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop_op
from torch.nn import functional

from pipeline.frontend.recurrent.rows import row, with_row

#: How many tokens are in a chunk, inside of which products of matrices take the place of the recurrence.
_CHUNK = 64


@torch.library.custom_op("pipeline::selective_scan", mutates_args=())
def selective_scan(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """See the module's docstring; h[-1] is zeros.

    Args:
        x, dt: f32[batch, width, length].
        A: f32[width, states].
        B, C: f32[batch, states, length].

    Returns:
        y, f32[batch, width, length], and the last h, f32[batch, width, states].
    """
    h, found = x.new_zeros(*x.shape[:2], A.shape[1]), torch.empty_like(x)
    for t in range(x.shape[2]):
        h, found[..., t] = _scan_step(h, x[..., t], dt[..., t], B[..., t], C[..., t], A)
    return found, h


@selective_scan.register_fake
def _(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(*x.shape[:2], A.shape[1])


def _scan_step(h: Tensor, x: Tensor, dt: Tensor, B: Tensor, C: Tensor, A: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.exp(A * dt[..., None]) * h + (dt * x)[..., None] * B[:, None]
    return h, (h * C[:, None]).sum(-1)


def _scan_tokens(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """selective_scan(x, ..)  →  a while_loop over tokens."""
    found = x.new_empty(x.shape[2], *x.shape[:2])
    start = x.new_zeros(*x.shape[:2], A.shape[1])

    def step(t: int, found: Tensor, h: Tensor, *rest: Tensor) -> tuple[Any, ...]:
        x, dt, B, C = (row(part, 0, t) for part in rest[:-1])
        h, here = _scan_step(h, x, dt, B, C, rest[-1])
        return t + 1, with_row(found, here, 0, t), h

    tokens = [part.movedim(2, 0).clone(memory_format=torch.contiguous_format) for part in (x, dt, B, C)]
    _, found, h = while_loop_op(_goes_on, step, (0, found, start), (*tokens, A))
    return found.movedim(0, 2).clone(memory_format=torch.contiguous_format), h


def _goes_on(number: int, found: Tensor, *_: Tensor) -> bool:
    return number < found.shape[0]


@torch.library.custom_op("pipeline::linear_attention", mutates_args=())
def linear_attention(
    queries: Tensor, keys: Tensor, values: Tensor, decays: Tensor, shares: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """See the module's docstring.

    Args:
        queries, keys: f32[batch, heads, length, width].
        values: f32[batch, heads, length, value width].
        decays: f32[batch, heads, length], or [.., width] where elements of keys have their own.
        shares: f32[batch, heads, length], or None.
        state: S[-1], f32[batch, heads, width, value width]; None for zeros.

    Returns:
        o, f32[batch, heads, length, value width], and the last S.
    """
    state, found = _start(keys, values, state), torch.empty_like(values)
    for t in range(keys.shape[2]):
        state = _by_elements(decays)[:, :, t, :, None].exp() * state
        new = values[:, :, t, None]
        if shares is not None:
            new = shares[:, :, t, None, None] * (new - keys[:, :, t, None] @ state)
        state = state + keys[:, :, t, :, None] * new
        found[:, :, t] = (queries[:, :, t, None] @ state).squeeze(2)
    return found, state


@linear_attention.register_fake
def _(
    queries: Tensor, keys: Tensor, values: Tensor, decays: Tensor, shares: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    return values.new_empty(values.shape), values.new_empty(*keys.shape[:2], keys.shape[3], values.shape[3])


def _start(keys: Tensor, values: Tensor, state: Tensor | None) -> Tensor:
    zeros = values.new_zeros(*keys.shape[:2], keys.shape[3], values.shape[3])
    return zeros if state is None else state.clone()


def _by_elements(decays: Tensor) -> Tensor:
    """Decays as they are multiplied with keys: [batch, heads, length, width or 1]."""
    return decays if decays.ndim == 4 else decays[..., None]


def _attend_to_chunks(
    queries: Tensor, keys: Tensor, values: Tensor, decays: Tensor, shares: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """linear_attention(queries, ..)  →  a while_loop over chunks of tokens."""
    given = [queries, keys, values, decays] if shares is None else [queries, keys, values, decays, shares]
    chunks = [_in_chunks(part) for part in given]
    found = torch.empty_like(chunks[2])

    def step(number: int, found: Tensor, state: Tensor, *chunks: Tensor) -> tuple[Any, ...]:
        state, here = _chunk(state, [row(part, 0, number) for part in chunks])
        return number + 1, with_row(found, here, 0, number), state

    carried = (0, found, _start(keys, values, state))
    _, found, last = while_loop_op(_goes_on, step, carried, tuple(chunks))
    return found.movedim(0, 2).flatten(2, 3)[:, :, : keys.shape[2]].clone(memory_format=torch.contiguous_format), last


def _in_chunks(part: Tensor) -> Tensor:
    """[chunks, batch, heads, tokens, ..] from [batch, heads, length, ..], with zeros behind."""
    batch, heads, length, *others = part.shape
    count = (length + _CHUNK - 1) // _CHUNK
    padded = functional.pad(part, (*[0, 0] * len(others), 0, count * _CHUNK - length))
    return (
        padded.reshape(batch, heads, count, _CHUNK, *others).movedim(2, 0).clone(memory_format=torch.contiguous_format)
    )


def _chunk(state: Tensor, parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The state after a chunk, and what its queries find, [batch, heads, tokens, value width]."""
    queries, keys, values, decays, *news = parts
    sums = decays.cumsum(2)
    from_start = _by_elements(sums).exp()
    to_end = (_by_elements(sums)[:, :, -1:] - _by_elements(sums)).exp()
    for shares in news:
        weighted = keys * shares[..., None]
        unknown = values * shares[..., None] - (weighted * from_start) @ state
        corrections = _decayed_products(weighted, keys, sums)
        values = torch.linalg.solve_triangular(corrections, unknown, upper=False, unitriangular=True)
    found = (queries * from_start) @ state + _decayed_products(queries, keys, sums) @ values
    return state * from_start[:, :, -1, :, None] + (keys * to_end).transpose(2, 3) @ values, found


def _decayed_products(left: Tensor, right: Tensor, sums: Tensor) -> Tensor:
    """The product of each token with each that is not behind it, as decayed since then: [batch, heads, tokens, tokens].

    Args:
        sums: of the decays from the start of the chunk on.
    """
    tokens = torch.arange(_CHUNK)
    is_behind = (tokens[:, None] < tokens).view(_CHUNK, _CHUNK, *[1] * (sums.ndim - 3))
    decay = (sums.unsqueeze(3) - sums.unsqueeze(2)).masked_fill(is_behind, -torch.inf).exp()
    if sums.ndim == 3:
        return (left @ right.transpose(2, 3)) * decay
    return (left.unsqueeze(3) * right.unsqueeze(2) * decay).sum(-1)


LINEAR_ATTENTION: dict[Any, Callable[..., Any]] = {
    torch.ops.pipeline.selective_scan.default: _scan_tokens,
    torch.ops.pipeline.linear_attention.default: _attend_to_chunks,
}
