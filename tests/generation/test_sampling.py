"""Tokens that are drawn, rows side by side, padding: eager mode's, and what is refused."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import transformers as tf
from generation.small_models import VOCABULARY, eager, prompt, small_model

import pipeline
from pipeline import ArgumentError, OptionError, PipelineError
from pipeline.errors import CaptureError
from pipeline.generation.settings import Settings
from pipeline.generation.token_choice import TokenChoice

BATCH = 3


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=64, batch=BATCH)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"top_k": 0},
        {"temperature": 0.6, "top_k": 7},
        {"temperature": 2.5, "top_k": 0, "top_p": 0.8},
        {"top_k": 0, "min_p": 0.05},
        {"repetition_penalty": 1.4, "top_p": 0.9},
    ],
    ids=str,
)
def test_draws_are_those_of_eager_mode(llama, settings):
    model, lm = llama
    ids = prompt(BATCH, 9)
    for seed in (0, 1):
        torch.manual_seed(seed)
        got = lm.generate(ids, max_new_tokens=30, do_sample=True, **settings)
        torch.manual_seed(seed)
        assert torch.equal(got, eager(model, ids, max_new_tokens=30, do_sample=True, **settings))


def test_draws_of_arrays_follow_the_seed(llama):
    _, lm = llama
    ids = prompt(1, 5).numpy()
    texts = []
    for seed in (3, 3, 4):
        pipeline.manual_seed(seed)
        texts.append(lm.generate(ids, max_new_tokens=20, do_sample=True, top_k=0))
    assert type(texts[0]) is np.ndarray and texts[0].shape == (1, 25)
    assert np.array_equal(texts[0], texts[1]) and not np.array_equal(texts[0], texts[2])


@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_padding_on_the_left(name):
    model = small_model(name)
    lm = pipeline.generation.compile(model, max_length=64, batch=4)
    ids = prompt(4, 11)
    mask = torch.ones_like(ids)
    for row, padding in enumerate((0, 3, 10, 7)):
        ids[row, :padding], mask[row, :padding] = 0, 0
    got = lm.generate(ids, mask, max_new_tokens=40)
    assert torch.equal(got, eager(model, ids, attention_mask=mask, max_new_tokens=40))
    for row, padding in ((1, 3), (2, 10)):  # and it is as if it were not there
        alone = lm.generate(ids[row : row + 1, padding:], max_new_tokens=40)
        assert torch.equal(alone[0], got[row, padding:])


def test_rows_end_by_themselves(llama):
    model, lm = llama
    ids = prompt(BATCH, 6)
    free = lm.generate(ids, max_new_tokens=20)
    ends = [int(free[0, 9]), int(free[1, 14]), int(free[2, 11])]
    got = lm.generate(ids, max_new_tokens=20, eos_token_id=ends, pad_token_id=0)
    assert torch.equal(got, eager(model, ids, max_new_tokens=20, eos_token_id=ends, pad_token_id=0))
    assert got.shape[1] < free.shape[1]


def test_a_stream_gives_what_generate_does(llama):
    _, lm = llama
    ids = prompt(2, 4)
    whole = lm.generate(ids, max_new_tokens=8)
    stream = lm.stream(ids, max_new_tokens=8)
    assert np.array_equal(np.stack(list(stream), 1), whole[:, 4:].numpy())
    stream = lm.stream(ids, max_new_tokens=8)
    next(stream)
    lm.generate(ids, max_new_tokens=2)
    with pytest.raises(PipelineError, match="another call has taken the cache"):
        next(stream)


def test_a_cache_ends_where_positions_do():
    """16 slots for each whole number of vectors, but none behind the model's last position."""
    config = tf.GPT2Config(n_embd=32, n_layer=1, n_head=4, n_positions=50, vocab_size=VOCABULARY, eos_token_id=None)
    torch.manual_seed(0)
    model = tf.AutoModelForCausalLM.from_config(config).eval()
    lm = pipeline.generation.compile(model, max_length=50)
    assert lm.max_length == 50
    ids = prompt(1, 40)
    assert torch.equal(lm.generate(ids), eager(model, ids, max_new_tokens=10 + 1)[:, :51])
    with pytest.raises(ArgumentError, match="more than the cache has room for"):
        lm.generate(ids, max_new_tokens=12)


def test_a_stream_waits_for_a_call_of_another_thread(llama):
    _, lm = llama
    ids, draw, found = prompt(1, 5), TokenChoice.likeliest, []

    def draw_and_begin_another(*args):
        if not found:
            other = threading.Thread(target=lambda: found.append(next(lm.stream(ids, max_new_tokens=3))))
            other.start()
            other.join(0.2)
            found.append("begun")
        return draw(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenChoice, "likeliest", draw_and_begin_another)
        assert lm.generate(ids, max_new_tokens=4).shape == (1, 9)


def test_settings_of_the_model_that_are_missing_are_refused():
    model = small_model("gpt2")
    for name, value in (("guidance_scale", 1.5), ("dola_layers", "high"), ("top_h", 0.4), ("max_time", 3.0)):
        config = tf.GenerationConfig(**{name: value}).to_dict()
        with pytest.raises(OptionError, match=f"generation_config has {name}"):
            Settings.of_config(config)
    assert Settings.of_config(model.generation_config.to_dict()).top_k == 50


def test_attention_in_chunks_is_refused():
    config = tf.Llama4TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        intermediate_size_mlp=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=2,
        attention_chunk_size=8,
    )
    with pytest.raises(CaptureError, match="chunks"):
        pipeline.generation.compile(tf.AutoModelForCausalLM.from_config(config).eval(), max_length=32)


def test_what_is_refused(llama):
    model, lm = llama
    ids = prompt(1, 5)
    for refused, message in (
        (lambda: lm.generate(prompt(4, 5)), "has 4 rows"),
        (lambda: lm.generate(ids, max_new_tokens=61), "max_length=64"),
        (lambda: lm.generate(ids[:, :0]), "is empty"),
        (lambda: lm.generate(ids.float()), "expected integers"),
        (lambda: lm.generate([[1, 2], [3]]), "rows of equal length"),
        (lambda: lm.generate(ids, torch.tensor([[1, 0, 1, 1, 1]])), "pad on the left"),
        (lambda: lm.generate(ids, torch.ones(1, 4, dtype=int)), "the shape of input_ids"),
        (lambda: lm.generate(torch.full((1, 3), VOCABULARY), max_new_tokens=1), None),
    ):
        with pytest.raises((ArgumentError, PipelineError), match=message):
            refused()
    for settings, message in (
        ({"top_h": 0.4}, "no setting 'top_h'"),
        ({"temperature": 0.0}, "temperature: expected a number above 0"),
        ({"top_p": 1.5}, "top_p"),
    ):
        with pytest.raises(OptionError, match=message):
            lm.generate(ids, **settings)
    with pytest.raises(OptionError, match="256 positions"):
        pipeline.generation.compile(model, max_length=300)
    bloom = tf.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=1, n_head=2)
    with pytest.raises(CaptureError, match="its attention is its own"):
        pipeline.generation.compile(tf.AutoModelForCausalLM.from_config(bloom), max_length=8)
    with pytest.raises(CaptureError, match="one of transformers' decoders"):
        pipeline.generation.compile(torch.nn.Linear(2, 2), max_length=8)
