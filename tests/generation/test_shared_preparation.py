"""What a prompt and a step both prepare of the weights is computed once, and lies in memory once."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
import transformers as tf
from generation.small_models import eager, prompt, small_model
from host import BF16_DOTS

import pipeline
from pipeline.runtime.weights import weight_binding


def model_with_panels():
    """Weights large enough to be packed, the last panel of some of them not full."""
    config = tf.LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=128,
        eos_token_id=None,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model = tf.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.mul_(4)
    return model


def places(executable):
    return {tensor.address for tensor in executable.prepared}


@pytest.fixture
def runs(monkeypatch):
    """How often @prepare has run."""
    found = []
    run = weight_binding._run_prepare

    def counted(*args):
        found.append(1)
        run(*args)

    monkeypatch.setattr(weight_binding, "_run_prepare", counted)
    return found


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({}, 1.0),
        ({"precision": "bf16"}, 0.5 if BF16_DOTS else 1.0),
        ({"weights": "int8"}, 0.25),
        ({"weights": "int4", "group": 16}, 0.125 + 2 / 16 / 4),
    ],
    ids=str,
)
def test_it_is_prepared_once(runs, tmp_path, options, least):
    model = model_with_panels()
    lm = pipeline.generation.compile(model, max_length=48, cache=False, **options)
    assert len(runs) == 1
    assert places(lm.prefill) == places(lm.decode)
    packed = max(entry.memory.prepared for entry in (lm.prefill, lm.decode))
    assert lm.prepared_bytes <= 1.05 * packed
    of_products = sum(parameter.nbytes for parameter in model.parameters() if parameter.ndim > 1)
    of_products -= model.model.embed_tokens.weight.nbytes
    assert packed <= 1.05 * least * of_products + 4 * 16 * 1000, "there is a copy in f32"
    expected = lm.generate(prompt(1, 9), max_new_tokens=20).numpy()
    for prepacked in (False, True):
        lm.save(tmp_path / "lm", prepacked=prepacked)
        del runs[:]
        loaded = pipeline.generation.load(tmp_path / "lm")
        assert len(runs) == (not prepacked)
        assert places(loaded.prefill) == places(loaded.decode)
        assert loaded.prepared_bytes == (0 if prepacked else lm.prepared_bytes)
        assert np.array_equal(loaded.generate(expected[:, :9], max_new_tokens=20), expected)
    assert (tmp_path / "lm").stat().st_size < 1.05 * packed + model.model.embed_tokens.weight.nbytes + 500_000


@pytest.mark.parametrize("name", ["gpt2", "qwen2", "gemma2", "phi"])
def test_models_of_other_kinds(runs, name):
    lm = pipeline.generation.compile(small_model(name), max_length=48, batch=2)
    assert len(runs) == 1 and places(lm.prefill) == places(lm.decode)


def test_weights_that_change_are_prepared_once_for_both(runs):
    model = model_with_panels()
    lm = pipeline.generation.compile(model, max_length=48)
    ids, before = prompt(1, 6), places(lm.decode)

    def check():
        with torch.no_grad():
            assert torch.equal(lm.generate(ids, max_new_tokens=12), eager(model, ids, max_new_tokens=12))
        assert places(lm.prefill) == places(lm.decode)

    for change in (
        lambda: model.model.layers[1].mlp.down_proj.weight.neg_(),
        lambda: setattr(model.lm_head, "weight", torch.nn.Parameter(model.lm_head.weight.flip(0))),
        lambda: setattr(model.lm_head.weight, "data", model.lm_head.weight.detach().flip(0).clone()),
    ):
        del runs[:]
        with torch.no_grad():
            change()
        check()
        assert len(runs) == 1
    model.lm_head.weight.detach().numpy()[:] = model.lm_head.weight.detach().flip(0).numpy()  # which nobody notices
    del runs[:]
    lm.decode.refresh()
    assert len(runs) == 1
    check()
    assert before != places(lm.decode)
    other = lm.decode.with_weights({name: weight.clone() for name, weight in lm.decode.weights.items()})
    assert len(runs) == 2 and not places(other) & places(lm.decode)


def test_memory_goes_with_the_last_that_reads_it():
    lm = pipeline.generation.compile(model_with_panels(), max_length=48)
    prefill, decode = lm.prefill, lm.decode
    known = prefill._preparation._known
    assert len(known) == len(prefill.prepared)
    del lm, prefill
    assert len(known) == len(decode.prepared)
    del decode
    gc.collect()
    assert len(known) == 0
