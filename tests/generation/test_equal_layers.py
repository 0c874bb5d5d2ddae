"""Layers that are equal but for their weights and number are traced once, and the others are copies of the graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf
from small_models import VOCABULARY, eager, prompt, small_model
from transformers.models.gpt2.modeling_gpt2 import GPT2MLP

import pipeline.generation
from pipeline.frontend.generation import entry_source
from pipeline.frontend.generation.equal_layers import LayerNumber, NumberUsedError, equal_layers
from pipeline.frontend.generation.repeated_layers import RepeatedLayers

_SIZES = {"n_embd": 16, "n_head": 2, "n_positions": 64, "vocab_size": VOCABULARY, "eos_token_id": None}


def _t5():
    sizes = {"d_model": 16, "d_ff": 24, "d_kv": 8, "num_heads": 2, "num_layers": 4}
    return tf.T5Config(vocab_size=VOCABULARY, decoder_start_token_id=0, eos_token_id=None, **sizes)


def _traced(model, monkeypatch, **options):
    """A model compiled, and how many layers were traced and repeated in each entry."""
    counts = []
    original = RepeatedLayers.expanded

    def expanded(layers, exported):
        targets = [str(node.target) for node in exported.graph.nodes]
        counts.append(tuple(targets.count(f"pipeline.layer_{name}.default") for name in ("begins", "again")))
        return original(layers, exported)

    with monkeypatch.context() as patch:
        patch.setattr(RepeatedLayers, "expanded", expanded)
        return pipeline.generation.compile(model, 32, cache=False, **options), counts


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_programs_are_those_of_layers_traced_one_by_one(name, monkeypatch):
    model = small_model(name)
    shared, counts = _traced(model, monkeypatch)
    assert counts == [(1, 1), (1, 1)] if name == "llama" else [(0, 0), (0, 0)]  # qwen2's second layer has a window
    with monkeypatch.context() as patch:
        patch.setattr(entry_source, "_repeated", lambda entry: RepeatedLayers((), {}))
        apart = pipeline.generation.compile(model, 32, cache=False)
    for one, other in ((shared.prefill, apart.prefill), (shared.decode, apart.decode)):
        assert [kernel.name for kernel in one.kernels] == [kernel.name for kernel in other.kernels]
        assert [(remark.module, remark.reason) for remark in one.remarks] == [
            (remark.module, remark.reason) for remark in other.remarks
        ]
        assert one.signature == other.signature
    ids = prompt(1, 7).numpy()
    assert np.array_equal(shared.generate(ids, max_new_tokens=20), apart.generate(ids, max_new_tokens=20))


def test_layers_that_read_a_source_and_give_back_what_they_are_given(monkeypatch):
    """T5's ask by their number whether the source's keys and values are there; the first computes a bias for all."""
    torch.manual_seed(0)
    model = tf.AutoModelForSeq2SeqLM.from_config(_t5()).eval().requires_grad_(False)
    lm, counts = _traced(model, monkeypatch, max_source_length=16)
    assert counts == [(2, 4), (1, 2)]
    ids = prompt(1, 9)
    assert torch.equal(lm.generate(ids, max_new_tokens=12), eager(model, ids, max_new_tokens=12))


def test_layers_with_windows_in_turns_are_traced_once_for_each_kind(monkeypatch):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = tf.Gemma2Config(
        **sizes, head_dim=8, num_hidden_layers=5, vocab_size=VOCABULARY, sliding_window=4, eos_token_id=None
    )
    model = tf.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    lm, counts = _traced(model, monkeypatch, kv_cache="int8")
    assert counts == [(2, 3), (2, 3)]
    lm, _ = _traced(model, monkeypatch)
    ids = prompt(1, 9)
    assert torch.equal(lm.generate(ids, max_new_tokens=12), eager(model, ids, max_new_tokens=12))


def test_a_layer_that_computes_with_its_number_is_traced_for_itself(monkeypatch):
    torch.manual_seed(0)
    config = tf.GPT2Config(n_layer=3, **_SIZES)
    model = tf.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    forward = GPT2MLP.forward
    monkeypatch.setattr(GPT2MLP, "forward", lambda mlp, x: forward(mlp, x) / (1 + mlp.place))
    for place, block in enumerate(model.transformer.h):
        block.mlp.place = place
    lm, counts = _traced(model, monkeypatch)
    assert counts == [(0, 0), (0, 0)]
    assert any("not traced once for all" in remark.reason for remark in lm.decode.remarks)
    ids = prompt(1, 5)
    assert torch.equal(lm.generate(ids, max_new_tokens=8), eager(model, ids, max_new_tokens=8))


def test_weights_of_two_layers_are_no_weights_of_one():
    config = tf.GPT2Config(n_layer=4, **_SIZES)
    model = tf.AutoModelForCausalLM.from_config(config)
    assert [layer.number for layer in equal_layers(model, {})] == [0, 1, 2, 3]
    model.transformer.h[2].mlp.c_fc.weight = model.transformer.h[3].mlp.c_fc.weight
    assert [layer.number for layer in equal_layers(model, {})] == [0, 1]
    model.transformer.h[1].mlp.c_fc.weight.requires_grad_(False)
    assert equal_layers(model, {}) == []


@pytest.mark.parametrize(
    "use", [bool, str, hash, int, lambda number: number == 1, lambda number: number + 1, [5].index]
)
def test_a_number_is_nothing_but_a_number(use):
    with pytest.raises((NumberUsedError, TypeError)):
        use(LayerNumber(1))
