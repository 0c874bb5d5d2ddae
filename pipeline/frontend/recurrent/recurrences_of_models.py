"""Recurrences over a text as ops that become loops, in the places of those that transformers' models unroll.

The functions take what mamba_ssm and flash-linear-attention call by these names, which models are written for, and
compute what transformers' own do, for lengths that are not known: https://arxiv.org/abs/2312.00752 (selective scan),
https://arxiv.org/abs/2405.21060 (Mamba 2), https://arxiv.org/abs/2412.06464 (gated delta rule),
https://arxiv.org/abs/2510.26692 (Kimi delta attention).
"""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from pipeline.frontend.recurrent import linear_attention

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

    parts = [part.float() for part in (hidden_states, dt, A, B, C)]
    found, last = linear_attention.selective_scan(*parts)
    found = found.to(hidden_states.dtype)
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
    found, state = linear_attention.linear_attention(*parts, None, state)
    found = found.transpose(1, 2).contiguous()
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
    found, state = linear_attention.linear_attention(queries * keys.shape[3] ** -0.5, keys, *others, state)
    found = found.transpose(1, 2).to(query.dtype).contiguous()
    return found, state if output_final_state else None


def _of_length_one(vectors: torch.Tensor) -> torch.Tensor:
    return vectors * torch.rsqrt((vectors * vectors).sum(-1, keepdim=True) + _EPSILON)


def _numbers(*shape: int, start: float = 0.0) -> torch.Tensor:
    count = functools.reduce(operator.mul, shape)
    return torch.sin(torch.arange(count, dtype=torch.float32, device="cpu") + start).view(shape)


def _example_of_scans() -> dict[str, Any]:
    x, bias, D = _numbers(1, 2, 5), _numbers(2, start=1), _numbers(2, start=2)
    options = {"D": D, "z": -x, "delta_bias": bias, "delta_softplus": True, "return_last_state": True}
    B, C = _numbers(1, 3, 5, start=4), _numbers(1, 3, 5, start=5)
    return {"hidden_states": x, "dt": _numbers(1, 2, 5, start=3), "A": -_numbers(2, 3).abs(), "B": B, "C": C, **options}


def _example_of_chunk_scans() -> dict[str, Any]:
    x, dt, A = _numbers(1, 5, 4, 2), _numbers(1, 5, 4, start=1), -_numbers(4).abs()
    B, C = _numbers(1, 5, 2, 3, start=2), _numbers(1, 5, 2, 3, start=3)
    options = {"D": _numbers(4, start=4), "dt_bias": _numbers(4, start=5), "dt_softplus": True, "dt_limit": (0.1, 1.2)}
    state = {"initial_states": _numbers(1, 4, 2, 3, start=6), "return_final_states": True}
    return {"hidden_states": x, "dt": dt, "A": A, "B": B, "C": C, "chunk_size": 2, **options, **state}


def _example_of_delta_rules() -> dict[str, Any]:
    example = _example_of_kimi() | {"g": -_numbers(1, 5, 4).abs()}
    return example | {"query": _numbers(1, 5, 2, 3), "key": _numbers(1, 5, 2, 3, start=1)}


def _example_of_kimi() -> dict[str, Any]:
    query, key, value = _numbers(1, 5, 4, 3), _numbers(1, 5, 4, 3, start=1), _numbers(1, 5, 4, 2, start=2)
    g, beta = -_numbers(1, 5, 4, 3).abs(), _numbers(1, 5, 4, start=3).abs()
    options = {"initial_state": _numbers(1, 4, 3, 2), "output_final_state": True, "use_qk_l2norm_in_kernel": True}
    return {"query": query, "key": key, "value": value, "g": g, "beta": beta, **options}


#: The names of transformers' functions, what stands for them, and arguments for which both are to give the same.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
    "mamba_selective_scan": (selective_scan, _example_of_scans),
    "mamba2_chunk_scan": (chunk_scan, _example_of_chunk_scans),
    "torch_chunk_gated_delta_rule": (chunk_gated_delta_rule, _example_of_delta_rules),
    "chunk_kimi_delta_attention": (chunk_gated_delta_rule, _example_of_kimi),
}


@contextlib.contextmanager
def recurrences_as_loops(model: nn.Module) -> Iterator[list[str]]:
    """Has the modules of a model call the functions of this file meanwhile, where these do what theirs do.

    Gives the names of those that do something else, which are traced as they are.
    """
    names = sorted({type(part).__module__ for part in model.modules()})
    modules = [sys.modules[name] for name in names if name in sys.modules]
    found = [
        (module, name, getattr(module, name)) for module in modules for name in _FUNCTIONS if hasattr(module, name)
    ]
    before = [(module, name, function) for module, name, function in found if _stands_for(name, function)]
    try:
        for module, name, _ in before:
            setattr(module, name, _FUNCTIONS[name][0])
        yield [f"{module.__name__}.{name}" for module, name, function in found if not _stands_for(name, function)]
    finally:
        for module, name, function in before:
            setattr(module, name, function)


@functools.cache
def _stands_for(name: str, function: Callable[..., Any]) -> bool:
    """Whether what stands for a function of some name gives what that gives."""
    loop, example = _FUNCTIONS[name]
    try:
        with torch.no_grad():
            pairs = zip(function(**example()), loop(**example()), strict=True)
            return all(torch.allclose(one, other, rtol=1e-4, atol=1e-5) for one, other in pairs)
    except Exception:  # a function of that name may be anything
        return False
