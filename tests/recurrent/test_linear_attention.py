"""The recurrences of linear attention, token by token in float64, beside the loops that they become."""

from __future__ import annotations

import pytest
import torch
from generation.small_models import prompt, small_model

import pipeline
from pipeline.frontend.recurrent import recurrences_of_models as recurrences
from pipeline.frontend.recurrent.linear_attention import linear_attention, selective_scan

#: Shorter than a chunk, one or two of them, and a token more.
LENGTHS = (2, 63, 64, 65, 128, 129, 200)


def inputs(length, *, batch=2, heads=3, width=5, value_width=7, by_elements=False, has_shares=True, has_state=True):
    """Queries, keys, values, decays, shares, and a state."""
    keys = torch.nn.functional.normalize(torch.randn(batch, heads, length, width), dim=-1)
    decays = -torch.rand(batch, heads, length, *[width] * by_elements)
    shares = torch.rand(batch, heads, length) if has_shares else None
    state = torch.randn(batch, heads, width, value_width) if has_state else None
    return torch.randn_like(keys), keys, torch.randn(batch, heads, length, value_width), decays, shares, state


def in_float64(op, args):
    return op(*(arg if arg is None else arg.double() for arg in args))


def is_near(got, expected):
    pairs = zip(got, expected, strict=True)
    return all(torch.allclose(one.double(), other, rtol=1e-5, atol=3e-5) for one, other in pairs)


@pytest.mark.parametrize("has_state", [True, False])
@pytest.mark.parametrize("has_shares", [True, False])
@pytest.mark.parametrize("by_elements", [True, False])
def test_chunks_are_what_tokens_are(by_elements, has_shares, has_state):
    torch.manual_seed(0)
    kind = {"by_elements": by_elements, "has_shares": has_shares, "has_state": has_state}
    example = inputs(5, **kind)
    length = torch.export.Dim.AUTO(min=2, max=512)
    shapes = [{2: length}] * 4 + [{2: length} if has_shares else None, None]

    def model(queries, keys, values, decays, shares, state):
        return linear_attention(queries, keys, values, decays, shares, state)

    exe = pipeline.compile(model, example, dynamic_shapes=tuple(shapes), fallback="error")
    for length in LENGTHS:
        args = inputs(length, **kind)
        assert is_near(exe(*args), in_float64(linear_attention, args)), length


@pytest.mark.parametrize(("batch", "length", "width"), [(1, 1, 1), (2, 65, 3), (0, 5, 3), (2, 5, 0)])
def test_known_sizes(batch, length, width):
    args = inputs(length, batch=batch, width=width)
    exe = pipeline.compile(lambda *args: linear_attention(*args), args, fallback="error")
    assert is_near(exe(*args), in_float64(linear_attention, args))


def scanned(batch, width, length, states):
    x, dt = torch.randn(batch, width, length), torch.rand(batch, width, length)
    return x, dt, -torch.rand(width, states), torch.randn(batch, states, length), torch.randn(batch, states, length)


def test_selective_scans():
    torch.manual_seed(0)
    length = {2: torch.export.Dim.AUTO(min=2, max=512)}
    shapes = (length, length, None, length, length)
    exe = pipeline.compile(
        lambda *args: selective_scan(*args), scanned(2, 9, 5, 3), dynamic_shapes=(shapes,), fallback="error"
    )
    for length in LENGTHS:
        args = scanned(2, 9, length, 3)
        assert is_near(exe(*args), in_float64(selective_scan, args)), length
    for sizes in ((1, 1, 1, 1), (0, 4, 5, 2)):
        args = scanned(*sizes)
        exe = pipeline.compile(lambda *args: selective_scan(*args), args, fallback="error")
        assert is_near(exe(*args), in_float64(selective_scan, args)), sizes


def test_functions_are_those_of_transformers():
    """With all that models give them, and the little that they need."""
    from transformers.models.bamba.modeling_bamba import mamba2_chunk_scan
    from transformers.models.jamba.modeling_jamba import mamba_selective_scan
    from transformers.models.kimi_linear.modeling_kimi_linear import chunk_kimi_delta_attention
    from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule

    torch.manual_seed(0)
    x, dt, A, B, C = scanned(2, 9, 70, 3)
    for options in (
        {},
        {"D": torch.randn(9), "z": torch.randn_like(x), "delta_bias": torch.randn(9), "delta_softplus": True},
    ):
        args = (x, dt, A, B, C)
        expected = mamba_selective_scan(*args, **options, return_last_state=True)
        assert is_near(recurrences.selective_scan(*args, **options, return_last_state=True), _wide(expected))
        assert is_near([recurrences.selective_scan(*args, **options)], _wide(expected[:1]))
    x, dt, A = torch.randn(2, 70, 4, 5), torch.randn(2, 70, 4), -torch.rand(4)
    B, C = torch.randn(2, 70, 2, 3), torch.randn(2, 70, 2, 3)
    for options in (
        {"dt_softplus": True},
        {
            "D": torch.randn(4),
            "dt_bias": torch.randn(4),
            "initial_states": torch.randn(2, 4, 5, 3),
            "dt_limit": (0.1, 0.7),
        },
    ):
        args = (x, dt, A, B, C, 16)
        expected = mamba2_chunk_scan(*args, **options, return_final_states=True)
        assert is_near(recurrences.chunk_scan(*args, **options, return_final_states=True), _wide(expected))
        assert is_near([recurrences.chunk_scan(*args, **options)], _wide(expected[:1]))
    q, k, v = torch.randn(2, 70, 2, 5), torch.randn(2, 70, 2, 5) / 3, torch.randn(2, 70, 4, 6)
    g, beta = -torch.rand(2, 70, 4), torch.rand(2, 70, 4)
    for options in ({}, {"use_qk_l2norm_in_kernel": True, "initial_state": torch.randn(2, 4, 5, 6)}):
        expected = torch_chunk_gated_delta_rule(q, k, v, g=g, beta=beta, **options, output_final_state=True)
        got = recurrences.chunk_gated_delta_rule(q, k, v, g=g, beta=beta, **options, output_final_state=True)
        assert is_near(got, _wide(expected))
    assert recurrences.chunk_gated_delta_rule(q, k, v, g=g, beta=beta)[1] is None
    q, k, g = torch.randn(2, 70, 4, 5), torch.randn(2, 70, 4, 5), -torch.rand(2, 70, 4, 5)
    expected = chunk_kimi_delta_attention(
        q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True, output_final_state=True
    )
    got = recurrences.chunk_gated_delta_rule(
        q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True, output_final_state=True
    )
    assert is_near(got, _wide(expected))


class Logits(torch.nn.Module):
    """Of a language model without a cache."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids, use_cache=False).logits


@pytest.mark.parametrize("name", ["mamba", "bamba", "qwen3_5"])
def test_models_of_any_length(name):
    """One program, whose length is that of no loop."""
    model = Logits(small_model(name))
    length = torch.export.Dim.AUTO(min=2, max=512)
    exe = pipeline.compile(model, (prompt(1, 9),), dynamic_shapes=({1: length},), fallback="error")
    for size in (2, 9, 64, 65, 130):
        ids = prompt(1, size)
        assert torch.allclose(exe(ids), model(ids), rtol=1e-3, atol=1e-3), size
    program = pipeline.compile(model, (prompt(1, 200),), fallback="error")
    ids = prompt(1, 200)
    assert torch.allclose(program(ids), model(ids), rtol=1e-3, atol=1e-3)


def test_functions_that_do_something_else_stay(monkeypatch):
    """A function of transformers that is not what it was is traced as it is, which a remark says."""
    from transformers.models.mamba import modeling_mamba

    scan = modeling_mamba.mamba_selective_scan

    def halved(*args, **kwargs):
        found = scan(*args, **kwargs)
        return (found[0] / 2, found[1]) if isinstance(found, tuple) else found / 2

    monkeypatch.setattr(modeling_mamba, "mamba_selective_scan", halved)
    model = small_model("mamba")
    with recurrences.recurrences_as_loops(model):
        assert modeling_mamba.mamba_selective_scan is halved
    said = "modeling_mamba.mamba_selective_scan is not the function that is known"
    for length in (2, 3):  # each time
        exe = pipeline.compile(Logits(model), (prompt(1, length),), fallback="error")
        assert any(said in remark.reason for remark in exe.remarks)
    monkeypatch.setattr(modeling_mamba, "mamba_selective_scan", scan)
    with recurrences.recurrences_as_loops(model):
        assert modeling_mamba.mamba_selective_scan is recurrences.selective_scan
    assert modeling_mamba.mamba_selective_scan is scan


def _wide(tensors):
    return [tensor.double() for tensor in tensors]
